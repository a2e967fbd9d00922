"""A commit becomes the fleet: a bare repository with the hook of the examples, the agent as a process, real nodes.

One story: each test goes on where the one before ended. The agent looks by itself only every ten minutes, so whatever
happens sooner the hook has caused.
"""

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from . import Lab
from .fleet_cli import FLEET, Desk, Ran, containers, desk, environment, names

pytestmark = pytest.mark.lab

ROOT = Path(__file__).parents[2]
PAIR, SOLO = ("pair", "pair-a"), ("solo", "single-3")


@dataclass
class Box:
    """The machine that the agent runs on: a repository, a clone of it at a desk, a work folder, and the agent."""

    desk: Desk
    bare: Path
    work: Path
    events_read: int = 0
    process: "subprocess.Popen[str] | None" = None
    seen: list[dict[str, Any]] = field(default_factory=list)

    def git(self, *words: str) -> str:
        who = {f"GIT_{role}_{key}": "ops" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
        done = subprocess.run(
            ["git", *words], cwd=self.desk.folder, env=environment(who), capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def push(self, *words: str) -> str:
        """Commit what the spec says now, and push it; the commit. The hook wakes the agent."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "a change")
        self.git("push", "--quiet", *words, "origin", "HEAD:main")
        return self.git("rev-parse", "HEAD")

    def start(self) -> None:
        """Start the agent, and wait until it can be woken."""
        log = (self.work.parent / "agent.log").open("a")
        words = ["gitops", "run", "--repo", str(self.bare), "--work", str(self.work), "--interval", "10m"]
        self.process = subprocess.Popen(
            [FLEET, *words, "--heal", "on", "--events", str(self.events)],
            cwd=self.work.parent,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            text=True,
        )
        self.until(lambda: self.desk.fleet("gitops", "trigger", "--work", str(self.work)).rc == 0)

    def end(self, number: int = signal.SIGTERM) -> int:
        """End the agent; its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        code = self.process.wait(10)
        self.process = None
        return code

    @property
    def events(self) -> Path:
        return self.work.parent / "events"

    def event(self, kind: str, seconds: float = 40, **facts: object) -> dict[str, Any]:
        """The next event of this kind with these facts; those before it are forgotten."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            lines = self.events.read_text().splitlines()[self.events_read :] if self.events.exists() else []
            for number, line in enumerate(lines):
                found = json.loads(line)
                inside: dict[str, Any] = found["event"]
                if found["kind"] == kind and facts.items() <= inside.items():
                    self.events_read += number + 1
                    return inside
            time.sleep(0.05)
        log = (self.work.parent / "agent.log").read_text()[-3000:]
        raise AssertionError(f"no {kind} with {facts}; the agent said:\n{log}")

    def until(self, holds: Callable[[], bool], seconds: float = 20) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, (self.work.parent / "agent.log").read_text()[-3000:]
            time.sleep(0.1)

    def fleet(self, *words: str) -> Ran:
        """A command of `fleet gitops` about this agent."""
        return self.desk.fleet("gitops", *words, "--work", str(self.work))

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.fleet("status", "--json").out)
        return found


@pytest.fixture(scope="module")
def box(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    lab.reset()
    lab.preload("llamacpp", ["node1", "node2", "node3"])
    lab.preload("tiny", ["node3"])
    folder = tmp_path_factory.mktemp("gitops")
    made = Box(desk(lab, folder / "clone", PAIR, SOLO), folder / "fleet.git", folder / "work")
    made.git("init", "--quiet", "--initial-branch=main")
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(made.bare)], check=True)
    made.git("remote", "add", "origin", str(made.bare))
    shutil.copy(ROOT / "examples/gitops/post-receive-trigger", made.bare / "hooks/post-receive")
    for key, value in (("fleet.work", str(made.work)), ("fleet.command", FLEET)):
        subprocess.run(["git", "-C", str(made.bare), "config", key, value], check=True)
    made.start()
    yield made
    if made.process is not None:
        made.process.kill()
    lab.reset()


def test_a_push_becomes_the_fleet(box: Box) -> None:
    commit = box.push()
    ended = box.event("gitops.applied", commit=commit)
    assert ("applied", 0) == (ended["outcome"], ended["exit_code"])
    assert ["node1", "node2", "node3"] == list(names(box.desk.lab))
    box.until(lambda: box.status["good"] == commit)
    assert (True, "in sync") == (box.status["running"], box.status["state"])
    current = str(box.work / "current" / "fleet.yaml")
    assert commit[:7] in box.desk.fleet("history", "--file", current).out  # a person reads the same record


def test_a_commit_with_a_fault_an_empty_one_and_a_rewritten_branch_change_nothing(box: Box) -> None:
    before, good = containers(box.desk.lab), box.status["good"]
    lanes = box.desk.folder / "lanes.yaml"
    text = lanes.read_text()
    lanes.write_text("lanes: {solo: [}\n")
    box.push()
    assert "broken" == box.event("gitops.blocked")["bar"]
    lanes.write_text(text)
    box.desk.place()
    box.push()
    assert "empty" == box.event("gitops.blocked")["bar"]
    assert good == box.status["applied"]
    box.desk.place(PAIR, SOLO)
    box.git("reset", "--quiet", "--soft", "HEAD~2")
    box.git("commit", "--quiet", "--amend", "--allow-empty", "--message", "another past")
    rewritten = box.push("--force")
    blocked = box.event("gitops.blocked")
    assert "not-forward" == blocked["bar"]
    assert before == containers(box.desk.lab)
    assert 0 == box.fleet("accept", rewritten[:10]).rc
    box.until(lambda: box.status["good"] == rewritten)
    assert before == containers(box.desk.lab)


def test_garbage_is_rolled_back_and_a_mending_commit_takes_over_while_another_waits(box: Box) -> None:
    before = names(box.desk.lab)
    lane = "{paths.models}/garbage.gguf"
    box.desk.edit("lanes.yaml", lambda content: content["models"]["bigram"].update(path=lane))
    bad = box.push()
    ended = box.event("gitops.applied", commit=bad)
    assert 6 == ended["exit_code"], ended
    assert before == names(box.desk.lab)
    assert "quarantined" == box.event("gitops.blocked")["bar"]
    box.desk.edit("lanes.yaml", lambda content: content["models"]["bigram"].update(path="{paths.models}/good.gguf"))
    box.desk.custom("solo", "sleep 600", health={"boot": "2m", "interval": "200ms"})
    slow = box.push()
    box.event("step.started")
    box.until(lambda: any("unproved" in name for found in names(box.desk.lab).values() for name in found))
    box.desk.edit_lane("solo", argv=None, engine="llamacpp", nodes=1)
    box.git("checkout", "--quiet", "HEAD~2", "--", "lanes.yaml")
    since = time.monotonic()
    mending = box.push()
    assert slow == box.event("gitops.superseded", by=mending)["commit"]
    assert "interrupted" == box.event("gitops.applied", commit=slow)["outcome"]
    box.until(lambda: box.status["good"] == mending, 40)
    assert 60 > time.monotonic() - since
    assert list(before) == list(names(box.desk.lab))


def test_a_rank_that_dies_is_repaired(box: Box) -> None:
    node = box.desk.lab.nodes["node2"]
    node.docker("kill", node.docker("ps", "-q").strip())
    assert 0 == box.fleet("trigger").rc
    healed = box.event("gitops.healed")
    assert (True, ["pair-a/pair"]) == (healed["ok"], healed["gangs"])
    assert ["node1", "node2", "node3"] == list(names(box.desk.lab))


def test_a_closed_window_holds_a_commit_up(box: Box) -> None:
    before = containers(box.desk.lab)
    windows = {"windows": [{"deny": "* * * * *", "for": "1h", "reason": "a demo"}]}
    box.desk.edit("fleet.yaml", lambda content: content.update(gitops=windows))
    box.desk.edit_lane("solo", args={"ctx-size": 256})
    held = box.push()
    assert "denied: a demo" in box.event("gitops.waiting", commit=held)["why"]
    assert before == containers(box.desk.lab)
    box.desk.edit("fleet.yaml", lambda content: content.pop("gitops"))
    opened = box.push()
    assert 0 == box.event("gitops.applied", commit=opened)["exit_code"]


def test_an_agent_that_is_killed_in_the_middle_goes_on_and_another_one_waits(box: Box) -> None:
    box.desk.edit_lane("solo", args={"ctx-size": 128})
    commit = box.push()
    box.event("gitops.applying", commit=commit)
    box.event("step.started")
    assert -signal.SIGKILL == box.end(signal.SIGKILL)
    assert 1 == box.fleet("trigger").rc
    assert box.status["running"] is False
    box.start()
    same = box.desk.fleet("gitops", "run", "--once", "--repo", str(box.bare), "--work", str(box.work))
    assert (1, True) == (same.rc, "another agent works in" in same.err), same.said
    box.event("run.started")
    other = box.work.parent / "other"
    second = box.desk.fleet("gitops", "run", "--once", "--repo", str(box.bare), "--work", str(other))
    assert second.rc in {0, 5}, second.said  # it waits for the lease; the first one may be done by then
    box.until(lambda: box.status["good"] == commit)


def test_an_agent_ends_within_five_seconds(box: Box) -> None:
    since = time.monotonic()
    assert 0 == box.end()
    assert 5 > time.monotonic() - since
