"""Checks from packages of the user's: entry points of the group `fleet.checks`.

Each names a `Check`, a `NodeCheck`, or a tuple of them. A package that cannot be imported, or offers something else, is
a check that finds its own fault; no other check suffers from it.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from reconciler.core.checks import BUILT_IN, AnyCheck, Check, NodeCheck
from reconciler.core.checks.check import broken, guarded

GROUP = "fleet.checks"


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
            found.append(guarded(check))
    return tuple(found)


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
