"""The agent on simulated nodes: what each kind of commit, drift and trouble comes to. The repository is a real one."""

import asyncio
import itertools
import shutil
import subprocess
from pathlib import Path

import pytest

from reconciler.applied import Applied
from reconciler.core.events import StepStarted
from reconciler.core.gitops.memory import Outcome, Suspension
from reconciler.core.plan import Op
from reconciler.fleet import Fleet
from reconciler.forges import ForgeError
from reconciler.gitops.memory import Accepted
from reconciler.testing import ControllerKilled, Fault
from state import StateError
from tests.lifecycle.following import START_S, Followed, git
from tests.lifecycle.harness import PAIR_AND_SOLO


@pytest.fixture
def branch(tmp_path: Path) -> Followed:
    return Followed(tmp_path)


def test_a_commit_becomes_the_fleet_and_then_there_is_nothing_to_do(branch: Followed) -> None:
    commit = branch.push()
    assert 0 == branch.once(), branch.lines
    remembered = branch.memory.recalled()
    assert (commit, commit) == (remembered.applied, remembered.good)
    assert ["gitops.commit", "gitops.planned", "gitops.applying", "gitops.applied", "gitops.planned"] == branch.kinds
    assert 0 == branch.once()
    assert ["gitops.commit", "gitops.planned"] == branch.kinds
    assert branch.story.plan().is_empty


def test_a_commit_with_a_fault_changes_nothing_and_says_where_it_is(branch: Followed) -> None:
    good = branch.push()
    branch.once()
    (branch.story.folder / "lanes.yaml").write_text("lanes: {solo: [}\n")
    broken = branch.push()
    branch.kinds  # noqa: B018 - forgotten
    assert 1 == branch.once()
    assert ["gitops.commit", "gitops.blocked"] == branch.kinds
    assert ("blocked", "broken") == (branch.status["state"], branch.status["bar"])
    assert "lanes.yaml:1" in branch.status["why"]
    assert str(branch.workplace.folder) not in "".join(branch.lines)
    assert (good, good) == (branch.memory.recalled().applied, branch.memory.recalled().good)
    assert broken == branch.status["head"]


def test_a_spec_that_is_not_there_is_told_by_its_name(branch: Followed) -> None:
    (branch.story.folder / "fleet.yaml").rename(branch.story.folder / "other.yaml")
    branch.push()
    assert 1 == branch.once()
    assert "there is no fleet.yaml in it" in branch.status["why"]


def test_a_link_that_leads_out_of_the_repository_makes_a_commit_unfit(branch: Followed) -> None:
    (branch.story.folder / "passwd").symlink_to("/etc/passwd")
    branch.push()
    assert 1 == branch.once()
    assert "passwd is a link that leads out of the repository" in branch.status["why"]
    assert {} == branch.story.running_lanes()


def test_a_branch_that_was_rewritten_stops_it_until_a_person_accepts(branch: Followed) -> None:
    first = branch.push()
    branch.once()
    git(branch.story.folder, "commit", "--quiet", "--amend", "--message", "another past")
    branch.story.place((("solo", "single-3"),))
    rewritten = branch.push("--force")
    assert 1 == branch.once()
    assert "not-forward" == branch.status["bar"]
    assert f"fleet gitops accept {rewritten[:12]}" in branch.status["hint"]
    assert {"pair": 2, "solo": 1} == branch.story.running_lanes()
    branch.memory.accept(Accepted(rewritten, first, "ops@desk", START_S))
    assert 0 == branch.once(), branch.lines
    assert {"solo": 1} == branch.story.running_lanes()
    branch.story.place(PAIR_AND_SOLO)
    git(branch.story.folder, "reset", "--quiet", "--soft", first)
    branch.push("--force")
    assert 1 == branch.once()  # what was accepted was that one commit


def test_an_empty_fleet_is_refused(branch: Followed) -> None:
    branch.push()
    branch.once()
    branch.story.place(())
    branch.push()
    assert 3 == branch.once()
    assert "empty" == branch.status["bar"]
    assert {"pair": 2, "solo": 1} == branch.story.running_lanes()


