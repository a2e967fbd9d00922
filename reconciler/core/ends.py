"""Of several ranks that ended, which one the others followed, and why it ended. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.core.causes import Cause, diagnose, last_error
from reconciler.core.desired import Gang
from reconciler.core.log_text import readable
from reconciler.core.observed import Container


@dataclass(frozen=True)
class End:
    """A rank's container that ran and runs no more, and what was read of its log."""

    rank: int
    node: str
    container: Container
    lines: tuple[str, ...] = ()

    @property
    def cause(self) -> Cause | None:
        """Why it ended, as far as its own log, its exit code and Docker's flag tell."""
        lines = [readable(line) for line in (*self.lines, self.container.error) if line]
        return diagnose(lines, self.container.exit_code, self.container.oom_killed)


def ends_of(gang: Gang, found: Iterable[Container | None]) -> tuple[End, ...]:
    """The ranks that ended, the first one first.

    When is told by each node's own clock: where two disagree, `execution/clocks.py` sets the order right if they are
    known, and `blamed` by what was logged.
    """
    ended = [
        End(rank.index, rank.node, container)
        for rank, container in zip(gang.ranks, found, strict=True)
        if container is not None and container.finished_at and container.state in {"exited", "dead", "restarting"}
    ]
    return tuple(sorted(ended, key=lambda end: (end.container.finished_at.rstrip("Z"), end.rank)))


def blamed(ends: Iterable[End]) -> tuple[End, Cause] | None:
    """The first rank that ended of its own, and why; None when no log tells.

    A cause that another rank's end brings about as well (a timeout, a lost connection) counts only where there is no
    other: the rank with the better reason may have a clock that is late.
    """
    told = [(end, cause) for end in ends if (cause := end.cause)]
    return next((item for item in told if not item[1].may_follow), told[0] if told else None)


def error_of(ends: Iterable[End]) -> tuple[End, str] | None:
    """The first rank that ended with an error in words of its own, readable; None when none did."""
    for end in ends:
        error = last_error(end.lines)
        if error:
            return end, readable(error)
    return None
