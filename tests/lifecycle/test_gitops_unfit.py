"""Commits, copies and folders that are not as they should be: repairs go on, and nothing is stopped for them."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.core.events import StepStarted
from reconciler.core.gitops.memory import Outcome, Remembered, Suspension
from reconciler.core.plan import Op
from reconciler.gitops.git import GitError
from reconciler.gitops.memory import Memory
from reconciler.gitops.workplace import WorkError, Workplace
from state import StateError
from tests.lifecycle.following import Followed, git

WHOLE = {"pair": 2, "solo": 1}


@pytest.fixture
def branch(tmp_path: Path) -> Followed:
    return Followed(tmp_path)


def kill(branch: Followed) -> None:
    branch.story.nodes.node("node3").kill("fleet-solo-r0-v1")


def a_circle(folder: Path) -> None:
    (folder / "a").symlink_to("a")


def a_vault_in_a_file(folder: Path) -> None:
    spec = folder / "fleet.yaml"
    spec.write_text(spec.read_text().replace("vault: vault", "vault: lanes.yaml/vault"))


def a_folder_for_the_lock(folder: Path) -> None:
    (folder / "fleet.lock").mkdir()
    (folder / "fleet.lock" / "x").write_text("")


@pytest.mark.parametrize("break_it", [a_circle, a_vault_in_a_file, a_folder_for_the_lock])
def test_files_that_cannot_be_used_make_a_commit_broken_and_repairs_go_on(
    branch: Followed, break_it: Callable[[Path], None]
) -> None:
    branch.push()
    branch.once()
    break_it(branch.story.folder)
    branch.push()
    kill(branch)
    assert 1 == branch.once(heal="on"), branch.lines
    assert ("broken", WHOLE) == (branch.status["bar"], branch.story.running_lanes())
    assert str(branch.workplace.folder) not in branch.status["why"]


def test_a_commit_whose_files_do_not_fit_on_the_disk_waits_and_repairs_go_on(
    branch: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch.push()
    branch.once()
    branch.story.edit("ctx-size: 512", "ctx-size: 1024")
    commit = branch.push()
    kill(branch)
    written = Workplace.written

    async def full(self: Workplace, mirror: object, which: str) -> Path:
        if which == commit:
            raise GitError("git checkout-index: no space left on device")
        return await written(self, mirror, which)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(Workplace, "written", full)
        branch.once(heal="on")
        assert WHOLE == branch.story.running_lanes()
        assert 1 == branch.once(heal="on")
        assert "no space left on device" in branch.status["why"]
    assert 0 == branch.once(), branch.lines
    assert commit == branch.memory.recalled().good


def test_a_rewritten_branch_is_told_though_nothing_is_left_of_what_was_applied(branch: Followed) -> None:
    branch.push()
    branch.once()
    git(branch.story.folder, "commit", "--quiet", "--amend", "--message", "another past")
    branch.push("--force")
    shutil.rmtree(branch.workplace.folder / "trees")
    shutil.rmtree(branch.workplace.mirror)
    assert 1 == branch.once(heal="on")
    assert "not-forward" == branch.status["bar"]


def test_an_agent_in_a_new_folder_goes_only_forward_from_what_a_shared_record_says(
    branch: Followed, tmp_path: Path
) -> None:
    spec, shared = branch.story.folder / "fleet.yaml", f"state: {tmp_path}/shared\n"
    spec.write_text(spec.read_text() + shared)
    branch.push()
    assert 0 == branch.once(), branch.lines
    branch.story.place((("solo", "single-3"),))
    spec.write_text(spec.read_text().replace(shared, "") + shared)
    git(branch.story.folder, "add", "--all")
    git(branch.story.folder, "commit", "--quiet", "--amend", "--message", "another past")
    branch.push("--force")
    branch.workplace = Workplace(tmp_path / "elsewhere")
    assert 1 == branch.once(), branch.lines
    assert ("not-forward", WHOLE) == (branch.status["bar"], branch.story.running_lanes())


def no_lane(branch: Followed) -> None:
    branch.story.place(())


def more(text: str) -> Callable[[Followed], None]:
    def write(branch: Followed) -> None:
        branch.story.edit("ctx-size: 1024", "ctx-size: 2048")
        with (branch.story.folder / "fleet.yaml").open("a") as spec:
            spec.write(f"gitops: {{{text}}}\n")

    return write


def suspended(branch: Followed) -> None:
    branch.story.edit("ctx-size: 1024", "ctx-size: 2048")
    branch.memory.suspend(Suspension("ops@desk", "a demo", branch.now_s, None))


@pytest.mark.parametrize(
    "edit",
    [no_lane, more("windows: [{deny: '* * * * *', for: 1h}]"), more("protected: [solo, pair]"), suspended],
    ids=["empty", "window", "protected", "suspended"],
)
def test_a_newer_commit_that_would_not_be_applied_interrupts_nothing(
    branch: Followed, edit: Callable[[Followed], None]
) -> None:
    branch.push()
    branch.once()
    branch.story.edit("ctx-size: 512", "ctx-size: 1024")
    first = branch.push()
    branch.told.clear()

    async def work() -> int:
        agent = branch.agent()
        running = asyncio.create_task(agent.run(once=True))
        while not any(isinstance(event, StepStarted) and event.step.op is Op.VERIFY for event in branch.told):
            await asyncio.sleep(1)
        edit(branch)
        branch.push()
        agent.wake.set()
        return await running

    assert 3 == branch.run(work), branch.lines
    tried = [(item.commit, item.outcome) for item in branch.memory.recalled().attempts]
    assert [(first, Outcome.APPLIED)] == tried[1:]
    assert (first, WHOLE) == (branch.memory.recalled().good, branch.story.running_lanes())


def test_a_look_that_fails_in_an_apply_does_not_end_the_watch(
    branch: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch.push()
    branch.once()
    branch.story.edit("ctx-size: 512", "ctx-size: 1024")
    branch.push()
    branch.told.clear()

    async def work() -> str:
        agent = branch.agent()
        running = asyncio.create_task(agent.run(once=True))
        while not any(isinstance(event, StepStarted) and event.step.op is Op.VERIFY for event in branch.told):
            await asyncio.sleep(1)
        with monkeypatch.context() as patched:
            patched.setattr(type(agent.mirror), "descends", _failing)
            branch.story.edit("ctx-size: 1024", "ctx-size: 2048")
            newer = branch.push()
            agent.wake.set()
            while not any("out of memory" in line for line in branch.lines):
                await asyncio.sleep(1)
        agent.wake.set()
        assert 0 == await running, branch.lines
        return newer

    assert branch.run(work) == branch.memory.recalled().good
    assert Outcome.INTERRUPTED == branch.memory.recalled().attempts[1].outcome


async def _failing(*_: object) -> bool:
    raise GitError("git merge-base: out of memory")


def test_an_end_that_cannot_be_recorded_leaves_nothing_under_way(
    branch: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = branch.push()
    update = Memory.update

    def full(self: Memory, change: Callable[[Remembered], Remembered]) -> Remembered:
        if any(item.outcome is Outcome.BEGUN for item in self.recalled().attempts):
            raise StateError("the disk is full")
        return update(self, change)

    with monkeypatch.context() as patched:
        patched.setattr(Memory, "update", full)
        branch.once()
    assert branch.status["doing"] is None
    assert 0 == branch.once(), branch.lines
    assert commit == branch.memory.recalled().good


def test_an_agent_whose_folder_was_removed_ends_and_says_so(branch: Followed) -> None:
    branch.push()

    async def work(is_taken: Callable[[], bool]) -> None:
        agent = branch.agent()
        agent.has_folder = is_taken
        running = asyncio.create_task(agent.run())
        await asyncio.sleep(300)
        branch.workplace.folder.rename(branch.workplace.folder.with_name("away"))
        await running

    with branch.workplace.taken() as is_taken, pytest.raises(WorkError, match="was removed or replaced"):
        branch.run(lambda: work(is_taken))
    assert not branch.workplace.folder.exists()


def test_what_an_agent_that_died_left_among_the_trees_goes(branch: Followed) -> None:
    trees = branch.workplace.folder / "trees"
    (trees / ".abc.1").mkdir(parents=True)
    (trees / ".abc.1.index").write_text("")
    commit = branch.push()
    branch.once()
    assert [commit] == [path.name for path in trees.iterdir()]


def emptied(tree: Path) -> None:
    (tree / "lanes.yaml").write_text("")


def added_to(tree: Path) -> None:
    (tree / "fleet.yaml").write_text((tree / "fleet.yaml").read_text().replace("lanes.yaml", "'*s.yaml'"))
    (tree / "others.yaml").write_text("lanes: 7\n")


@pytest.mark.parametrize("spoil", [emptied, added_to, shutil.rmtree])
def test_what_happened_to_the_files_of_a_commit_is_undone_at_the_next_start(
    branch: Followed, spoil: Callable[[Path], None]
) -> None:
    commit = branch.push()
    branch.once()
    spoil(branch.workplace.tree(commit))
    kill(branch)
    branch.workplace = Workplace(branch.workplace.folder)
    assert 0 == branch.once(heal="on"), branch.lines
    assert WHOLE == branch.story.running_lanes()
    assert {".fleet", "vault"} <= {path.name for path in branch.workplace.tree(commit).iterdir()}


def test_files_that_cannot_be_written_again_are_taken_as_they_are(branch: Followed) -> None:
    branch.push()
    branch.once()
    shutil.rmtree(branch.workplace.mirror)
    branch.bare.rename(branch.bare.with_name("away.git"))
    kill(branch)
    branch.workplace = Workplace(branch.workplace.folder)
    assert 1 == branch.once(heal="on")
    assert WHOLE == branch.story.running_lanes()


def test_a_forge_does_not_hear_of_a_success_while_the_nodes_cannot_be_read(branch: Followed) -> None:
    branch.push()
    branch.once()
    (branch.story.folder / "notes").write_text("nothing of the spec")
    branch.push()
    heard: list[str] = []

    async def work(nodes: tuple[str, ...]) -> int:
        for node in nodes:
            branch.story.nodes.node(node).cut_link()
        agent = branch.agent()
        agent.telling.applied = lambda commit, why: heard.append(why)  # type: ignore[method-assign]
        agent.telling.stands = lambda commit, decision: heard.append(type(decision).__name__)  # type: ignore[method-assign]
        return await agent.run(once=True)

    assert 4 == branch.run(lambda: work(("node1", "node2", "node3")))
    assert ["Wait"] == heard