def test_a_commit_that_fails_is_rolled_back_put_aside_and_tried_once(branch: Followed) -> None:
    good = branch.push()
    branch.once()
    branch.story.edit("good.gguf", "garbage.gguf")
    bad = branch.push()
    assert 6 == branch.once(), branch.lines
    assert {"pair-a/pair", "single-3/solo"} == branch.quarantined()
    assert {"pair": 2, "solo": 1} == branch.story.running_lanes()
    assert (bad, good) == (branch.memory.recalled().applied, branch.memory.recalled().good)
    branch.kinds  # noqa: B018 - forgotten
    branch.later(86400)
    assert 3 == branch.once()
    assert "gitops.applying" not in branch.kinds
    branch.story.edit("garbage.gguf", "good.gguf")
    mended = branch.push()
    assert 0 == branch.once(), branch.lines
    assert (mended, mended) == (branch.memory.recalled().applied, branch.memory.recalled().good)


def test_a_newer_commit_takes_over_in_the_middle_of_a_long_boot(branch: Followed) -> None:
    branch.push()
    branch.once()
    branch.story.edit("ctx-size: 512", "ctx-size: 1024")
    first = branch.push()
    branch.told.clear()

    async def work() -> str:
        agent = branch.agent()
        running = asyncio.create_task(agent.run(once=True))
        while not any(isinstance(event, StepStarted) and event.step.op is Op.VERIFY for event in branch.told):
            await asyncio.sleep(1)
        branch.story.edit("ctx-size: 1024", "ctx-size: 2048")
        newer = branch.push()
        agent.wake.set()
        assert 0 == await running, branch.lines
        return newer

    newer = branch.run(work)
    outcomes = [(item.commit, item.outcome) for item in branch.memory.recalled().attempts]
    assert [(first, Outcome.INTERRUPTED), (newer, Outcome.APPLIED)] == outcomes[1:]
    assert {"pair": 2, "solo": 1} == branch.story.running_lanes()
    assert set() == branch.quarantined()
    assert newer == branch.memory.recalled().good


def test_a_newer_commit_with_a_fault_interrupts_nothing(branch: Followed) -> None:
    first = branch.push()

    async def work() -> int:
        agent = branch.agent()
        running = asyncio.create_task(agent.run(once=True))
        while not any(isinstance(event, StepStarted) and event.step.op is Op.VERIFY for event in branch.told):
            await asyncio.sleep(1)
        (branch.story.folder / "lanes.yaml").write_text("lanes: 7\n")
        branch.push()
        agent.wake.set()
        return await running

    assert 1 == branch.run(work)
    assert [Outcome.APPLIED] == [item.outcome for item in branch.memory.recalled().attempts]
    assert first == branch.memory.recalled().good
    assert {"pair": 2, "solo": 1} == branch.story.running_lanes()


def test_an_agent_that_is_told_to_stop_interrupts_and_goes_on_at_its_next_start(branch: Followed) -> None:
    commit = branch.push()

    async def work() -> int:
        agent = branch.agent()
        asyncio.get_running_loop().call_later(10, agent.stopping.set)
        return await agent.run()

    assert 130 == branch.run(work)
    assert Outcome.INTERRUPTED == branch.memory.recalled().attempts[-1].outcome
    assert 0 == branch.once(), branch.lines
    assert commit == branch.memory.recalled().good


def test_an_agent_that_died_in_the_middle_settles_and_goes_on(branch: Followed) -> None:
    commit = branch.push()
    branch.story.nodes.inject(Fault.kill(None, "start"))
    with pytest.raises(ControllerKilled):
        branch.once()
    assert Outcome.BEGUN == branch.memory.recalled().attempts[-1].outcome
    branch.later(60)
    assert 0 == branch.once(), branch.lines
    assert commit == branch.memory.recalled().good


def test_an_idle_agent_ends_at_once_when_it_is_told_to(branch: Followed) -> None:
    branch.push()

    async def work() -> int:
        agent = branch.agent()
        asyncio.get_running_loop().call_later(600, agent.stopping.set)
        return await agent.run()

    assert 0 == branch.run(work)


