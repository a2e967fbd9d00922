"""Real nodes: what is read from them, and containers."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from reconciler.core.desired import ContainerSpec, Mount, SecretRef
from reconciler.core.observed import Container, NodeFacts
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.observation import observe_all
from reconciler.nodes.protocols import Node, Progress

from . import Lab
from .real_nodes import fleet_of, pin_of, talker, target

pytestmark = pytest.mark.lab

BOTH_STORES = ("node1", "node3")


def ignore(_: Progress) -> None:
    """No interest in progress."""


async def staged(lab: Lab, node: Node, image: str = "tiny") -> str:
    """The local image id, after staging."""
    return (await node.images.stage(pin_of(lab, image), "linux/amd64", ignore)).id


async def facts_of(node: Node) -> NodeFacts:
    return await node.observer.observe()


async def found(node: Node, ref: str) -> Container:
    container = await node.containers.inspect(ref)
    assert container is not None
    return container


async def test_all_nodes_are_read_at_once(clean_lab: Lab) -> None:
    async with fleet_of(*(target(clean_lab, name) for name in clean_lab.nodes)) as fleet:
        facts = await observe_all(fleet, clean_lab.nodes)
    read = {name: item for name, item in facts.items() if isinstance(item, NodeFacts)}
    assert {name: node.store for name, node in clean_lab.nodes.items()} == {n: item.store for n, item in read.items()}
    for item in read.values():
        assert (item.platform, item.docker_root, len(item.boot_id)) == ("linux/amd64", "/var/lib/docker", 36)
        assert min(item.disk_free_bytes or 0, item.memory_available_bytes or 0, item.memory_total_bytes or 0) > 10**9
        assert (22, "sshd") in {(listener.port, listener.process) for listener in item.listeners}


async def test_a_noisy_and_slow_login_shell_does_no_harm(clean_lab: Lab) -> None:
    """bash reads ~/.bashrc for an exec over SSH, unless SHLVL says that it is not the first shell."""
    bashrc = clean_lab.nodes["node1"].disk / "root" / ".bashrc"
    bashrc.write_text("echo '@@fleet nonsense'; echo 42; sleep 20\n")
    try:
        async with fleet_of(target(clean_lab, "node1")) as fleet:
            facts = await observe_all(fleet, ["node1"], deadline_s=5.0)
    finally:
        bashrc.unlink()
    assert isinstance(facts["node1"], NodeFacts), facts["node1"]


@pytest.mark.parametrize("name", BOTH_STORES)
async def test_the_life_of_a_container(clean_lab: Lab, name: str) -> None:
    """Created, started, seen, listened to, stopped, renamed, removed; and everything again without effect."""
    async with fleet_of(target(clean_lab, name)) as fleet:
        node = await fleet.connect(name, 10)
        image = await staged(clean_lab, node)
        doors = node.containers
        made = await doors.create("fleet-t-r0-v1", talker(pin_of(clean_lab, "tiny")), image, {"a": "b"}, {})
        assert (await found(node, "fleet-t-r0-v1")).state == "created"
        await doors.start(made)
        await doors.start("fleet-t-r0-v1")
        running = await found(node, made)
        assert (made, "running", image) == (running.id, running.state, running.image_id)
        assert (
            running.network_mode,
            running.restart_policy,
            running.auto_remove,
            running.owner,
        ) == ("host", "no", False, None)
        with pytest.raises(NodeError) as refused:
            await doors.remove(made)
        assert refused.value.kind is ErrorKind.CONFLICT
        await doors.stop(made, 5.0)
        await doors.stop(made, 5.0)
        stopped = await found(node, made)
        assert (stopped.state, stopped.exit_code) == ("exited", 0)
        await doors.rename(made, "fleet-t-r0-v1.old")
        assert await doors.inspect("fleet-t-r0-v1") is None
        await doors.remove("fleet-t-r0-v1.old")
        await doors.remove("fleet-t-r0-v1.old")
        assert await doors.inspect(made) is None


@pytest.mark.parametrize("name", BOTH_STORES)
async def test_what_is_asked_is_what_is_seen(clean_lab: Lab, name: str) -> None:
    """The fields of a rank survive the way to Docker and back."""
    pin = pin_of(clean_lab, "tiny")
    spec = ContainerSpec(
        image=pin,
        command=("sleep", "60"),
        entrypoint=("/bin/env",),
        env=(("A", "1"), ("B", "x=y")),
        mounts=(Mount("/srv/models", "/models"), Mount("/tmp", "/scratch", read_only=False)),
        devices=("/dev/null:/dev/nothing", "/dev/zero"),
        shm_bytes=1 << 26,
        ulimits=(("memlock", -1), ("stack", 67108864)),
    )
    async with fleet_of(target(clean_lab, name)) as fleet:
        node = await fleet.connect(name, 10)
        await node.containers.create("fleet-t-r0-v1", spec, await staged(clean_lab, node), {}, {})
        seen = await found(node, "fleet-t-r0-v1")
    assert (spec.entrypoint, spec.command) == (seen.entrypoint, seen.command)
    assert (spec.mounts, spec.devices, spec.shm_bytes) == (seen.mounts, seen.devices, seen.shm_bytes)
    assert set(spec.ulimits) == set(seen.ulimits)


async def test_secrets_arrive_but_never_come_back(clean_lab: Lab) -> None:
    """The value is in the process's environment; facts and errors have a reference, or nothing."""
    spec = replace(
        talker(pin_of(clean_lab, "tiny")),
        command=("sh", "-c", "test $TOKEN = s3cret-value && echo arrived"),
        env=(("TOKEN", SecretRef("env:TOKEN")),),
    )
    async with fleet_of(target(clean_lab, "node1")) as fleet:
        node = await fleet.connect("node1", 10)
        image = await staged(clean_lab, node)
        made = await node.containers.create("fleet-t-r0-v1", spec, image, {}, {"env:TOKEN": "s3cret-value"})
        await node.containers.start(made)
        await asyncio.sleep(0.5)
        assert list(await node.containers.logs(made, 10)) == ["arrived"]
        assert "s3cret-value" not in repr(await facts_of(node))


