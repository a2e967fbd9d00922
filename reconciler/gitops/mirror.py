"""A bare copy of the branch in the work folder: fetched, asked about commits, and written out as whole trees.

It can be thrown away at any time: what is missing or damaged is fetched anew.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from reconciler.gitops.git import FETCH_S, Git, GitError, Source, printable

HEAD = "refs/fleet/head"
"""Where the newest commit of the branch is kept."""

MISSING = "couldn't find remote ref"
"""What git says of a branch that the remote does not have, in the language it is asked to speak."""


class TreeError(Exception):
    """The files of a commit are not fit to be used: why."""


@dataclass(frozen=True)
class Mirror:
    """The copy of one branch. `signers`: a file of keys, one of which has to have signed; None: nobody has to."""

    folder: Path
    source: Source
    branch: str
    signers: Path | None = None

    @property
    def git(self) -> Git:
        """Git on the copy."""
        return Git(self.folder, self.source)

    async def fetch(self) -> str:
        """Bring what is new; the newest commit. A damaged copy is made anew once. Raises `GitError`, `OSError`."""
        await self._made()
        try:
            return await self._fetched()
        except GitError:
            if await self.is_sound():
                raise
        shutil.rmtree(self.folder, ignore_errors=True)
        await self._made()
        return await self._fetched()

    async def head(self) -> str | None:
        """The newest commit that was fetched; None before the first."""
        try:
            return await self.git("rev-parse", "--verify", "--quiet", f"{HEAD}^{{commit}}")
        except GitError:
            return None

    async def is_sound(self) -> bool:
        """Whether all that is here is whole, as far as it is named."""
        if not await self.git.works("rev-parse", "--is-bare-repository"):
            return False
        if not await self.git.works("rev-parse", "--verify", "--quiet", HEAD):
            return not any((self.folder / "objects/pack").glob("*.pack"))
        return not await self.is_damaged()

    async def is_damaged(self) -> bool:
        """Whether something that is here cannot be read, file contents too; a check that has no end finds nothing."""
        try:
            await self.git("fsck", "--no-dangling", "--no-progress", HEAD)
        except GitError as error:
            return not error.is_late
        return False

    async def descends(self, commit: str, before: str) -> bool:
        """Whether `commit` is `before` or comes after it; what is not in its history it does not come after."""
        return await self.git.works("merge-base", "--is-ancestor", before, commit)

    async def resolved(self, name: str) -> str | None:
        """The whole name of a commit that is here; None when there is none of that name."""
        try:
            return await self.git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        except GitError:
            return None

    async def subject(self, commit: str) -> str:
        """The first line of its message, for people; empty where it cannot be read."""
        try:
            return printable(await self.git("log", "-1", "--format=%s", commit))[:200]
        except GitError:
            return ""

    async def unsigned(self, commit: str) -> str | None:
        """Why its signature is not accepted; None when it is, or when nobody has to sign.

        Only signatures by SSH keys count (git-config, `gpg.ssh.allowedSignersFile`): a key ring of the user that the
        agent runs as says nothing about who may change the fleet.
        """
        if self.signers is None:
            return None
        told = ("-c", "gpg.program=false", "-c", "gpg.x509.program=false")
        allowed = ("-c", f"gpg.ssh.allowedSignersFile={self.signers.absolute()}")
        if not self.signers.is_file():
            return f"the file of allowed signers {self.signers} is not there"
        try:
            await self.git(*told, *allowed, "verify-commit", commit)
        except GitError as error:
            why = str(error).removeprefix("git verify-commit: ")
            return "it is not signed" if why.startswith("exit ") else f"its signature is not accepted: {why}"
        return None

    async def write(self, commit: str, folder: Path) -> None:
        """The files of a commit in `folder`, which is not there yet. Raises `GitError`, `TreeError`, `OSError`.

        No hook, no filter of anybody's settings, no submodule: what git has, byte by byte.
        """
        folder.mkdir(parents=True)
        index = folder.with_name(f"{folder.name}.index")
        plain = {"GIT_INDEX_FILE": str(index), "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        try:
            await self.git("read-tree", commit, more=plain)
            await self.git("--work-tree", str(folder), "checkout-index", "--all", "--quiet", more=plain)
        except GitError:
            if await self.is_damaged():
                shutil.rmtree(self.folder, ignore_errors=True)  # fetched anew at the next look
            raise
        finally:
            index.unlink(missing_ok=True)
        insist_on_links_within(folder)

    async def _made(self) -> None:
        if not (self.folder / "HEAD").is_file():
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            await self.git("init", "--bare", "--quiet", "--template=")

    async def _fetched(self) -> str:
        refs = f"+refs/heads/{self.branch}:{HEAD}"
        options = ("--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--quiet")
        try:
            await self.git("fetch", *options, "--end-of-options", self.source.url, refs, timeout_s=FETCH_S)
        except GitError as error:
            if MISSING in str(error):
                hint = "push a commit to it, or name another one with --branch"
                raise GitError(f"{self.source} has no branch {self.branch}", hint) from None
            raise
        head = await self.head()
        if head is None:
            raise GitError(f"{self.source} has no commit on {self.branch}")
        return head


def insist_on_links_within(folder: Path) -> None:
    """Raises `TreeError` for a symbolic link that leads out of the folder, or nowhere but round in a circle."""
    root = folder.resolve()
    for path in folder.rglob("*"):
        try:
            is_fit = not path.is_symlink() or path.resolve().is_relative_to(root)
        except (RuntimeError, OSError):  # a circle: which of them depends on the version of Python
            raise TreeError(f"{path.relative_to(folder)} is a link that leads to itself") from None
        if not is_fit:
            raise TreeError(f"{path.relative_to(folder)} is a link that leads out of the repository")
