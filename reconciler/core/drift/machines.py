"""Host: the machines below the lanes. Most of it is what `fleet doctor` finds: a fact has one home."""

import re
from collections.abc import Iterable, Iterator

from reconciler.core.checks import Case, Judge, Occasion, Result
from reconciler.core.checks import Finding as Checked
from reconciler.core.desired import Desired
from reconciler.core.doctor import examine
from reconciler.core.drift.finding import Finding, Kind, Severity
from reconciler.core.observed import Observed, Unknown
from reconciler.core.staging import Staging
from reconciler.core.status import views
from reconciler.core.unknown import unreachable

CONTENT = ("model-", "image-")
"""How the checks begin that are about content, not about the machine."""

TOLD_ELSEWHERE = frozenset({"orphan", "silence", "name"})
"""What others of these classes tell: ranks without their gang. And what is about the spec itself."""

BOOKKEEPING = frozenset({"model-disk"})


def silent(observed: Observed) -> Iterator[Finding]:
    """Nodes that do not answer; not those that the spec declares off. Whether their lanes serve nobody can tell."""
    for state in unreachable(observed.nodes[node] for node in sorted(observed.nodes)):
        hint = "; ".join(state.hint.splitlines())
        yield Finding(
            Kind.HOST,
            state.node,
            "reach",
            "reachable",
            state.reason,
            f"nothing; {hint}" if hint else "nothing: it has to be reachable",
            evidence=f"it was tried ({state.kind})",
        )


def mute_storage(states: Iterable[Unknown]) -> Iterator[Finding]:
    """Nodes that answer, and whose storage does not tell of the models of lanes that run from it."""
    for state in states:
        yield Finding(
            Kind.HOST,
            state.node,
            "storage",
            "tells of the models",
            state.reason,
            f"nothing; {state.hint}" if state.hint else "nothing",
            evidence="the folders of models that lanes run from were asked for",
            sign=str(state.kind),
        )


def checked(desired: Desired, observed: Observed, judge: Judge) -> Iterator[Finding]:
    """What is wrong by the checks of `fleet doctor`, and of models of lanes that run. The same of several gangs is told
    once."""
    told: dict[str, Finding] = {}
    standing, _ = judge.silences.parted(_of_models(desired, observed, judge))
    for item in (*examine(desired, observed, judge).findings, *standing):
        if item.result in {Result.FAIL, Result.WARN} and item.check not in TOLD_ELSEWHERE:
            finding = _finding(item)
            told.setdefault(finding.id, finding)
    yield from told.values()


def _of_models(desired: Desired, observed: Observed, judge: Judge) -> Iterator[Checked]:
    """A plan does not touch the files of lanes that run; here they were looked at."""
    seen = [view for view in views(desired, observed) if any(rank.is_up for rank in view.ranks)]
    staging = Staging.of([], desired.transfer, observed)
    for view in seen:
        for item in judge.of_rank_checks(Case(desired, observed, view, staging), Occasion.BOOT):
            if item.check.startswith("model-") and item.check not in BOOKKEEPING:
                yield item


def _finding(item: Checked) -> Finding:
    is_content = item.check.startswith(CONTENT)
    return Finding(
        Kind.IDENTITY if is_content else Kind.HOST,
        f"{item.address}@{item.node}" if is_content and item.node else item.node or item.address,
        item.check,
        "as the spec says" if is_content else "in order",
        item.evidence,
        f"nothing: {item.mend}" if item.mend else "nothing",
        evidence=f"check {item.check} of `fleet doctor`",
        severity=Severity.DEGRADED if item.result is Result.FAIL else Severity.NOTICE,
        sign=re.sub(r"\d+(?:\.\d+)?", "#", item.evidence),
    )


def foreign(desired: Desired, observed: Observed) -> Iterator[Finding]:
    """Running containers that are not of this fleet, where a lane of it is placed."""
    for node in sorted({node for gang in desired.gangs for node in gang.nodes}):
        facts = observed.facts(node)
        for item in sorted(facts.containers if facts else (), key=lambda found: found.name):
            is_renamed = item.claims is not None and item.claims.fleet == desired.fleet
            if item.is_running and not item.is_of(desired.fleet) and not is_renamed:
                yield Finding(
                    Kind.HOST,
                    node,
                    f"container {item.name}",
                    "not there",
                    f"runs {item.image or item.image_id}",
                    "nothing: it is not of this fleet",
                    since=item.started_at or item.created_at,
                    evidence=f"docker ps on {node}: it has no labels of this fleet",
                    severity=Severity.NOTICE,
                )