async def test_refusals_of_docker_have_a_kind(clean_lab: Lab) -> None:
    async with fleet_of(target(clean_lab, "node3")) as fleet:
        node = await fleet.connect("node3", 10)
        image = await staged(clean_lab, node)
        spec = talker(pin_of(clean_lab, "tiny"))
        await node.containers.create("fleet-t-r0-v1", spec, image, {}, {})
        lost_folder = replace(spec, mounts=(Mount("/no/such/folder", "/x"),))
        attempts = {
            ErrorKind.CONFLICT: node.containers.create("fleet-t-r0-v1", spec, image, {}, {}),
            ErrorKind.NOT_FOUND: node.containers.create("fleet-t-r0-v2", spec, "sha256:" + "0" * 64, {}, {}),
            ErrorKind.REFUSED: node.containers.create("fleet-t-r0-v3", lost_folder, image, {}, {}),
        }
        for kind, attempt in attempts.items():
            with pytest.raises(NodeError) as refused:
                await attempt
            assert kind is refused.value.kind, refused.value.message


@pytest.mark.parametrize("name", BOTH_STORES)
async def test_logs_are_read_and_followed_to_the_end(clean_lab: Lab, name: str) -> None:
    command = "echo one; echo two >&2; printf 'a\\rb\\n'; sleep 1; echo last; printf unfinished"
    spec = replace(talker(pin_of(clean_lab, "tiny")), command=("sh", "-c", command))
    async with fleet_of(target(clean_lab, name)) as fleet:
        node = await fleet.connect(name, 10)
        made = await node.containers.create("fleet-t-r0-v1", spec, await staged(clean_lab, node), {}, {})
        await node.containers.start(made)
        followed = [line async for line in node.containers.follow(made, 100)]
        # Docker 20.10 keeps a last line without an end from those who follow.
        assert {"one", "two", "a", "b", "last"} == set(followed) - {"unfinished"}
        assert list(await node.containers.logs(made, 2)) == ["last", "unfinished"]


async def to_the_end(lines: AsyncIterator[str]) -> None:
    async for _ in lines:
        pass


async def test_following_a_log_ends_with_an_error_when_the_node_dies(clean_lab: Lab) -> None:
    """And not as if the container had stopped."""
    async with fleet_of(target(clean_lab, "node2")) as fleet:
        node = await fleet.connect("node2", 10)
        made = await node.containers.create(
            "fleet-t-r0-v1", talker(pin_of(clean_lab, "tiny")), await staged(clean_lab, node), {}, {}
        )
        await node.containers.start(made)
        lines = aiter(node.containers.follow(made, 1))
        await anext(lines)
        clean_lab.nodes["node2"].stop_sshd()
        with pytest.raises(NodeError) as lost:
            await asyncio.wait_for(to_the_end(lines), 5)
        assert lost.value.is_transport


async def test_a_container_that_ran_out_says_so(clean_lab: Lab) -> None:
    spec = replace(talker(pin_of(clean_lab, "tiny")), command=("sh", "-c", "exit 3"))
    async with fleet_of(target(clean_lab, "node3")) as fleet:
        node = await fleet.connect("node3", 10)
        made = await node.containers.create("fleet-t-r0-v1", spec, await staged(clean_lab, node), {}, {})
        await node.containers.start(made)
        await asyncio.sleep(0.5)
        seen = (await facts_of(node)).container("fleet-t-r0-v1")
    assert seen is not None
    assert seen.state == "exited"


@pytest.mark.parametrize("name", BOTH_STORES)
async def test_engines_are_reached_through_the_connection(clean_lab: Lab, name: str) -> None:
    """An engine on the node's own loopback: its answers, its errors, nobody there, and one that hangs."""
    pages = "mkdir -p /w/cgi-bin && cd /w && echo hello > page"
    hang = "printf '#!/bin/sh\nsleep 60\n' > cgi-bin/hang && chmod +x cgi-bin/hang"
    serve = f"{pages} && {hang} && exec busybox httpd -f -p 127.0.0.1:8123"
    spec = replace(talker(pin_of(clean_lab, "tiny")), command=("sh", "-c", serve))
    async with fleet_of(target(clean_lab, name)) as fleet:
        node = await fleet.connect(name, 10)
        made = await node.containers.create("fleet-t-r0-v1", spec, await staged(clean_lab, node), {}, {})
        await node.containers.start(made)
        await asyncio.sleep(0.5)
        engines = node.engines
        assert _pair(await engines.http("127.0.0.1", 8123, "GET", "/page", None, 5)) == (200, b"hello\n")
        assert (await engines.http("127.0.0.1", 8123, "GET", "/none", None, 5)).status == 404
        assert await engines.accepts("127.0.0.1", 8123, 5)
        assert not await engines.accepts("127.0.0.1", 8125, 5)
        for port, kind in ((8123, ErrorKind.TIMEOUT), (8125, ErrorKind.REFUSED)):
            with pytest.raises(NodeError) as failed:
                await engines.http("127.0.0.1", port, "POST", "/cgi-bin/hang", {"a": 1}, 1)
            assert kind is failed.value.kind, failed.value.message
        listeners = {item.port: item for item in (await facts_of(node)).listeners}
        assert made == listeners[8123].container_id


def _pair(reply: object) -> tuple[int, bytes]:
    return reply.status, reply.body  # type: ignore[attr-defined]
