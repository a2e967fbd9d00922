"""Leases on real nodes: what only real processes, users and disks can show. Their contract is in `tests/contract`."""

import asyncio
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from reconciler.core.leases import Claim
from reconciler.nodes.errors import ErrorKind, LeaseHeldError, NodeError
from reconciler.nodes.lease_program import LAPSE_S
from reconciler.nodes.protocols import Lease
from reconciler.nodes.ssh_fleet import SshFleet

from . import Lab
from .node import Node
from .real_nodes import fleet_of, pin_of, target

pytestmark = pytest.mark.lab

CLAIM = Claim("ops@laptop", "apply of plan 1a2b", "run-1")
LATER = Claim("ci@runner", "apply of plan 3c4d", "run-2")
NODES = ["node1", "node3"]


async def taken(fleet: SshFleet, node: str, claim: Claim, within_s: float = 0.0) -> Lease:
    until_s = time.monotonic() + within_s
    while True:
        try:
            return await (await fleet.connect(node, 10)).leases.take(claim)
        except LeaseHeldError:
            if time.monotonic() > until_s:
                raise
            await asyncio.sleep(0.2)


async def refused(fleet: SshFleet, node: str) -> NodeError:
    with pytest.raises(NodeError) as refusal:
        await taken(fleet, node, CLAIM)
    return refusal.value


async def make_two_containers(lab: Lab, node: str) -> None:
    """Not started: `sleepy` and `sleepy-first`."""
    async with fleet_of(target(lab, node)) as fleet:
        images = (await fleet.connect(node, 10)).images
        await images.stage(pin_of(lab, "tiny"), "linux/amd64", lambda news: None)
    for name in ("sleepy", "sleepy-first"):
        lab.nodes[node].docker("create", "--name", name, lab.images["tiny"], "sleep", "600")


@contextmanager
def controller(lab: Lab, node: str, user: str, then: str) -> Iterator["subprocess.Popen[str]"]:
    """A controller that has the lease of the node."""
    way = [lab.nodes[node].address, user, str(lab.identity_file), str(lab.known_hosts), "sleepy", then]
    argv = [sys.executable, "-m", "tests.lab.lease_holder", *way]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert "held" == said(process)
            yield process
        finally:
            process.kill()


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("user", ["root", "ops"])
async def test_an_effect_of_a_controller_that_slept_does_not_arrive(clean_lab: Lab, node: str, user: str) -> None:
    """It stops right between the check of its lease and the effect, and wakes up when another has the lease."""
    await make_two_containers(clean_lab, node)
    async with fleet_of(target(clean_lab, node)) as fleet:
        with controller(clean_lab, node, user, "sleep") as sleeper:
            began_s = time.monotonic()
            lease = await taken(fleet, node, LATER, 3 * LAPSE_S)
            assert LAPSE_S - 4 < time.monotonic() - began_s
            sleeper.send_signal(signal.SIGCONT)
            assert await asyncio.to_thread(said, sleeper) in {"failed: lost", "failed: timeout"}
        await lease.check()
        found = await (await fleet.connect(node, 10)).containers.inspect("sleepy")
    assert found is not None
    assert "created" == found.state


@pytest.mark.parametrize("node", NODES)
async def test_a_controller_that_is_killed_leaves_no_lease(clean_lab: Lab, node: str) -> None:
    await make_two_containers(clean_lab, node)
    async with fleet_of(target(clean_lab, node)) as fleet:
        await fleet.connect(node, 10)
        with controller(clean_lab, node, "root", "wait") as holder:
            with pytest.raises(LeaseHeldError):
                await taken(fleet, node, LATER)
            holder.kill()
            await taken(fleet, node, LATER, 5)


@pytest.mark.parametrize("first", ["root", "ops"])
@pytest.mark.parametrize("node", NODES)
async def test_users_of_one_machine_meet(clean_lab: Lab, node: str, first: str) -> None:
    """Whoever makes the folder makes it for all who may use Docker, by whatever name they know the node."""
    forget(clean_lab.nodes[node])
    users = [first, *({"root", "ops"} - {first})]
    async with (
        fleet_of(target(clean_lab, node, user=users[0])) as ours,
        fleet_of(target(clean_lab, node, user=users[1], name="alias")) as theirs,
    ):
        lease = await taken(ours, node, CLAIM)
        with pytest.raises(LeaseHeldError) as held:
            await taken(theirs, "alias", LATER)
        assert CLAIM == held.value.holder.claim
        await lease.release()
        again = await taken(theirs, "alias", LATER)
        assert again.fence > lease.fence
        with pytest.raises(LeaseHeldError):
            await taken(ours, node, CLAIM)


@pytest.mark.parametrize("holder", ["root", "ops"])
async def test_a_lease_is_broken_by_whoever_may_use_docker(clean_lab: Lab, holder: str) -> None:
    """Also by a login that may not end the holder's processes: the holder sees it and goes."""
    breaker = {"root": "ops", "ops": "root"}[holder]
    async with (
        fleet_of(target(clean_lab, "node1", user=holder)) as ours,
        fleet_of(target(clean_lab, "node1", user=breaker)) as theirs,
    ):
        lease = await taken(ours, "node1", CLAIM)
        broken = await (await theirs.connect("node1", 10)).leases.break_held()
        assert broken is not None
        assert CLAIM == broken.claim
        with pytest.raises(NodeError):
            await lease.check()
        assert (await taken(ours, "node1", CLAIM)).fence > lease.fence


