"""From a commit to what it would do: its files, its spec, a look at the nodes, a plan with what is withheld of it."""

import errno
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import specs
import state
from reconciler import holds
from reconciler.core.gitops.looks import Planned, looked
from reconciler.core.lock import LockError
from reconciler.fleet import Fleet
from reconciler.gitops.git import GitError
from reconciler.gitops.mirror import Mirror, TreeError
from reconciler.gitops.workplace import Workplace
from reconciler.nodes.errors import NodeError
from reconciler.threads import in_thread

Load = Callable[[Path], Fleet]

SPEC = "fleet.yaml"
"""The spec in the folder that is named, where no file is."""

IN_A_TREE = frozenset({errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL})
"""What the files of a commit may be at fault for, and no disk is: a folder for a file, a file for a folder."""


class BrokenError(Exception):
    """The spec of a commit cannot be used: why, in words that name no folder of this machine."""


@dataclass
class Looks:
    """The commits that one turn of the agent looks at: each is loaded once, and its sessions are closed at the end.

    `path`: the spec, or its folder, within the repository.
    """

    workplace: Workplace
    mirror: Mirror
    path: str
    load: Load
    now: Callable[[], float] = time.time
    fleets: dict[str, Fleet] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)

    async def fleet(self, commit: str) -> Fleet:
        """The fleet as a commit has it. Raises `BrokenError`, `GitError`, `OSError`."""
        if commit in self.broken:
            raise BrokenError(self.broken[commit])
        if commit not in self.fleets:
            try:
                self.fleets[commit] = await self._loaded(commit)
            except BrokenError as error:
                self.broken[commit] = str(error)
                raise
        return self.fleets[commit]

    async def broken_by(self, commit: str) -> str | None:
        """Why the spec of a commit cannot be used; None when it can. Raises `GitError`, `OSError`."""
        try:
            await self.fleet(commit)
        except BrokenError as error:
            return str(error)
        return None

    async def planned(self, commit: str) -> Planned | None:
        """What a look at the nodes says of a commit; None when its files are not to be had. Raises `StateError`."""
        try:
            fleet = await self.fleet(commit)
        except (BrokenError, GitError, OSError):
            return None
        observed = await fleet.observe()
        plan = fleet.plan(observed, commit=commit, allow_empty=fleet.spec.gitops.allow_empty)
        now_s = self.now()
        plan = holds.withheld(plan, holds.recorded(fleet, now_s))
        plan = await in_thread(partial(fleet.judged, plan, now_s))  # a policy of the spec's owner may think
        return looked(fleet.desired, observed, plan)

    async def close(self) -> None:
        """Let go of the nodes."""
        for fleet in self.fleets.values():
            await fleet.nodes.close()
        self.fleets.clear()

    async def _loaded(self, commit: str) -> Fleet:
        try:
            tree = await self.workplace.written(self.mirror, commit)
        except TreeError as error:
            raise BrokenError(str(error)) from None
        file = spec_in(tree, self.path)
        if not file.is_file():
            raise BrokenError(f"there is no {file.relative_to(tree)} in it")
        try:
            fleet = self.load(file)
            fleet.folder = self.workplace.place(fleet.spec.state)
            self.workplace.link(fleet.spec)
        except (specs.SpecErrors, LockError, state.StateError, NodeError, ValueError, RuntimeError) as error:
            raise BrokenError(str(error).replace(f"{tree}/", "")) from None
        except OSError as error:
            if error.errno not in IN_A_TREE:
                raise
            name = str(error.filename or file).replace(f"{tree}/", "")
            raise BrokenError(f"{name}: {(error.strerror or str(error)).lower()}") from None
        return fleet


def spec_in(tree: Path, path: str) -> Path:
    """The spec in a tree: `path` is a file that ends in .yaml or .yml, or its folder."""
    named = tree / path
    return named if named.suffix in {".yaml", ".yml"} else named / SPEC


def is_within(path: str) -> bool:
    """Whether a path leads into the repository and nowhere else."""
    return not Path(path).is_absolute() and ".." not in Path(path).parts
