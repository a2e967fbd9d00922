"""What is said of `fleet apply` is what it would do: it may be refused, withheld or wait."""

from dataclasses import replace

import pytest

from reconciler.core.drift import Finding, Kind
from reconciler.core.drift.remedies import true_remedies
from reconciler.core.plan import Deferred, Plan, Refusal, Withheld
from reconciler.core.planner import PlanOptions, make_plan
from tests.unit.core.build import desired, gang, world

PAIR = gang("a", ("n1", "n2"))
EMPTY = make_plan(desired(PAIR), world(PAIR), PlanOptions("test"))
PORT = Refusal("port", "c/a", "n1", "port 8000 is taken")
OTHER = replace(PORT, gang="c/b")
HELD = Withheld("c/a", "hold", "lane a is held by ann", "`fleet release 1` ends the hold")


def finding(address: str, remedy: str) -> Finding:
    return Finding(Kind.RUNTIME, address, "state", "running", "is missing", remedy)


CASES: dict[str, tuple[Plan, str, str]] = {
    "nothing is in the way": (EMPTY, "c/a/1@n2", "boot the gang"),
    "refused": (replace(EMPTY, refusals=(PORT,)), "c/a/1@n2", "nothing: it is refused: port 8000 is taken"),
    "refused, told of the lane": (
        replace(EMPTY, refusals=(PORT,)),
        "c/a",
        "nothing: it is refused: port 8000 is taken",
    ),
    "refused, told of the lane on a node": (
        replace(EMPTY, refusals=(PORT,)),
        "c/a@n1",
        "nothing: it is refused: port 8000 is taken",
    ),
    "refused twice: the first is told": (
        replace(EMPTY, refusals=(PORT, replace(PORT, summary="no disk"))),
        "c/a",
        "nothing: it is refused: port 8000 is taken",
    ),
    "another is refused, and so the whole plan": (
        replace(EMPTY, refusals=(OTHER,)),
        "c/a",
        "nothing while c/b is refused; then: boot the gang",
    ),
    "another is refused, and held": (
        replace(EMPTY, refusals=(OTHER,), withheld=(replace(HELD, gang="c/b"),)),
        "c/a",
        "boot the gang",
    ),
    "the spec is empty": (
        replace(EMPTY, refusals=(Refusal("empty", "", None, "no lane is placed"),)),
        "c/a",
        "nothing while this is refused: no lane is placed; then: boot the gang",
    ),
    "held": (
        replace(EMPTY, withheld=(HELD,)),
        "c/a",
        "nothing: lane a is held by ann; `fleet release 1` ends the hold",
    ),
    "held and refused": (
        replace(EMPTY, withheld=(HELD,), refusals=(PORT,)),
        "c/a",
        "nothing: lane a is held by ann; `fleet release 1` ends the hold",
    ),
    "it waits": (
        replace(EMPTY, deferred=(Deferred("c/a", "n2 does not answer"),)),
        "c/a",
        "nothing: it waits: n2 does not answer",
    ),
    "another waits": (replace(EMPTY, deferred=(Deferred("c/ab", "n2 does not answer"),)), "c/a", "boot the gang"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_remedy_is_what_the_plan_leaves_of_it(name: str) -> None:
    plan, address, expected = CASES[name]
    [told] = true_remedies([finding(address, "boot the gang")], lambda: plan)
    assert expected == told.remedy
    assert finding(address, "boot the gang").id == told.id


def test_no_plan_is_made_where_nothing_is_promised() -> None:
    asked = []
    found = [finding("c/a", "nothing: it boots")]
    assert tuple(found) == true_remedies(found, lambda: asked.append(1) or EMPTY)  # type: ignore[func-returns-value]
    assert [] == asked


def test_what_is_nothing_already_keeps_its_words() -> None:
    found = [finding("c/a", "nothing: it boots"), finding("c/b", "remove it")]
    told = true_remedies(found, lambda: replace(EMPTY, refusals=(PORT,)))
    assert ["nothing: it boots", "nothing while c/a is refused; then: remove it"] == [item.remedy for item in told]
