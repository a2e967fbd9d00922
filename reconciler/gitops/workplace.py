"""The work folder of an agent: its copy of the branch, a tree of files for each commit, its state, and who runs.

mirror.git  trees/<commit>  current -> trees/<commit>  state  lock  wake  status.json
"""

import contextlib
import fcntl
import json
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import specs
import state
from reconciler import history
from reconciler.gitops.git import GitError
from reconciler.gitops.mirror import Mirror
from state.location import FOLDER


class WorkError(Exception):
    """The work folder cannot be used as it is: why, and what to do."""

    def __init__(self, summary: str, hint: str = "") -> None:
        super().__init__(summary)
        self.hint = hint


class BusyError(WorkError):
    """Another agent has the work folder."""


@dataclass(frozen=True)
class Workplace:
    """A work folder. `checked`: the commits whose files this process has written, or found that it cannot."""

    folder: Path
    checked: set[str] = field(default_factory=set, compare=False, repr=False)

    @property
    def mirror(self) -> Path:
        """Where the copy of the branch is."""
        return self.folder / "mirror.git"

    @property
    def current(self) -> Path:
        """The files of the commit that was applied last, for people: a link."""
        return self.folder / "current"

    def tree(self, commit: str) -> Path:
        """Where the files of a commit are, or would be."""
        return self.folder / "trees" / commit

    async def written(self, mirror: Mirror, commit: str) -> Path:
        """The files of a commit: whole, or an error. Raises `GitError`, `TreeError`, `OSError`.

        Each process writes them once anew: a hand, or a machine that lost its power, may have changed what is there.
        What cannot be written again is taken as it is.
        """
        tree = self.tree(commit)
        if tree.is_dir() and commit in self.checked:
            return tree
        fresh = self.folder / "trees" / f".{commit}.{os.getpid()}"
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            await mirror.write(commit, fresh)
            shutil.rmtree(tree, ignore_errors=True)
            fresh.replace(tree)
        except (GitError, OSError):
            if not tree.is_dir():
                raise
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        self.checked.add(commit)
        return tree

    def keep(self, commits: Collection[str]) -> None:
        """Remove the trees of all other commits, and what an agent that died left half written."""
        trees = self.folder / "trees"
        for path in trees.iterdir() if trees.is_dir() else ():
            if path.name in commits:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:  # the index that git wrote a tree by
                with contextlib.suppress(OSError):
                    path.unlink()

    def point(self, commit: str) -> None:
        """Let `current` lead to the files of this commit."""
        fresh = self.folder / ".current"
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(Path("trees") / commit)
        fresh.replace(self.current)

    def place(self, named: str | None) -> state.Location:
        """Where the recorded state is: as FLEET_STATE says, or the spec, or else here. Not in a tree: these go.

        Raises `state.StateError`.
        """
        return state.locate(os.environ.get(history.VARIABLE) or named or "state", self.folder)

    def link(self, spec: specs.Spec) -> None:
        """Have what the spec keeps in its own folder kept here: the tree of a commit goes with the next ones.

        So a person's `fleet status --file current/fleet.yaml` reads the same record as the agent. What the commit
        itself brings is left as it is.
        """
        place = self.place(spec.state)
        inside = {spec.root / (spec.state or FOLDER): place} if isinstance(place, Path) else {}
        vault = Path(os.path.normpath(spec.images.vault)) if spec.images.vault is not None else None
        if vault is not None and vault.is_relative_to(spec.root):
            inside[vault] = self.folder / "vault"
        for link, target in inside.items():
            if not os.path.lexists(link) and link.is_relative_to(spec.root):
                target.mkdir(parents=True, exist_ok=True)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(target.absolute())

    @contextlib.contextmanager
    def taken(self) -> Iterator[Callable[[], bool]]:
        """The folder, for one agent: what it yields tells whether it still is.

        Raises `BusyError`, which says who has it, and `OSError`.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not _locked(handle):
                holder = os.pread(handle, 100, 0).decode("utf-8", "replace").strip() or "unknown"
                raise BusyError(f"another agent works in {self.folder}: process {holder}", "one folder, one agent")
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
            yield lambda: _leads_to(self.folder / "lock", handle)
        finally:
            os.close(handle)

    @property
    def is_taken(self) -> bool:
        """Whether an agent runs here."""
        try:
            handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return not _locked(handle)
        finally:
            os.close(handle)

    def wakes(self) -> int:
        """A pipe that a trigger writes to: a number to read from, to be closed. Raises `OSError`."""
        path = self.folder / "wake"
        if not path.exists() or not stat.S_ISFIFO(path.stat().st_mode):
            path.unlink(missing_ok=True)
            os.mkfifo(path, 0o600)
        return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def wake(self) -> bool:
        """Wake the agent; False when none runs here. Raises `OSError` when it may not be woken."""
        try:
            handle = os.open(self.folder / "wake", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            if isinstance(error, PermissionError):
                raise
            return False  # nobody reads it
        try:
            with contextlib.suppress(BlockingIOError):  # it is full of wakes already
                os.write(handle, b"!")
        finally:
            os.close(handle)
        return True

    def tell(self, status: dict[str, Any]) -> None:
        """Write down how it stands, whole or not at all. Raises `OSError`."""
        fresh = self.folder / ".status.json"
        fresh.write_text(json.dumps(status, indent=2) + "\n", encoding="utf-8")
        fresh.replace(self.folder / "status.json")

    def told(self) -> dict[str, Any] | None:
        """How it stood last; None when no agent ever ran here."""
        try:
            found = json.loads((self.folder / "status.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None


def _leads_to(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except OSError:
        return False


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
