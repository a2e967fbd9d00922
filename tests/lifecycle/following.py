"""An agent that follows a real repository to simulated nodes, in virtual time."""

import asyncio
import os
import subprocess
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import state
from reconciler.core.envelope import Told
from reconciler.fleet import Fleet
from reconciler.gitops.agent import Agent, Options
from reconciler.gitops.git import source_of
from reconciler.gitops.log import Log
from reconciler.gitops.memory import Memory
from reconciler.gitops.mirror import Mirror
from reconciler.gitops.workplace import Workplace
from reconciler.testing import run_simulated
from tests.lifecycle.harness import Story

T = TypeVar("T")

START_S = 1_800_000_000.0
"""When the story begins, seconds since 1970: it goes on where the agent before it ended."""


def git(folder: Path, *words: str) -> str:
    """Git as somebody's hand uses it, whatever this machine's settings are."""
    who = {f"GIT_{role}_{key}": "ops" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["git", "-C", str(folder), *words], env={**who, **quiet}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


class Followed:
    """A story whose spec is in a repository (`bare`), edited in a clone (the story's folder)."""

    def __init__(self, tmp_path: Path, **story: Any) -> None:
        self.bare = tmp_path / "fleet.git"
        self.workplace = Workplace(tmp_path / "work")
        clone = tmp_path / "clone"
        clone.mkdir()
        git(clone, "init", "--quiet", "--initial-branch=main")
        git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", str(self.bare))
        git(clone, "remote", "add", "origin", str(self.bare))
        self.story = Story(clone, **story)
        self.told: list[Told] = []
        self.lines: list[str] = []
        self._now_s = START_S

    @property
    def memory(self) -> Memory:
        """What the agent remembers."""
        return Memory(self.workplace.place(None))

    def push(self, *words: str) -> str:
        """Commit whatever the spec says now, and push it; the commit."""
        git(self.story.folder, "add", "--all")
        git(self.story.folder, "commit", "--quiet", "--allow-empty", "--message", "a change")
        git(self.story.folder, "push", "--quiet", *words, "origin", "HEAD:main")
        return git(self.story.folder, "rev-parse", "HEAD")

    def agent(self, heal: str | None = None, signers: Path | None = None) -> Agent:
        """An agent on the repository. To be made in the loop that it runs in."""
        begun, before = asyncio.get_running_loop().time(), self._now_s

        def now() -> float:
            self._now_s = before + asyncio.get_running_loop().time() - begun
            return self._now_s

        mirror = Mirror(self.workplace.mirror, source_of(str(self.bare)), "main", signers)
        log = Log(self.lines.append, now)
        return Agent(self.workplace, mirror, Options(heal=heal), self.load, log, self.told.append, now)

    def load(self, file: Path) -> Fleet:
        """A fleet on the story's nodes."""
        return Fleet.load(file, lambda spec: self.story.nodes)

    def once(self, heal: str | None = None, signers: Path | None = None) -> int:
        """An agent with `--once`; its exit code."""

        async def work() -> int:
            return await self.agent(heal, signers).run(once=True)

        return self.run(work)

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Something with an agent, in virtual time."""
        return run_simulated(work(), seed=self.story.seed)

    def later(self, seconds: float) -> None:
        """Let time pass while no agent runs."""
        self._now_s += seconds

    def quarantined(self) -> set[str]:
        """The placements of which a version is put aside."""
        store = state.open_store(self.workplace.place(None))
        try:
            return {item.gang for item in store.quarantined()}
        finally:
            store.close()

    @property
    def now_s(self) -> float:
        """What the clock of the agent shows, or would."""
        return self._now_s

    @property
    def kinds(self) -> list[str]:
        """The kinds of the agent's own events so far; they are forgotten then."""
        found = [event.KIND for event in self.told if event.KIND.startswith("gitops.")]
        self.told.clear()
        return found

    @property
    def status(self) -> dict[str, Any]:
        """What is written down for `fleet gitops status`."""
        return self.workplace.told() or {}