def test_drift_that_is_left_is_a_metric(branch: Followed) -> None:
    branch.push()
    branch.once()
    branch.story.nodes.node("node3").kill("fleet-solo-r0-v1")

    async def work() -> bytes:
        agent = branch.agent("report")
        await agent.run(once=True)
        return agent.metrics.text()

    assert b"fleet_gitops_drifted 1.0" in branch.run(work)


def test_drift_is_repaired_with_heal_on_told_with_report_and_left_with_off(branch: Followed) -> None:
    commit = branch.push()
    branch.once()
    branch.story.nodes.node("node3").kill("fleet-solo-r0-v1")
    assert 2 == branch.once(heal="off")
    assert 2 == branch.once(heal="report")
    assert ["single-3/solo"] == branch.status["drifted"]
    assert {"pair": 2} == branch.story.running_lanes()
    branch.kinds  # noqa: B018 - forgotten
    assert 0 == branch.once(heal="on"), branch.lines
    assert {"gitops.healing", "gitops.healed"} <= set(branch.kinds)
    assert {"pair": 2, "solo": 1} == branch.story.running_lanes()
    assert [commit] == [item.commit for item in branch.memory.recalled().attempts]


def test_a_broken_commit_and_a_dead_remote_do_not_switch_healing_off(branch: Followed) -> None:
    branch.push()
    branch.once()
    (branch.story.folder / "lanes.yaml").write_text("lanes: 7\n")
    branch.push()
    branch.story.nodes.node("node3").kill("fleet-solo-r0-v1")
    branch.once(heal="on")
    assert {"pair": 2, "solo": 1} == branch.story.running_lanes()
    branch.bare.rename(branch.bare.with_name("away.git"))
    branch.later(3600)
    branch.story.nodes.node("node3").kill("fleet-solo-r0-v1")
    assert 1 == branch.once(heal="on")
    assert {"pair": 2, "solo": 1} == branch.story.running_lanes()
    assert branch.status["fetch_error"]


def test_a_lane_that_drifts_again_and_again_is_given_up_loudly(branch: Followed) -> None:
    branch.push()
    branch.once()
    for _ in range(4):
        branch.story.nodes.node("node3").kill("fleet-solo-r0-v1")
        branch.once(heal="on")
        branch.later(1800)
    assert {"pair": 2} == branch.story.running_lanes()
    assert "gitops.gave_up" in branch.kinds
    assert ["single-3/solo"] == [item["gang"] for item in branch.status["gave_up"]]
    assert any("gave up on single-3/solo" in line for line in branch.lines)
    branch.memory.retry()
    branch.once(heal="on")
    assert {"pair": 2, "solo": 1} == branch.story.running_lanes()


def test_a_suspended_agent_changes_nothing_until_it_lapses(branch: Followed) -> None:
    branch.push()
    branch.memory.suspend(Suspension("ops@desk", "a demo", START_S, START_S + 3600))
    assert 3 == branch.once()
    assert "suspended by ops@desk: a demo" in branch.status["why"]
    assert {} == branch.story.running_lanes()
    branch.later(3601)
    assert 0 == branch.once(), branch.lines


def test_a_closed_window_holds_a_commit_up_and_the_agent_takes_it_up_when_it_opens(branch: Followed) -> None:
    with (branch.story.folder / "fleet.yaml").open("a") as spec:
        spec.write("gitops: {windows: [{allow: '0 12 * * *', for: 1h}]}\n")
    commit = branch.push()  # it is 8:00 UTC

    async def work() -> float:
        agent = branch.agent()
        running = asyncio.create_task(agent.run())
        while branch.memory.recalled().good != commit:
            await asyncio.sleep(60)
        agent.stopping.set()
        await running
        return asyncio.get_running_loop().time()

    assert 4 * 3600 < branch.run(work) < 4 * 3600 + 600
    assert 1 == branch.kinds.count("gitops.waiting")


def test_a_copy_of_the_branch_that_is_damaged_or_gone_is_made_anew(branch: Followed) -> None:
    branch.push()
    branch.once()
    for path in [*branch.workplace.mirror.glob("objects/pack/*.pack"), *branch.workplace.mirror.glob("objects/??/*")]:
        path.chmod(0o644)
        path.write_bytes(b"nonsense")
    branch.story.edit("ctx-size: 512", "ctx-size: 1024")
    commit = branch.push()
    assert 0 == branch.once(), branch.lines
    shutil.rmtree(branch.workplace.mirror)
    shutil.rmtree(branch.workplace.folder / "trees")
    assert 0 == branch.once(), branch.lines
    assert commit == branch.memory.recalled().good
    assert branch.story.plan().is_empty


