"""What is known of the newest commit before the fleet is looked at: whether it is fit, and whose spec holds."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from reconciler.core.gitops.decision import Commit
from reconciler.fleet import Fleet
from reconciler.gitops.git import GitError
from reconciler.gitops.looking import Looks
from reconciler.gitops.memory import Memory

Failed = Callable[[str, str, str], object]
"""Told what went wrong: in what, a sentence, what to do."""


@dataclass(frozen=True)
class Known:
    """`commit`: the newest one. `fleet`: as it has it where it is fit, or else as the last applied one has it."""

    commit: Commit | None
    fleet: Fleet | None


async def known(looks: Looks, memory: Memory, head: str | None, failed: Failed) -> Known:
    """What is known of the newest commit. Raises `StateError`."""
    commit = await _commit(looks, memory, head, failed) if head is not None else None
    if commit is not None and commit.is_fit:
        return Known(commit, looks.fleets.get(commit.id))
    applied = memory.recalled().applied
    if applied is not None:
        with contextlib.suppress(GitError, OSError):  # without its files it says nothing; the rest goes on
            await looks.broken_by(applied)
    return Known(commit, looks.fleets.get(applied or ""))


async def _commit(looks: Looks, memory: Memory, head: str, failed: Failed) -> Commit:
    """What nobody vouches for is not even read."""
    accepted, before, mirror = memory.accepted(), memory.recalled().applied, looks.mirror
    descends = before is None or await mirror.descends(head, before)
    if not descends and accepted is not None and accepted.before == before:
        descends = await mirror.descends(head, accepted.commit)
    unsigned = await mirror.unsigned(head) if descends else None
    if not descends or unsigned is not None:
        return Commit(head, descends, unsigned)
    try:
        return Commit(head, descends, broken=await looks.broken_by(head))
    except (GitError, OSError) as error:  # a full disk: repairs go on without its files
        failed("files", str(error), getattr(error, "hint", ""))
        return Commit(head, descends, missing=str(error))
