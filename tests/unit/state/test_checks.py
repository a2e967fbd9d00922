"""Every rule of a snapshot, broken on its own."""

from dataclasses import replace

import pytest

from state import Entry, Outcome, Snapshot, findings
from tests.unit.state.samples import a_revision, a_run

RUN = a_run()
FIRST = Entry("r1", 1, "s1", "pair/tiny", "n1", "stop", "c", "o1", 1.0)
SECOND = replace(FIRST, sequence=2, step_id="s2")
DONE = Outcome("r1", 1, "applied", "", 2.0)


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        (Snapshot(), ()),
        (Snapshot((RUN,), (FIRST, SECOND), (DONE,), (a_revision(),)), ()),
        (Snapshot((RUN,), (SECOND,)), ("the journal of run r1 has entry 2 where entry 1 belongs",)),
        (Snapshot((RUN,), (), (DONE,)), ("entry 1 of run r1 has an outcome without an intent",)),
        (Snapshot((), (FIRST,)), ("run r1 has journal entries but no start",)),
        (
            Snapshot(revisions=(a_revision(),)),
            ("revision 1 of pair/tiny was confirmed by run r1, never started",),
        ),
        (Snapshot((replace(RUN, ended_at=3.0),)), ("run r1 has only one of end time and exit code",)),
        (
            Snapshot((replace(RUN, ended_at=3.0, exit_code=0),), (FIRST, SECOND), (DONE,)),
            ("run r1 ended while its entry 2 (s2) was open",),
        ),
    ],
)
def test_each_broken_rule_is_one_sentence(snapshot: Snapshot, expected: tuple[str, ...]) -> None:
    assert findings(snapshot) == expected


def test_order_of_the_records_does_not_matter() -> None:
    assert findings(Snapshot((RUN,), (SECOND, FIRST), (DONE,))) == ()


def test_all_findings_are_told_at_once() -> None:
    broken = Snapshot((replace(RUN, exit_code=1),), (SECOND,), (replace(DONE, sequence=7),))
    assert len(findings(broken)) == 3
