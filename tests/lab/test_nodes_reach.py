"""Reaching real nodes: every way not to get in has its own name and its own advice, and nothing waits for ever."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reconciler.core.observed import NodeFacts, Unknown, UnknownKind
from reconciler.nodes.errors import ErrorKind, NodeError, NodeUnknownError
from reconciler.nodes.observation import observe_all
from reconciler.nodes.ssh_fleet import SshFleet
from reconciler.nodes.targets import SshTarget

from . import Lab
from .real_nodes import fleet_of, pin_of, sshd_setting, talker, target
from .shell import run

pytestmark = pytest.mark.lab


async def refusal_of(aim: SshTarget, deadline_s: float = 5.0) -> Unknown:
    """The fact a target that cannot be observed is."""
    async with fleet_of(aim) as fleet:
        found = (await observe_all(fleet, [aim.name], deadline_s))[aim.name]
    assert isinstance(found, Unknown), found
    return found


async def test_an_unknown_host_key_says_what_to_write_down(clean_lab: Lab, tmp_path: Path) -> None:
    """Both lines it gives let the node in; the fingerprint is the one ssh-keygen shows on the node."""
    node = clean_lab.nodes["node1"]
    fact = await refusal_of(target(clean_lab, "node1", known_hosts=str(tmp_path / "none")))
    assert UnknownKind.HOST_KEY_UNKNOWN is fact.kind
    fingerprint = run(["ssh-keygen", "-lf", "-"], stdin=node.host_key).stdout.split()[1]
    assert fingerprint in fact.reason
    known_line = next(line.strip() for line in fact.hint.splitlines() if line.strip().startswith(node.address))
    spec_line = next(line.strip() for line in fact.hint.splitlines() if line.strip().startswith("host_key:"))
    written = tmp_path / "known_hosts"
    written.write_text(known_line + "\n")
    pinned = spec_line.split('"')[1]
    for aim in (
        target(clean_lab, "node1", known_hosts=str(written)),
        target(clean_lab, "node1", known_hosts=str(tmp_path / "none"), host_key=pinned),
    ):
        async with fleet_of(aim) as fleet:
            assert isinstance((await observe_all(fleet, ["node1"]))["node1"], NodeFacts)


@pytest.mark.parametrize("pinned", [False, True])
async def test_a_changed_host_key_shows_both_fingerprints(clean_lab: Lab, pinned: bool) -> None:
    node = clean_lab.nodes["node1"]
    old = node.host_key
    aim = target(clean_lab, "node1", host_key=old if pinned else None)
    new = node.change_host_key()
    fact = await refusal_of(aim)
    assert UnknownKind.HOST_KEY_CHANGED is fact.kind
    for key in (old, new):
        assert run(["ssh-keygen", "-lf", "-"], stdin=key).stdout.split()[1] in fact.reason


async def test_a_pinned_key_counts_alone(clean_lab: Lab) -> None:
    """Although known_hosts would let the node in."""
    other = clean_lab.nodes["node2"].host_key
    assert UnknownKind.HOST_KEY_CHANGED is (await refusal_of(target(clean_lab, "node1", host_key=other))).kind


async def test_a_key_that_is_not_let_in(clean_lab: Lab, tmp_path: Path) -> None:
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "stranger")])
    fact = await refusal_of(target(clean_lab, "node1", identity_file=str(tmp_path / "stranger")))
    assert UnknownKind.AUTH is fact.kind
    assert str(tmp_path / "stranger") in fact.hint
    lacking = await refusal_of(target(clean_lab, "node1", identity_file=str(tmp_path / "none")))
    assert UnknownKind.AUTH is lacking.kind


async def test_names_ports_and_machines_that_are_not_there(clean_lab: Lab) -> None:
    kinds = {
        UnknownKind.UNRESOLVED: target(clean_lab, "node1", host="no-such-host.invalid"),
        UnknownKind.REFUSED: target(clean_lab, "node1", port=2222),
    }
    assert list(kinds) == [(await refusal_of(aim)).kind for aim in kinds.values()]


async def test_one_silent_node_does_not_hold_up_the_others(clean_lab: Lab) -> None:
    """Its deadline is kept, and the other nodes are read all the same."""
    clean_lab.nodes["node2"].cut_link()
    since = time.monotonic()
    async with fleet_of(*(target(clean_lab, name) for name in clean_lab.nodes)) as fleet:
        facts = await observe_all(fleet, clean_lab.nodes, deadline_s=2.0)
    assert time.monotonic() - since < 3.5
    assert [name for name, item in facts.items() if isinstance(item, Unknown)] == ["node2"]
    silent = facts["node2"]
    assert isinstance(silent, Unknown)
    assert UnknownKind.TIMEOUT is silent.kind


async def test_a_node_that_is_off_is_a_fact(clean_lab: Lab) -> None:
    clean_lab.nodes["node4"].power_off()
    assert (await refusal_of(target(clean_lab, "node4"), 4.0)).kind in {UnknownKind.REFUSED, UnknownKind.TIMEOUT}


@pytest.mark.parametrize("name", ["node1", "node3"])
async def test_docker_that_is_down_or_denied_is_not_the_network(clean_lab: Lab, name: str) -> None:
    denied = await refusal_of(target(clean_lab, name, user="guest"))
    assert UnknownKind.DOCKER_DENIED is denied.kind, denied
    assert "usermod -aG docker guest" in denied.hint
    missing = await refusal_of(target(clean_lab, name, docker_socket="/run/nothing.sock"))
    assert UnknownKind.DOCKER_DOWN is missing.kind
    clean_lab.nodes[name].stop_docker(crash=True)
    down = await refusal_of(target(clean_lab, name))
    assert UnknownKind.DOCKER_DOWN is down.kind


@pytest.mark.parametrize("setting", ["AllowTcpForwarding no", "AllowStreamLocalForwarding no", "DisableForwarding yes"])
async def test_an_sshd_that_forwards_nothing_is_not_a_docker_that_is_down(clean_lab: Lab, setting: str) -> None:
    """Although sshd gives the same answer. OpenSSH forwards no Unix socket without `AllowTcpForwarding` either."""
    with sshd_setting(clean_lab.nodes["node1"], setting):
        fact = await refusal_of(target(clean_lab, "node1"))
    assert UnknownKind.DOCKER_DENIED is fact.kind
    assert "AllowStreamLocalForwarding" in fact.hint


async def test_an_ordinary_user_of_the_docker_group_is_enough(clean_lab: Lab) -> None:
    async with fleet_of(target(clean_lab, "node3", user="ops")) as fleet:
        facts = (await observe_all(fleet, ["node3"]))["node3"]
    assert isinstance(facts, NodeFacts)
    assert facts.disk_free_bytes


async def test_a_lost_session_is_replaced(clean_lab: Lab) -> None:
    """And sessions are shared until then, also by those who ask at the same moment."""
    async with fleet_of(target(clean_lab, "node1")) as fleet:
        first, same = await asyncio.gather(fleet.connect("node1", 10), fleet.connect("node1", 10))
        assert first is same
        clean_lab.nodes["node1"].stop_sshd()
        with pytest.raises(NodeError) as lost:
            await first.observer.observe()
        assert ErrorKind.LOST is lost.value.kind
        clean_lab.nodes["node1"].start_sshd()
        again = await fleet.connect("node1", 10)
        assert again is not first
        await again.observer.observe()


async def test_docker_that_dies_does_not_cost_the_session(clean_lab: Lab) -> None:
    async with fleet_of(target(clean_lab, "node1")) as fleet:
        node = await fleet.connect("node1", 10)
        await node.observer.observe()
        clean_lab.nodes["node1"].stop_docker(crash=True)
        with pytest.raises(NodeUnknownError) as down:
            await node.observer.observe()
        assert UnknownKind.DOCKER_DOWN is down.value.fact.kind
        clean_lab.nodes["node1"].start_docker()
        assert node is await fleet.connect("node1", 10)
        await node.observer.observe()


async def test_a_silent_node_is_noticed_within_twenty_seconds(clean_lab: Lab) -> None:
    """By SSH's keepalive: a call without a close deadline ends as lost."""
    async with fleet_of(target(clean_lab, "node1")) as fleet:
        node = await fleet.connect("node1", 10)
        await node.observer.observe()
        clean_lab.nodes["node1"].cut_link()
        with pytest.raises(NodeError) as lost:
            async with asyncio.timeout(25):
                await node.containers.stop("anything", 60.0)
        assert lost.value.is_transport


