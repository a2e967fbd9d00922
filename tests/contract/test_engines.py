"""Contract of `protocols.EngineAccess`."""

import asyncio
from dataclasses import replace

import pytest

from reconciler.core.answers import Answer, probe_request
from reconciler.core.desired import HealthGate, Mount
from reconciler.core.gate import judge_models, judge_probe
from reconciler.core.probes import Probe
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.protocols import Node
from tests.contract.programs import (
    CLOSED_PORT,
    ENGINE,
    ENGINE_PORT,
    HANGER,
    HANGING_PORT,
    SLEEPER,
    WEB,
    WEB_PORT,
)
from tests.contract.subject import MODELS, NAME, Scene, Subject, Told, scene

GATE = HealthGate("127.0.0.1", ENGINE_PORT, served_name="tiny")
PROBE = Probe("chat", "What is the capital of France?", expect="Paris")


async def until_open(node: Node, port: int) -> None:
    async with asyncio.timeout(20):
        while not await node.engines.accepts("127.0.0.1", port, 2):
            await asyncio.sleep(0.1)


@scene
async def test_a_closed_port_is_refused_and_accepts_nothing(play: Scene, subject: Subject) -> None:
    assert not await play.node.engines.accepts("127.0.0.1", CLOSED_PORT, 2)
    with pytest.raises(NodeError) as refused:
        await play.node.engines.http("127.0.0.1", CLOSED_PORT, "GET", "/health", None, 5)
    assert refused.value.kind is ErrorKind.REFUSED


@scene
async def test_an_answer_comes_with_its_status(play: Scene, subject: Subject) -> None:
    await play.run(WEB)
    await until_open(play.node, WEB_PORT)
    assert (await play.node.engines.http("127.0.0.1", WEB_PORT, "GET", "/nothing", None, 5)).status == 404


@scene
async def test_the_port_closes_with_its_container(play: Scene, subject: Subject) -> None:
    await play.run(WEB)
    await until_open(play.node, WEB_PORT)
    await play.node.containers.stop(NAME, 1)
    assert not await play.node.engines.accepts("127.0.0.1", WEB_PORT, 2)


@scene
async def test_an_answer_that_does_not_come_is_a_timeout(play: Scene, subject: Subject) -> None:
    await play.run(HANGER)
    await asyncio.sleep(1)
    loop = asyncio.get_running_loop()
    since = loop.time()
    with pytest.raises(NodeError) as late:
        await play.node.engines.http("127.0.0.1", HANGING_PORT, "POST", "/v1/chat/completions", {"messages": []}, 2)
    assert late.value.kind is ErrorKind.TIMEOUT
    assert 1.9 <= loop.time() - since < 4


@scene
async def test_an_engine_loads_serves_and_is_asked(play: Scene, subject: Subject) -> None:
    image = await play.node.images.stage(subject.engine_image, subject.platform, Told())
    spec = replace(play.spec(ENGINE), image=subject.engine_image, mounts=(Mount(MODELS, "/models"),))
    await play.node.containers.create(NAME, spec, image.id, {}, {})
    await play.node.containers.start(NAME)
    await until_open(play.node, ENGINE_PORT)
    engines = play.node.engines
    async with asyncio.timeout(60):
        while (await engines.http(subject.address, ENGINE_PORT, "GET", "/health", None, 5)).status == 503:
            await asyncio.sleep(0.1)
    health = await engines.http("127.0.0.1", ENGINE_PORT, "GET", "/health", None, 5)
    models = await engines.http("127.0.0.1", ENGINE_PORT, "GET", "/v1/models", None, 5)
    method, path, body = probe_request(GATE.served_name, PROBE)
    answer = await engines.http("127.0.0.1", ENGINE_PORT, method, path, body, 30)
    assert health.status == 200
    assert judge_models(GATE, Answer(models.status, models.body)) is None
    assert judge_probe(PROBE, Answer(answer.status, answer.body)) is None


@scene
async def test_a_container_that_listens_nowhere_opens_nothing(play: Scene, subject: Subject) -> None:
    await play.run(SLEEPER)
    assert not await play.node.engines.accepts(subject.address, ENGINE_PORT, 2)
