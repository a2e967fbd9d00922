"""The agent tells its forge in the background: the newest word of each thing, again when it was away, and no more."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

import specs
from reconciler.applied import Applied
from reconciler.core.exits import Exit
from reconciler.core.machine import Status
from reconciler.core.plan import Op
from reconciler.execution.runner import Failure
from reconciler.forges import client
from reconciler.gitops import telling
from reconciler.gitops.log import Log
from reconciler.gitops.telling import Telling
from tests.unit.forges.server import KINDS, ON_REQUEST, REPOS, SHA, TOKEN, ForgeServer, Trouble, running
from tests.unit.views import scenes


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(telling, "FIRST_WAIT_S", 0.001)
    monkeypatch.setenv("FORGE_TOKEN", TOKEN)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture(params=sorted(KINDS))
def server(request: pytest.FixtureRequest) -> Iterator[ForgeServer]:
    with running(KINDS[request.param]()) as forge:
        yield forge


@pytest.fixture
def github() -> Iterator[ForgeServer]:
    with running(KINDS["github"]()) as forge:
        yield forge


def spec(server: ForgeServer) -> specs.Spec:
    forge = {"kind": server.kind, "url": server.address, "repo": REPOS[server.kind]}
    return specs.Spec.model_validate(
        {"fleet": "lab", "gitops": {"forge": {**forge, "token": {"secret": "env:FORGE_TOKEN"}}}}
    )


def say(server: ForgeServer, words: Callable[[Telling], None], *more: Callable[[Telling], None]) -> list[str]:
    """Say things one after the other, each heard before the next; the lines of the log."""
    lines: list[str] = []

    async def work() -> None:
        told = Telling(Log(lines.append, lambda: 0.0))
        told.about(spec(server))
        for one in (words, *more):
            one(told)
            async with asyncio.timeout(20):
                while told._left:
                    await asyncio.sleep(0.01)
        await told.end()

    asyncio.run(work())
    return lines


def states(server: ForgeServer) -> dict[str, str]:
    """The newest state of each context."""
    gitlab = server.kind == "gitlab"
    return {item["name" if gitlab else "context"]: item["status" if gitlab else "state"] for item in server.statuses}


def applied(code: Exit, *bad: Failure) -> Applied:
    plan = scenes.demo()
    failed = {item.step.id for item in bad}
    status = {step.id: Status.APPLIED for step in plan.steps if step.id not in failed}
    return Applied("r1", code, "it ended so", bad, status)


def test_an_apply_is_told_from_its_beginning_to_its_end(server: ForgeServer) -> None:
    plan = scenes.demo()
    said = say(
        server,
        lambda told: told.begins(plan, SHA),
        lambda told: told.ended(plan, SHA, applied(Exit.OK)),
        lambda told: told.ended(plan, SHA, applied(Exit.OK)),
    )
    assert [] == said
    lane = f"fleet/lab/{scenes.QUAD.address}"
    assert {"fleet/lab": "success", lane: "success"} == states(server)
    (body,) = server.bodies(ON_REQUEST[server.kind])
    assert "### fleet lab: applied\n" in body
    sent = [asked for asked in server.asked if asked.method == "POST" and "statuses" in asked.path]
    assert 4 == len(sent)  # what was said is not said again


def test_a_step_that_failed_is_in_its_lanes_status_and_in_the_comment(github: ForgeServer) -> None:
    plan = scenes.demo()
    step = next(step for step in plan.steps if step.op is Op.VERIFY)
    failure = Failure(step, Status.FAILED, "answers nonsense", ("last line",))
    say(github, lambda told: told.ended(plan, SHA, applied(Exit.UNCHANGED, failure)))
    assert {"failure"} == set(states(github).values())
    (body,) = github.bodies(ON_REQUEST["github"])
    assert "answers nonsense" in body
    assert "`last line`" in body


def test_a_forge_that_was_away_hears_it_later_and_is_warned_of_once(github: ForgeServer) -> None:
    github.troubles = [Trouble(503)] * 30
    said = say(github, lambda told: told.applied(SHA, "nothing to do"))
    assert {"fleet/lab": "success"} == states(github)
    assert 1 == len(said)
    assert "the forge was not told" in said[0]


def test_what_a_forge_will_never_take_is_not_said_for_ever(github: ForgeServer) -> None:
    github.troubles = [Trouble(422)]
    said = say(github, lambda told: told.applied(SHA, "nothing to do"))
    assert (1, 1) == (len(said), len(github.asked))


def test_a_newer_word_takes_the_place_of_one_that_waits(github: ForgeServer) -> None:
    plan = scenes.demo()

    def both(told: Telling) -> None:
        told.begins(plan, SHA)
        told.ended(plan, SHA, applied(Exit.OK))

    say(github, both)
    assert {"success"} == {item["state"] for item in github.statuses}


def test_the_end_of_an_agent_does_not_wait_for_a_forge(github: ForgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "LAST_WORDS_S", 0.1)
    github.troubles = [Trouble(503)] * 1000

    async def work() -> None:
        told = Telling(Log(lambda line: None, lambda: 0.0))
        told.about(spec(github))
        told.applied(SHA, "nothing to do")
        async with asyncio.timeout(5):
            await told.end()

    asyncio.run(work())


def test_a_spec_without_a_forge_tells_nobody() -> None:
    async def work() -> None:
        told = Telling(Log(lambda line: None, lambda: 0.0))
        told.about(specs.Spec.model_validate({"fleet": "lab"}))
        told.begins(scenes.demo(), SHA)
        await told.end()
        assert not told._left

    asyncio.run(work())
