"""What simulated engines do, alone and over several nodes."""

import asyncio
import json

import pytest

from reconciler.core.answers import answer_text
from reconciler.core.desired import ContainerSpec
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.testing import (
    Behaviour,
    DiesAfterReady,
    Exits,
    Garbage,
    HangsOnGeneration,
    NeverHealthy,
    OutOfMemory,
    Serves,
    SimulatedNode,
    Worker,
    llamacpp_behaviour,
)
from reconciler.testing.llamacpp import QUESTION
from tests.unit.testing.samples import HEAD_PORT, IMAGE, a_fleet, boot, head, play, running, worker

CHAT = {"messages": [{"role": "user", "content": QUESTION}], "model": "tiny"}


async def status(node: SimulatedNode, path: str = "/health", port: int = HEAD_PORT) -> int:
    return (await node.engines.http("127.0.0.1", port, "GET", path, None, 5)).status


async def ask(node: SimulatedNode) -> tuple[int, str | None]:
    reply = await node.engines.http("127.0.0.1", HEAD_PORT, "POST", "/v1/chat/completions", CHAT, 5)
    return reply.status, answer_text(reply.body)


def test_a_head_loads_then_serves() -> None:
    fleet = a_fleet()

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        await boot(node, "head", head())
        assert await status(node) == 503
        assert await status(node, "/v1/models") == 503
        await asyncio.sleep(31)
        assert await status(node) == 200
        models = await node.engines.http("127.0.0.1", HEAD_PORT, "GET", "/v1/models", None, 5)
        assert [item["id"] for item in json.loads(models.body)["data"]] == ["tiny"]
        assert await ask(node) == (200, " Paris is the capital of France.")
        assert await status(node, "/nothing") == 404

    play(fleet, scene)


def test_a_text_completion_echoes_what_it_does_not_know() -> None:
    fleet = a_fleet()

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        await boot(node, "head", head())
        await asyncio.sleep(31)
        reply = await node.engines.http("10.0.0.1", HEAD_PORT, "POST", "/v1/completions", {"prompt": "hello"}, 5)
        assert answer_text(reply.body) == "hello"

    play(fleet, scene)


def test_another_models_name_is_refused() -> None:
    fleet = a_fleet()

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        await boot(node, "head", head())
        await asyncio.sleep(31)
        body = {"prompt": "hello", "model": "other"}
        assert (await node.engines.http("127.0.0.1", HEAD_PORT, "POST", "/v1/completions", body, 5)).status == 404

    play(fleet, scene)


def test_a_head_serves_while_its_worker_runs_and_answers_500_after() -> None:
    fleet = a_fleet()

    async def scene() -> None:
        first, second = await fleet.connect("n1", 5), await fleet.connect("n2", 5)
        await boot(second, "worker", worker("10.0.0.2"))
        await asyncio.sleep(2)
        assert await first.engines.accepts("10.0.0.2", 50052, 1)
        await boot(first, "head", head("/models/good.gguf", "10.0.0.2"))
        await asyncio.sleep(31)
        assert (await ask(first))[0] == 200
        fleet.node("n2").kill("worker")
        assert await status(first) == 200
        assert (await ask(first))[0] == 500

    play(fleet, scene)


def test_a_head_without_its_worker_ends_and_says_so() -> None:
    fleet = a_fleet()

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        await boot(node, "head", head("/models/good.gguf", "10.0.0.2"))
        await asyncio.sleep(31)
        found = await node.containers.inspect("head")
        assert found is not None
        assert (found.state, found.exit_code) == ("exited", 1)
        assert (await node.containers.logs("head", 1)) == ("failed to connect to 10.0.0.2:50052",)

    play(fleet, scene)


def test_a_garbage_model_is_healthy_and_wrong() -> None:
    fleet = a_fleet()

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        await boot(node, "head", head("/models/garbage.gguf"))
        await asyncio.sleep(31)
        code, text = await ask(node)
        assert code == 200
        assert text is not None
        assert "Paris" not in text

    play(fleet, scene)


def test_a_port_that_is_taken_ends_the_second_one() -> None:
    fleet = a_fleet()
    fleet.add_foreign("n1", "open-webui", ports=(HEAD_PORT,))

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        await boot(node, "head", head())
        found = await node.containers.inspect("head")
        assert found is not None
        assert found.exit_code == 1
        assert "Address already in use" in (await node.containers.logs("head", 1))[0]

    play(fleet, scene)


@pytest.mark.parametrize(
    ("behaviour", "after_s", "code", "oom"),
    [
        (Exits(after_s=2, code=3, lines=("bad flag",)), 3, 3, False),
        (OutOfMemory(after_s=4), 5, 137, True),
        (DiesAfterReady("tiny", HEAD_PORT, boot_s=10, after_s=10), 21, 1, False),
        (Serves("tiny", HEAD_PORT, memory_bytes=1 << 50), 13, 137, True),
    ],
)
def test_engines_that_end_by_themselves(behaviour: Behaviour, after_s: float, code: int, oom: bool) -> None:
    image, spec = running(behaviour)
    fleet = a_fleet(1, 7, image)

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        made = await boot(node, "engine", spec)
        found = await node.containers.inspect(made)
        assert found is not None
        assert found.state == "running"
        await asyncio.sleep(after_s)
        found = await node.containers.inspect(made)
        assert found is not None
        assert (found.state, found.exit_code, found.oom_killed) == ("exited", code, oom)

    play(fleet, scene)