def test_the_state_and_the_vault_outlive_the_trees_of_commits(branch: Followed) -> None:
    for size in range(4):
        branch.story.edit(f"ctx-size: {512 + size}", f"ctx-size: {513 + size}")
        commit = branch.push()
        branch.once()
    assert [commit] == [path.name for path in (branch.workplace.folder / "trees").iterdir()]
    current = branch.workplace.current
    assert commit == current.resolve().name
    assert branch.workplace.folder / "state" == (current / ".fleet").resolve()
    assert branch.workplace.folder / "vault" == (current / "vault").resolve()


def test_only_commits_of_allowed_signers_are_applied(branch: Followed, tmp_path: Path) -> None:
    key, signers = tmp_path / "key", tmp_path / "signers"
    for name in (key, tmp_path / "other"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(name)], check=True)
    signers.write_text(f"ops {key.with_suffix('.pub').read_text()}")
    branch.push()
    assert 1 == branch.once(signers=signers)
    assert "it is not signed" in branch.status["why"]
    clone = branch.story.folder
    git(clone, "config", "gpg.format", "ssh")
    git(clone, "config", "commit.gpgSign", "true")
    git(clone, "config", "user.signingKey", str(tmp_path / "other"))
    branch.push()
    assert 1 == branch.once(signers=signers)
    assert "its signature is not accepted" in branch.status["why"]
    assert not (branch.workplace.folder / "trees").exists()  # what nobody vouches for is not even written out
    git(clone, "config", "user.signingKey", str(key))
    branch.push()
    assert 0 == branch.once(signers=signers), branch.lines


def test_a_forge_hears_of_each_commit_and_one_that_is_down_changes_nothing(branch: Followed) -> None:
    heard: list[tuple[str, ...]] = []

    class Hearing:
        async def set_status(self, commit: str, context: str, state: str, description: str, url: str = "") -> None:
            heard.append((commit, context, state))

        async def comment(self, commit: str, body: str) -> None:
            heard.append((commit, "comment", ""))
            raise ForgeError("the forge is down")

        async def comment_on(self, request: int, body: str) -> None:
            raise AssertionError("nobody asked for it")

    commit = branch.push()

    async def work() -> int:
        agent = branch.agent()
        agent.telling.about = lambda spec: agent.telling.to(Hearing(), spec.fleet)  # type: ignore[method-assign]
        return await agent.run(once=True)

    assert 0 == branch.run(work), branch.lines
    states = [state for _, context, state in heard if context == "fleet/lab"]
    assert ("pending", "success") == (states[0], states[-1])
    assert (commit, "comment", "") in heard
    assert any("the forge is down" in line for line in branch.lines)


def test_a_record_that_fails_is_no_attempt_of_the_commit(branch: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = branch.push()

    async def apply(*_: object, **__: object) -> Applied:
        raise StateError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(Fleet, "apply", apply)
        assert 1 == branch.once()
    assert "gitops.failed" in branch.kinds
    assert Outcome.INTERRUPTED == branch.memory.recalled().attempts[-1].outcome
    assert 0 == branch.once(), branch.lines
    assert commit == branch.memory.recalled().good


def test_a_record_that_stays_away_is_tried_ever_more_seldom(branch: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    branch.push()
    tries: list[float] = []

    async def apply(*_: object, **__: object) -> Applied:
        tries.append(asyncio.get_running_loop().time())
        raise StateError("the disk is full")

    async def work() -> None:
        agent = branch.agent()
        running = asyncio.ensure_future(agent.run())
        await asyncio.sleep(3600)
        agent.stopping.set()
        await running

    monkeypatch.setattr(Fleet, "apply", apply)
    branch.run(work)
    rests = [round(after - before, -1) for before, after in itertools.pairwise(tries)]
    assert [60, 120, 240, 480, 600, 600, 600] == rests[:7]
