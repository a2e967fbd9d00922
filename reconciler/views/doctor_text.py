"""What the checks found, as text: failures first, then by lane and node, each with evidence and mend."""

from collections.abc import Iterable, Iterator

from reconciler.core.checks import AnyCheck, Finding, NodeCheck, Result
from reconciler.core.doctor import Diagnosis
from reconciler.views.words import count, one_line

MARKS = {Result.FAIL: "x", Result.WARN: "!", Result.UNKNOWN: "?", Result.OK: "ok"}
ORDER = (Result.FAIL, Result.WARN, Result.UNKNOWN, Result.OK)


def doctor_text(found: Diagnosis, *, whole: bool = False) -> str:
    """Failures and warnings; with `whole`, also what is fine and what could not be had."""
    return "".join(f"{one_line(line)}\n" for line in _lines(found, whole=whole))


def _lines(found: Diagnosis, *, whole: bool) -> Iterator[str]:
    counts = {result: len(found.of(result)) for result in ORDER}
    yield f"fleet {found.fleet} · {count(len(found.findings), 'check')} made: {_summary(counts)}"
    for state in found.unknown:
        told = f"- {state.node}" if state.is_declared else f"? {state.node} cannot be read"
        yield f"  {told}: {state.reason}"
        yield from (f"      {line}" for line in state.hint.splitlines())
    shown = [item for item in found.findings if whole or item.result in {Result.FAIL, Result.WARN}]
    for address in _addresses(shown):
        yield ""
        yield address or "the fleet"
        mine = [item for item in shown if item.address == address]
        for item in sorted(mine, key=lambda one: ORDER.index(one.result)):
            yield from _finding(item)
    if found.silenced:
        yield ""
    for passed in found.silenced:
        item, silence = passed.finding, passed.silence
        yield f"silenced until {silence.until}: {item.address}: {item.evidence} ({item.check}; {silence.reason})"
    if not whole and counts[Result.UNKNOWN]:
        yield ""
        yield f"{count(counts[Result.UNKNOWN], 'fact')} could not be had; `fleet doctor --all` says which"


def _summary(counts: dict[Result, int]) -> str:
    words = {Result.FAIL: "failed", Result.WARN: "warned", Result.UNKNOWN: "unknown", Result.OK: "fine"}
    return ", ".join(f"{counts[result]} {words[result]}" for result in ORDER if counts[result]) or "nothing to check"


def _addresses(found: Iterable[Finding]) -> list[str]:
    """Those with failures first, then as they come."""
    worst: dict[str, int] = {}
    for item in found:
        worst[item.address] = min(worst.get(item.address, len(ORDER)), ORDER.index(item.result))
    return sorted(worst, key=lambda address: worst[address])


def _finding(item: Finding) -> Iterator[str]:
    where = f"{item.node}: " if item.node and item.node != item.address and item.node not in item.evidence else ""
    yield f"  {MARKS[item.result]:<2} {item.check:<16} {where}{item.evidence or 'as it has to be'}"
    if item.mend and item.result is not Result.OK:
        yield f"     {'':<16} {item.mend}"


def catalogue_text(checks: Iterable[AnyCheck]) -> str:
    """Every check with its question, what to do, and whether it may be silenced."""
    return "".join(f"{line}\n" for check in checks for line in _entry(check))


def _entry(check: AnyCheck) -> Iterator[str]:
    about = "node" if isinstance(check, NodeCheck) else "lane"
    yield f"{check.id} ({about}): {check.title}"
    yield f"    {check.mend}"
    if check.guards:
        yield f"    It cannot be silenced: {check.guards}."
