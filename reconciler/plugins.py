"""Checks from packages of the user's: entry points of the group `fleet.checks`.

Each names a `Check`, a `NodeCheck`, or a tuple of them. A package that cannot be imported, or offers something else, is
a check that finds its own fault; no other check suffers from it. Nor does anything wait for one that hangs.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from reconciler.core.checks import BUILT_IN, AnyCheck, Check, Finding, NodeCheck
from reconciler.core.checks.check import broken, guarded
from reconciler.threads import within

GROUP = "fleet.checks"

DEADLINE_S = 5.0
"""For one look of a check. It is handed all facts and has nothing to wait for."""


@cache
def checks() -> tuple[AnyCheck, ...]:
    """The checks of all packages that are installed here, by the name of their entry points."""
    return loaded(sorted(entry_points(group=GROUP), key=lambda item: item.name))


def loaded(points: Iterable[EntryPoint]) -> tuple[AnyCheck, ...]:
    """The checks that these entry points name, each once. Never raises: a fault is what a check finds."""
    taken = {check.id for check in BUILT_IN}
    found: list[AnyCheck] = []
    for point in points:
        for check in _of(point):
            if check.id in taken:
                check = _fault(f"{GROUP}:{point.name}", f"there is a check {check.id} already")  # noqa: PLW2901
            taken.add(check.id)
            found.append(hurried(guarded(check)))
    return tuple(found)


def hurried(check: AnyCheck, deadline_s: float = DEADLINE_S) -> AnyCheck:
    """The same check, of which nothing is known where a look of it takes too long. It is not asked again then."""
    timed = _Timed(check.id, deadline_s)
    if isinstance(check, Check):
        look = check.look
        return replace(check, look=lambda case, rank: timed.asked(lambda: look(case, rank)))
    seen = check.look
    return replace(check, look=lambda site: timed.asked(lambda: seen(site)))


class _Timed:
    """Remembers that a check took too long: each look at a big fleet would take that long again."""

    def __init__(self, check: str, deadline_s: float) -> None:
        self._check, self._deadline_s = check, deadline_s
        self._is_overdue = False

    def asked(self, look: Callable[[], Iterable[Finding]]) -> list[Finding]:
        """What the look finds in time. A package of the user's raises nothing through `guarded`."""
        if not self._is_overdue:
            try:
                return within(self._deadline_s, lambda: list(look()))
            except TimeoutError:
                self._is_overdue = True
        return [broken(self._check, f"it did not end within {self._deadline_s:g} s")]


def _of(point: EntryPoint) -> Iterator[AnyCheck]:
    try:
        value = point.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it is of a package of the user's
        yield _fault(f"{GROUP}:{point.name}", f"{type(error).__name__}: {error}")
        return
    for item in value if isinstance(value, (tuple, list)) else (value,):
        if isinstance(item, (Check, NodeCheck)):
            yield item
        else:
            yield _fault(f"{GROUP}:{point.name}", f"{point.value} is {type(item).__name__}, not a Check or NodeCheck")


def _fault(check: str, why: str) -> NodeCheck:
    found = broken(check, why)
    title = "Does the package work that offers checks?"
    return NodeCheck(check, title, found.mend, lambda site: (found,), holds_up_boots=True)