async def test_a_holder_that_is_stopped_is_broken_all_the_same(clean_lab: Lab) -> None:
    node = clean_lab.nodes["node1"]
    async with fleet_of(target(clean_lab, "node1")) as ours, fleet_of(target(clean_lab, "node1")) as theirs:
        await taken(ours, "node1", CLAIM)
        rival = await theirs.connect("node1", 10)
        for pid in holders(node):
            node.exec(["kill", "-STOP", pid])
        broken = await rival.leases.break_held()
        assert broken is not None
        await taken(theirs, "node1", LATER)


@pytest.mark.parametrize("which", [0, 1])
async def test_a_holder_of_which_a_part_is_killed_ends_its_session_before_the_lock(clean_lab: Lab, which: int) -> None:
    node = clean_lab.nodes["node1"]
    async with fleet_of(target(clean_lab, "node1")) as ours, fleet_of(target(clean_lab, "node1")) as theirs:
        lease = await taken(ours, "node1", CLAIM)
        session = await ours.connect("node1", 10)
        node.exec(["kill", "-KILL", holders(node)[which]])
        await taken(theirs, "node1", LATER, 10)
        with pytest.raises(NodeError):
            await session.observer.observe()
        with pytest.raises(NodeError):
            await lease.check()


async def test_a_folder_that_is_swept_away_ends_the_lease(clean_lab: Lab) -> None:
    node = clean_lab.nodes["node1"]
    async with fleet_of(target(clean_lab, "node1")) as ours, fleet_of(target(clean_lab, "node1")) as theirs:
        lease = await taken(ours, "node1", CLAIM)
        forget(node)
        await taken(theirs, "node1", LATER)
        await asyncio.sleep(2.5)
        with pytest.raises(NodeError):
            await lease.check()
        with pytest.raises(LeaseHeldError):
            await taken(ours, "node1", CLAIM)


async def test_a_damaged_note_is_told_and_costs_nobody_the_lease_for_ever(clean_lab: Lab) -> None:
    node = clean_lab.nodes["node1"]
    async with fleet_of(target(clean_lab, "node1")) as fleet:
        lease = await taken(fleet, "node1", CLAIM)
        await lease.release()
        for note in (r"\000\377garbage", "", "fleet-lease 99999999999999999999 x", r"fleet-lease 08 1\n{", "x" * 70000):
            folder(node, f'printf "{note}" >note')
            again = await taken(fleet, "node1", LATER)
            await again.check()
            await again.release()


async def test_who_holds_with_a_damaged_note_is_unknown(clean_lab: Lab) -> None:
    node = clean_lab.nodes["node1"]
    async with fleet_of(target(clean_lab, "node1")) as fleet:
        await (await taken(fleet, "node1", CLAIM)).release()
        folder(node, "echo garbage >note; flock lock sleep 8 >/dev/null 2>&1 & sleep 0.5")
        with pytest.raises(LeaseHeldError) as held:
            await taken(fleet, "node1", CLAIM)
        assert ("unknown", None) == (held.value.holder.claim.owner, held.value.holder.age_s)
        stuck = await stuck_break(fleet)
        assert ErrorKind.DENIED is stuck.kind
        assert "fuser" in stuck.hint


async def stuck_break(fleet: SshFleet) -> NodeError:
    with pytest.raises(NodeError) as stuck:
        await (await fleet.connect("node1", 10)).leases.break_held()
    return stuck.value


@pytest.mark.parametrize("inodes", [False, True])
async def test_a_full_tmp_is_told(clean_lab: Lab, inodes: bool) -> None:
    node = clean_lab.nodes["node1"]
    size, filling = ("nr_inodes=2,size=1m", "touch /tmp/x") if inodes else ("size=16k", "cat /dev/zero >/tmp/x")
    node.exec(["mount", "-t", "tmpfs", "-o", f"mode=1777,{size}", "tmpfs", "/tmp"])
    try:
        node.exec(["sh", "-c", filling], check=False)
        async with fleet_of(target(clean_lab, "node1")) as fleet:
            full = await refused(fleet, "node1")
            assert await (await fleet.connect("node1", 10)).leases.holder() is None
    finally:
        node.exec(["umount", "-l", "/tmp"])
    assert ErrorKind.NO_SPACE is full.kind, full.message
    assert "/tmp" in full.message


