"""A look for drift as a job does it: within a time for the whole, with what earlier looks left, and with news.

Nothing of it fails because of what is beside the point: a state that hangs or cannot be written, an address that does
not answer. What did not work is a note. What there was no time for is named in the report as missing.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import state
from reconciler import history
from reconciler.core.drift import Finding, Report
from reconciler.core.drift.news import News, news, told_in, told_text
from reconciler.core.drift.past import HISTORY, Left, left_in, left_of, left_text, with_past
from reconciler.core.observed import Observed, Unknown, UnknownKind
from reconciler.core.secret_notes import secret_notes
from reconciler.drifting import Asking, Occasion, drift_report, report_short, unheard
from reconciler.fleet import OBSERVE_S, Fleet
from reconciler.notify import Address, NotifyError, send
from reconciler.threads import in_thread
from reconciler.views.drift_news import news_body, news_level, news_title

T = TypeVar("T")

LOOKING = 0.8
"""The share of the time that looking may take; the rest is for telling."""

ONE_NODE = 0.5
"""The share of the time for looking that one node may take, so that one which hangs leaves time for the others."""

ASKING = 0.7
"""The share of what is then left that the lanes may take to answer, so that one that hangs leaves time."""

STATE_S = 5.0
"""How long the state is waited for, in seconds: it is only history."""

COMMIT_S = 5.0
"""How long git is waited for, in seconds."""

MEMORY = "drift.told."
"""What an address was told last is remembered under this, and its name."""


@dataclass(frozen=True)
class Request:
    """What is asked of a look. `deadline_s`: for reading one node; `within_s`: for all of it, in seconds.

    `is_recording`: whether anything is left in the state.
    """

    deadline_s: float = OBSERVE_S
    within_s: float = 120.0
    is_probing: bool = False
    is_recording: bool = True
    commit: Callable[[], str | None] = lambda: None


@dataclass
class DriftJob:
    """One look. Made on the loop on which it runs. `notes`: what did not work, a sentence each."""

    fleet: Fleet
    request: Request
    notes: list[str] = field(default_factory=list)
    _missing: list[str] = field(default_factory=list)
    _troubles: set[str] = field(default_factory=set)
    _before: tuple[Left, ...] | None = None

    def __post_init__(self) -> None:
        self._began_s = asyncio.get_running_loop().time()

    @property
    def took_s(self) -> float:
        """Seconds since it began."""
        return asyncio.get_running_loop().time() - self._began_s

    async def look(self) -> Report:
        """The report, with what of it is new, in the time that there is for looking."""
        past = asyncio.create_task(self._of_state(self._past, "earlier reports are not known"))
        commit = asyncio.create_task(self._commit())
        observed = await self._observed()
        self.notes += secret_notes(self.fleet.desired, observed)
        report = await self._compared(observed, Occasion(time.time(), await commit))
        self._before = await past
        return with_past(report, self._before or ())

    async def _commit(self) -> str | None:
        try:
            async with asyncio.timeout(COMMIT_S):
                return await in_thread(self.request.commit)
        except TimeoutError:
            return None

    async def _observed(self) -> Observed:
        """What the nodes say; when time is over, what they have said by then."""
        seen: list[Observed] = []
        looking_s = self.request.within_s * LOOKING
        deadline_s = min(self.request.deadline_s, looking_s * ONE_NODE)
        try:
            async with asyncio.timeout(looking_s):
                return await self.fleet.observe(deadline_s, so_far=seen.append)
        except TimeoutError:
            self._missing.append("what the nodes have of models and images" if seen else "what the nodes say")
        return seen[-1] if seen else Observed({node.name: _unheard(node.name) for node in self.fleet.desired.nodes}, {})

    async def _compared(self, observed: Observed, occasion: Occasion) -> Report:
        """The report; what lanes have said counts, whoever says nothing."""
        left_s = max(self.request.within_s * LOOKING - self.took_s, 0.0)
        asking = Asking(self.request.is_probing, left_s * ASKING)
        try:
            async with asyncio.timeout(left_s):
                report = await drift_report(self.fleet, observed, occasion, asking)
        except TimeoutError:
            missing = (*unheard(self.fleet, observed, asking), "why ranks ended, holds and quarantine")
            report = replace(report_short(self.fleet, observed, occasion, asking.heard), missing=missing)
        return replace(report, missing=(*self._missing, *report.missing))

    # the state

    async def keep(self, report: Report) -> None:
        """Keep what the next look wants to know of this one."""
        if not self.request.is_recording:
            return
        left = left_text(left_of(report, next(iter(self._before or ()), None)))
        await self._of_state(partial(self._add, report.at_s, left), "this report is not kept for the next one")

    def _past(self) -> tuple[Left, ...]:
        with history.reading(self.fleet.folder) as store:
            texts = () if store is None else store.reports(HISTORY)
        return tuple(left for left in (left_in(text) for _, text in texts) if left is not None)

    def _add(self, at_s: float, left: str) -> None:
        with closing(self.fleet.open_state()) as store:
            store.add_report(at_s, left)

    def _told(self, names: Sequence[str]) -> dict[str, dict[str, str] | None]:
        with history.reading(self.fleet.folder) as store:
            return {name: None if store is None else told_in(store.recall(MEMORY + name)) for name in names}

    def _remember(self, told: dict[str, str]) -> None:
        with closing(self.fleet.open_state()) as store:
            for name, text in told.items():
                store.remember(MEMORY + name, text)

    async def _of_state(self, call: Callable[[], T], otherwise: str) -> T | None:
        """What the state says; None where it cannot or does not, and a note, one for each kind of trouble."""
        try:
            async with asyncio.timeout(min(STATE_S, self._left_s())):
                return await in_thread(call)
        except TimeoutError:
            trouble = "the state does not answer"
        except state.StateError as error:
            trouble = str(error)
        if trouble not in self._troubles:
            self._troubles.add(trouble)
            self.notes.append(f"{otherwise}: {trouble}")
        return None

    # news

    async def tell(self, report: Report, counted: Sequence[Finding], addresses: Sequence[Address]) -> None:
        """Tell each address what is news to it: once, and again where it could not be told."""
        if not addresses:
            return
        names = {address: address.name(report.fleet) for address in addresses}
        known = await self._of_state(partial(self._told, tuple(names.values())), "news may be told again") or {}
        due = {address: news(report, counted, known.get(name)) for address, name in names.items()}
        told = await asyncio.gather(
            *(self._sent(report.fleet, address, item) for address, item in due.items() if item is not None)
        )
        remembered = {names[address]: told_text(item.known) for address, item in told if item is not None}
        if remembered and self.request.is_recording:
            await self._of_state(partial(self._remember, remembered), "these news will be told again")

    async def _sent(self, fleet: str, address: Address, item: News) -> tuple[Address, News | None]:
        """The news that arrived; None for those that did not, which is a note."""
        sending = partial(send, address, news_title(fleet, item), news_body(item), news_level(item))
        try:
            async with asyncio.timeout(self._left_s()):
                await in_thread(sending)
        except TimeoutError:
            self.notes.append(f"{address} was not told: it does not answer. It is told with the next look")
        except NotifyError as error:
            self.notes.append(f"{error}. It is told with the next look")
        else:
            return address, item
        return address, None

    def _left_s(self) -> float:
        return max(self.request.within_s - self.took_s, 0.1)


def _unheard(node: str) -> Unknown:
    return Unknown(node, UnknownKind.TIMEOUT, "there was no time to hear of it", "give the look more time")