def test_one_that_hangs_on_generation_is_healthy_and_times_out() -> None:
    image, spec = running(HangsOnGeneration("tiny", HEAD_PORT, boot_s=5))
    fleet = a_fleet(1, 7, image)

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        await boot(node, "engine", spec)
        await asyncio.sleep(6)
        assert await status(node) == 200
        before = fleet.now_s
        with pytest.raises(NodeError) as late:
            await ask(node)
        assert late.value.kind is ErrorKind.TIMEOUT
        assert fleet.now_s - before == pytest.approx(5, abs=0.1)

    play(fleet, scene)


def test_one_that_never_gets_healthy_may_chatter_or_fall_silent() -> None:
    image, spec = running(NeverHealthy("tiny", HEAD_PORT, boot_s=5, chatter_s=60))
    fleet = a_fleet(1, 7, image)

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        await boot(node, "engine", spec)
        await asyncio.sleep(3600)
        assert await status(node) == 503
        assert (await node.containers.logs("engine", 1)) == ("still waiting (59)",)

    play(fleet, scene)
    silent = NeverHealthy("tiny", HEAD_PORT, boot_s=5)
    assert max(moment.after_s for moment in silent.moments()) <= 5


def test_what_ignores_sigterm_is_killed_after_its_grace() -> None:
    image, spec = running(Serves("tiny", HEAD_PORT, stop_s=None))
    fleet = a_fleet(1, 7, image)

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        await boot(node, "engine", spec)
        before = fleet.now_s
        await node.containers.stop("engine", 30)
        assert fleet.now_s - before == pytest.approx(30, abs=0.1)
        found = await node.containers.inspect("engine")
        assert found is not None
        assert found.exit_code == 137

    play(fleet, scene)


def test_memory_is_taken_while_it_loads_and_comes_back_some_time_after_the_end() -> None:
    fleet = a_fleet()

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        empty = (await node.observer.observe()).memory_available_bytes
        await boot(node, "head", head())
        await asyncio.sleep(31)
        loaded = (await node.observer.observe()).memory_available_bytes
        await node.containers.stop("head", 10)
        stopped = (await node.observer.observe()).memory_available_bytes
        await asyncio.sleep(5)
        later = (await node.observer.observe()).memory_available_bytes
        assert empty is not None
        assert (loaded, stopped, later) == (empty - 4 * 2**30, empty - 4 * 2**30, empty)

    play(fleet, scene)


def test_a_started_again_container_lives_a_new_life() -> None:
    fleet = a_fleet()

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        await boot(node, "head", head())
        await asyncio.sleep(20)
        await node.containers.stop("head", 10)
        await node.containers.start("head")
        await asyncio.sleep(20)
        assert await status(node) == 503
        await asyncio.sleep(11)
        assert await status(node) == 200

    play(fleet, scene)


def test_llamacpp_command_lines_are_understood() -> None:
    read = llamacpp_behaviour(head("/m/x.gguf", "10.0.0.2", "10.0.0.3"))
    assert isinstance(read, Serves)
    assert (read.served_name, read.port, read.host) == ("tiny", HEAD_PORT, "0.0.0.0")
    assert read.peers == (("10.0.0.2", 50052), ("10.0.0.3", 50052))
    assert isinstance(llamacpp_behaviour(head("/m/garbage.gguf")), Garbage)
    assert llamacpp_behaviour(worker("10.0.0.2")).ports == (("10.0.0.2", 50052),)
    by_path = ContainerSpec(IMAGE.pin, ("/usr/bin/ggml-rpc-server",))
    assert llamacpp_behaviour(by_path) == Worker(50052, host="127.0.0.1", memory_bytes=4 * 2**30)
    assert llamacpp_behaviour(ContainerSpec(IMAGE.pin, ("sleep", "1"))) == Exits(after_s=0.1, code=0)


def test_what_listens_on_loopback_only_is_not_there_for_others() -> None:
    fleet = a_fleet()

    async def scene() -> None:
        first, second = await fleet.connect("n1", 5), await fleet.connect("n2", 5)
        await boot(first, "worker", ContainerSpec(IMAGE.pin, ("-H", "127.0.0.1"), ("ggml-rpc-server",)))
        await asyncio.sleep(2)
        assert await first.engines.accepts("127.0.0.1", 50052, 1)
        assert not await first.engines.accepts("10.0.0.1", 50052, 1)
        assert not await second.engines.accepts("10.0.0.1", 50052, 1)

    play(fleet, scene)
