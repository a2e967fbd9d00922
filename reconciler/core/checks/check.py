"""What a check is. A check is a small pure function over facts; adding one is a function and a `Check` in a list."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from reconciler.core.checks.case import Case, Site
from reconciler.core.checks.finding import Finding, Result
from reconciler.core.classify import RankView


class Occasion(StrEnum):
    """When a check of a gang is asked."""

    BOOT = "boot"  # the gang boots: what fails is refused
    SYNC = "sync"  # its image is brought, and nothing else
    COPY = "copy"  # its models are copied, and nothing else
    PROOF = "proof"  # it runs as wanted, and has only to be proved
    STANDING = "standing"  # `fleet doctor` asks, and it runs as wanted


BOOT_ONLY = frozenset({Occasion.BOOT})
FOR_IMAGES = frozenset({Occasion.BOOT, Occasion.SYNC})
FOR_MODELS = frozenset({Occasion.BOOT, Occasion.COPY})
ALWAYS = frozenset({Occasion.BOOT, Occasion.STANDING})

RankLook = Callable[[Case, RankView], Iterable[Finding]]
SiteLook = Callable[[Site], Iterable[Finding]]


@dataclass(frozen=True)
class Check:
    """A check of each rank of a gang. `title` is the question it answers, `mend` what to do in general.

    `guards`: why it may not be silenced, empty for one that may. A look that yields nothing has nothing to object to.
    """

    id: str
    title: str
    mend: str
    look: RankLook
    occasions: frozenset[Occasion] = BOOT_ONLY
    guards: str = ""


@dataclass(frozen=True)
class NodeCheck:
    """A check of each node. `holds_up_boots`: what fails is a reason to boot no gang there."""

    id: str
    title: str
    mend: str
    look: SiteLook
    holds_up_boots: bool = False
    guards: str = ""


AnyCheck = Check | NodeCheck


BROKEN = "the check itself is broken"

WRONG = frozenset({Result.FAIL, Result.WARN})


def objections(check: Check, case: Case) -> Iterator[Finding]:
    """What a check says of the ranks, but for those it has nothing to say of: a big plan has thousands of these."""
    for rank in case.view.ranks:
        yield from _of_rank(check, case, rank)


def of_gang(check: Check, case: Case) -> Iterator[Finding]:
    """What a check says of every rank."""
    for rank in case.view.ranks:
        fine = Finding(check.id, case.view.gang.address, Result.OK, node=rank.rank.node)
        yield from tuple(_of_rank(check, case, rank)) or (fine,)


def _of_rank(check: Check, case: Case, rank: RankView) -> Iterator[Finding]:
    address, node = case.view.gang.address, rank.rank.node
    return (_as(item, check, address, node) for item in check.look(case, rank))


def of_node(check: NodeCheck, site: Site) -> Iterator[Finding]:
    """What a check says of a node."""
    found = tuple(_as(item, check, site.node, site.node) for item in check.look(site))
    yield from found or (Finding(check.id, site.node, Result.OK, node=site.node),)


def guarded(check: AnyCheck) -> AnyCheck:
    """The same check for one that comes from elsewhere: when it breaks, that is what it finds, and no other suffers."""
    if isinstance(check, Check):
        look = check.look
        return replace(check, look=lambda case, rank: _tried(check.id, lambda: look(case, rank)))
    seen = check.look
    return replace(check, look=lambda site: _tried(check.id, lambda: seen(site)))


def _as(found: Finding, check: AnyCheck, address: str, node: str) -> Finding:
    """A finding is of the check that was asked, about what it was asked about, whatever else a check may say.

    What is wrong always comes with something to do: where the look has nothing better, what the check says in general.
    """
    mend = found.mend or (check.mend if found.result in WRONG else "")
    if (found.check, found.address, found.node, found.mend) == (check.id, address, node, mend):
        return found
    return replace(found, check=check.id, address=address, node=node, mend=mend)


def _tried(check: str, look: Callable[[], Iterable[Finding]]) -> list[Finding]:
    try:
        found = list(look())
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it is of a package of the user's
        return [broken(check, f"{type(error).__name__}: {error}")]
    why = next(filter(None, map(_nonsense, found)), "")
    return [broken(check, why)] if why else found


def _nonsense(item: object) -> str:
    """Why what a check yielded is no finding, empty for one that is: types are not held to outside of this package."""
    if not isinstance(item, Finding):
        return f"it yielded {type(item).__name__}, not a Finding"
    if not isinstance(item.result, Result):
        return f"it yielded a Finding whose result is {item.result!r}, not a Result"
    texts = (("evidence", item.evidence), ("mend", item.mend))
    return next(
        (f"it yielded a Finding whose {name} is no text" for name, text in texts if not isinstance(text, str)), ""
    )


def broken(check: str, why: str) -> Finding:
    """A check that does not work. What it was to find is not known, so it keeps nothing from being done."""
    return Finding(check, "", Result.UNKNOWN, f"{BROKEN}: {why[:200]}", "mend or uninstall the package it comes from")
