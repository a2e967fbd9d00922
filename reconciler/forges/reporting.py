"""Tells a forge how a commit stands, and never more than warns: the fleet is no worse for a forge that is away."""

import asyncio
from collections.abc import Callable, Sequence

from reconciler.forges.errors import ForgeError
from reconciler.forges.protocol import Forge
from reconciler.views.forge_text import CommitStatus

BUDGET_S = 60.0
"""Of one report, whatever there is to tell."""
AT_ONCE = 4
"""Requests: GitHub asks for no more than a few at a time."""
STATUSES = 100
"""Of one report: the first ones, which are the bad ones. Nobody reads more."""


async def report(
    forge: Forge,
    commit: str,
    statuses: Sequence[CommitStatus],
    comment: str = "",
    *,
    warn: Callable[[str], None],
    link: str = "",
    budget_s: float = BUDGET_S,
) -> bool:
    """Set the statuses of a commit, and comment when there is something to say; whether all of it was taken.

    Ends within `budget_s` seconds and raises nothing of a forge: `warn` is told, once for each distinct failure.
    `link`: where the statuses lead.
    """
    failures: list[str] = []
    turn = asyncio.Semaphore(AT_ONCE)

    async def tell(status: CommitStatus) -> None:
        async with turn:
            if len(failures) >= AT_ONCE:  # it is away: no need to hear it a hundred times
                return
            try:
                await forge.set_status(commit, status.context, status.state, status.description, link)
            except ForgeError as error:
                failures.append(str(error))

    async def say() -> None:
        try:
            await forge.comment(commit, comment)
        except ForgeError as error:
            failures.append(str(error))

    try:
        async with asyncio.timeout(budget_s), asyncio.TaskGroup() as group:
            if comment:
                group.create_task(say(), name="comment on a commit")
            for status in statuses[:STATUSES]:
                group.create_task(tell(status), name=f"status {status.context}")
    except TimeoutError:
        failures.append(f"it did not take all of it within {budget_s:g} s")
    for failure in dict.fromkeys(failures):
        warn(f"the forge was not told of {commit[:12]}: {failure}")
    return not failures