async def test_a_cancelled_call_on_a_silent_node_ends_at_once(clean_lab: Lab) -> None:
    fleet = SshFleet([target(clean_lab, "node1")])
    node = await fleet.connect("node1", 10)
    await node.observer.observe()
    clean_lab.nodes["node1"].cut_link()
    calls = [asyncio.create_task(node.containers.stop("anything", 60.0)), asyncio.create_task(node.observer.observe())]
    await asyncio.sleep(0.5)
    since = time.monotonic()
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    await fleet.close()
    assert time.monotonic() - since < 2.0


PROGRAM = """
import asyncio, sys
from reconciler.nodes.ssh_fleet import SshFleet
from reconciler.nodes.targets import SshTarget

async def main():
    host, identity, known = sys.argv[1:]
    fleet = SshFleet([SshTarget("n", host, user="root", identity_file=identity, known_hosts=known)])
    node = await fleet.connect("n", 10)
    await node.observer.observe()
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        async with asyncio.timeout(1):
            await node.containers.stop("anything", 60.0)
    except TimeoutError:
        pass

asyncio.run(main())
"""


async def test_the_process_ends_although_a_node_is_silent(clean_lab: Lab) -> None:
    """Not even a fleet that is not closed holds it up: no thread that waits for the node is joined."""
    node = clean_lab.nodes["node1"]
    argv = [sys.executable, "-c", PROGRAM, node.address, str(clean_lab.identity_file), str(clean_lab.known_hosts)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdin
        assert program.stdout
        assert program.stdout.readline() == "ready\n"
        node.cut_link()
        since = time.monotonic()
        program.stdin.write("\n")
        program.stdin.flush()
        assert program.wait(10) == 0
    assert time.monotonic() - since < 4.0


async def test_cron_without_home_or_names(clean_lab: Lab) -> None:
    """No HOME, no LOGNAME, no agent: what the spec says is enough."""
    program = PROGRAM.replace("sys.stdin.readline()", "return")
    argv = [sys.executable, "-c", program, clean_lab.nodes["node1"].address]
    argv += [str(clean_lab.identity_file), str(clean_lab.known_hosts)]
    done = await asyncio.to_thread(
        subprocess.run, argv, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False, timeout=30
    )
    assert (done.returncode, done.stdout) == (0, "ready\n"), done.stderr


async def test_through_a_jump_host(clean_lab: Lab) -> None:
    """Both host keys are verified; the fault of the one is not told as the other's."""
    aim = target(clean_lab, "node3", proxy_jump=f"ops@{clean_lab.nodes['node1'].address}:22")
    async with fleet_of(aim) as fleet:
        assert isinstance((await observe_all(fleet, ["node3"]))["node3"], NodeFacts)
    clean_lab.nodes["node1"].change_host_key()
    fact = await refusal_of(aim)
    assert UnknownKind.HOST_KEY_CHANGED is fact.kind
    assert clean_lab.nodes["node1"].address in fact.reason
    clean_lab.nodes["node1"].restore_host_key()
    beyond = await refusal_of(target(clean_lab, "node3", proxy_jump=aim.proxy_jump, port=2222))
    assert UnknownKind.REFUSED is beyond.kind


async def test_a_stream_is_followed_while_other_calls_go_on(clean_lab: Lab) -> None:
    async with fleet_of(target(clean_lab, "node1")) as fleet:
        node = await fleet.connect("node1", 10)
        pin = pin_of(clean_lab, "tiny")
        image = await node.images.stage(pin, "linux/amd64", lambda _: None)
        made = await node.containers.create("fleet-t-r0-v1", talker(pin), image.id, {}, {})
        await node.containers.start(made)

        async def follow() -> None:
            async for _ in node.containers.follow(made, 1):
                pass

        following = asyncio.create_task(follow())
        for _ in range(5):
            await node.observer.observe()
        assert not following.done()
        since = time.monotonic()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        assert time.monotonic() - since < 1.0