async def test_a_disk_that_fills_up_costs_no_lease_that_is_held(clean_lab: Lab) -> None:
    node = clean_lab.nodes["node1"]
    node.exec(["mount", "-t", "tmpfs", "-o", "mode=1777,size=64k", "tmpfs", "/tmp"])
    try:
        async with fleet_of(target(clean_lab, "node1")) as ours, fleet_of(target(clean_lab, "node1")) as theirs:
            lease = await taken(ours, "node1", CLAIM)
            node.exec(["sh", "-c", "cat /dev/zero >/tmp/ballast"], check=False)
            await asyncio.sleep(3)
            await lease.check()
            broken = await (await theirs.connect("node1", 10)).leases.break_held()
            assert broken is not None, "and it can be broken"
    finally:
        node.exec(["umount", "-l", "/tmp"])


@pytest.mark.parametrize("missing", [["flock"], ["flock", "python3"]])
async def test_a_node_without_flock_uses_python_and_without_both_says_so(clean_lab: Lab, missing: list[str]) -> None:
    node = clean_lab.nodes["node1"]
    paths = [
        path for name in missing for path in node.exec(["sh", "-c", f"readlink -f $(which -a {name})"]).stdout.split()
    ]
    try:
        for path in dict.fromkeys(paths):
            node.exec(["mount", "--bind", "/dev/null", path])
        async with fleet_of(target(clean_lab, "node1")) as ours, fleet_of(target(clean_lab, "node1")) as theirs:
            if "python3" in missing:
                assert "neither flock nor python3" in (await refused(ours, "node1")).message
            else:
                lease = await taken(ours, "node1", CLAIM)
                assert ErrorKind.HELD is (await refused_for(theirs, LATER)).kind
                await lease.check()
                await lease.release()
                await taken(theirs, "node1", LATER)
    finally:
        for path in dict.fromkeys(paths):
            node.exec(["umount", path], check=False)


async def refused_for(fleet: SshFleet, claim: Claim) -> NodeError:
    with pytest.raises(NodeError) as refusal:
        await taken(fleet, "node1", claim)
    return refusal.value


@pytest.mark.parametrize("trap", ["a folder of a guest", "a link", "a file"])
async def test_what_another_user_put_there_is_not_used(clean_lab: Lab, trap: str) -> None:
    node = clean_lab.nodes["node1"]
    async with fleet_of(target(clean_lab, "node1")) as fleet:
        await (await taken(fleet, "node1", CLAIM)).release()
        [place] = places(node)
        forget(node)
        as_guest = "setpriv --reuid=guest --regid=guest --clear-groups"
        node.exec(["sh", "-c", "rm -rf /srv/trap; mkdir /srv/trap; chmod 777 /srv/trap"])
        trick = {"a folder of a guest": f"mkdir -m 777 {place}", "a link": f"ln -s /srv/trap {place}"}
        node.exec(["sh", "-c", f"{as_guest} {trick.get(trap, f'touch {place}')}"])
        try:
            unsafe = await refused(fleet, "node1")
        finally:
            node.exec(["rm", "-rf", place])
        assert ErrorKind.DENIED is unsafe.kind
        assert place in unsafe.message
        assert "" == node.exec(["ls", "-A", "/srv/trap"]).stdout.strip()


async def test_a_socket_for_everybody_makes_a_lease_for_everybody(clean_lab: Lab) -> None:
    node = clean_lab.nodes["node1"]
    forget(node)
    node.exec(["chmod", "666", "/run/docker.sock"])
    try:
        async with (
            fleet_of(target(clean_lab, "node1", user="guest")) as ours,
            fleet_of(target(clean_lab, "node1", user="ops")) as theirs,
        ):
            lease = await taken(ours, "node1", CLAIM)
            with pytest.raises(LeaseHeldError):
                await taken(theirs, "node1", LATER)
            await lease.release()
            await taken(theirs, "node1", LATER)
    finally:
        node.exec(["chmod", "660", "/run/docker.sock"])
        forget(node)


async def test_the_programs_leave_nothing_behind(clean_lab: Lab) -> None:
    node = clean_lab.nodes["node1"]
    async with fleet_of(target(clean_lab, "node1")) as fleet:
        for _ in range(3):
            await (await taken(fleet, "node1", CLAIM)).release()
            assert await (await fleet.connect("node1", 10)).leases.holder() is None
        await asyncio.sleep(1.5)
        assert [] == holders(node)
    assert "lock note" == " ".join(folder(node, "ls -A").split())


def places(node: Node) -> list[str]:
    return node.exec(["sh", "-c", "ls -d /tmp/fleet-lease-* || :"]).stdout.split()


def forget(node: Node) -> None:
    """Sweep the lease's folder away, as a person might."""
    node.exec(["sh", "-c", "rm -rf /tmp/fleet-lease-*"])


def folder(node: Node, script: str) -> str:
    """What a script says in the lease's folder."""
    [place] = places(node)
    return node.exec(["sh", "-c", f"cd {shlex.quote(place)} && {script}"]).stdout


def holders(node: Node) -> list[str]:
    """The pids, in the node, of those who have the lock file open: the one that answers, and its watchdog."""
    script = "for dir in /proc/[0-9]*; do for fd in $dir/fd/*; do case $(readlink $fd) in /tmp/fleet-lease-*/lock*) "
    found = node.exec(["sh", "-c", f"{script} echo ${{dir#/proc/}};; esac; done; done"]).stdout.split()
    return sorted(set(found), key=int)
