"""A report of a commit comes whole, or warns: it raises nothing, and takes no longer than its budget."""

import asyncio

import pytest

import specs
from reconciler.forges import Forge, State, client, forge_of
from reconciler.forges.reporting import report
from reconciler.views.forge_text import CommitStatus
from tests.unit.forges.server import KINDS, SHA, TOKEN, Trouble, running


class Slow:
    """A forge that takes nothing in time."""

    async def set_status(self, commit: str, context: str, state: State, description: str, url: str = "") -> None:
        await asyncio.sleep(60)

    async def comment(self, commit: str, body: str) -> None:
        await asyncio.sleep(60)

    async def comment_on(self, request: int, body: str) -> None:
        await asyncio.sleep(60)


STATUSES = [CommitStatus(f"fleet/lab/c/lane{number:03}", "pending", "to do") for number in range(150)]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "FIRST_WAIT_S", 0.001)
    monkeypatch.setenv("FORGE_TOKEN", TOKEN)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def at(address: str) -> Forge:
    told = {"kind": "github", "url": address, "repo": "ops/fleet", "token": {"secret": "env:FORGE_TOKEN"}}
    return forge_of(specs.Forge.model_validate(told))


def test_a_report_is_its_statuses_and_its_comment() -> None:
    said: list[str] = []
    with running(KINDS["github"]()) as server:
        taken = asyncio.run(report(at(server.address), SHA, STATUSES, "text", warn=said.append, link="https://ci/1"))
    assert (True, []) == (taken, said)
    assert [item.context for item in STATUSES[:100]] == sorted(status["context"] for status in server.statuses)
    assert {"https://ci/1"} == {status["target_url"] for status in server.statuses}
    assert ["<!-- fleet -->\ntext"] == server.bodies("issues/7")


def test_a_forge_that_is_away_is_warned_of_once_and_not_asked_a_hundred_times() -> None:
    said: list[str] = []
    with running(KINDS["github"]()) as server:
        server.troubles = [Trouble(503)] * 1000
        assert not asyncio.run(report(at(server.address), SHA, STATUSES, "text", warn=said.append))
    assert [f"the forge was not told of {SHA[:12]}: "] == [line.partition("127")[0] for line in said]
    assert len(server.asked) <= 2 * (4 + 1) * client.ATTEMPTS


def test_a_report_ends_within_its_budget() -> None:
    said: list[str] = []
    assert not asyncio.run(report(Slow(), SHA, STATUSES, "text", warn=said.append, budget_s=0.05))
    assert ["within 0.05 s" in line for line in said] == [True]


def test_who_is_cancelled_stops_telling() -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(report(Slow(), SHA, STATUSES, warn=lambda text: None))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
