"""What one report of drift leaves for the next: what is new, what is gone, and what is merely out of sight."""

import pytest

from reconciler.core.drift import Finding, Kind, Severity
from reconciler.core.drift.failing import ANY, exit_of, fail_on
from reconciler.core.drift.news import news, told_in, told_text
from reconciler.core.drift.past import HISTORY, left_in, left_of, left_text, with_past
from reconciler.core.exits import Exit
from tests.unit.core.drift_reports import finding, report

KILLED, HUNG = finding("pair-a/pair/1@node2"), finding("single-3/solo", "health")
DISK = finding("node2", "disk", Kind.HOST, Severity.NOTICE)
SILENT = finding("node2", "reach", Kind.HOST)


def test_what_is_left_of_a_report_comes_back_from_the_state() -> None:
    left = left_of(report([KILLED, DISK], unreachable=["node3"]), None)
    assert left == left_in(left_text(left))
    assert {KILLED.id: KILLED.address, DISK.id: DISK.address} == left.known
    assert {"intent": 0, "config": 0, "identity": 0, "runtime": 1, "host": 1} == left.counts
    assert 1 == left.unreachable


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "3", '{"schema": "fleet.drift-past/9"}', '{"schema": "fleet.drift-past/1", "known": []}'],
)
def test_what_others_wrote_into_the_state_is_nothing(text: str) -> None:
    assert left_in(text) is None
    assert told_in(text) is None


def test_without_an_earlier_report_nothing_is_new() -> None:
    assert report([KILLED]) == with_past(report([KILLED]), [])


def test_findings_that_the_report_before_did_not_have_are_new_and_those_it_had_alone_are_gone() -> None:
    found = with_past(report([KILLED, DISK]), [left_of(report([HUNG, DISK]), None)])
    assert (frozenset({KILLED.id}), 1) == (found.new, found.gone)


def test_history_is_told_oldest_first_and_has_an_end() -> None:
    past = [left_of(report([DISK] * number, at_s=float(number)), None) for number in range(HISTORY + 5, 0, -1)]
    history = with_past(report(), past).history
    assert [float(number) for number in range(6, HISTORY + 6)] == [item.at_s for item in history]
    assert 7 == history[1].counts[Kind.HOST]


def test_what_is_out_of_sight_is_neither_gone_nor_new_when_it_is_seen_again() -> None:
    first = left_of(report([KILLED, HUNG, DISK]), None)
    blind = report([SILENT, HUNG], unreachable=["node2"])
    assert (frozenset({SILENT.id}), 0) == (with_past(blind, [first]).new, with_past(blind, [first]).gone)
    second = left_of(blind, first)
    again = with_past(report([KILLED, HUNG]), [second])
    assert (frozenset(), 2) == (again.new, again.gone)  # the silence and the disk


def test_a_lane_with_a_silent_node_hides_what_was_found_of_its_other_ranks() -> None:
    first = left_of(report([finding("pair-a/pair/0@node1")]), None)
    assert 0 == with_past(report(unreachable=["node2"]), [first]).gone
    assert 1 == with_past(report(unreachable=["node3"]), [first]).gone


def test_what_there_was_no_time_for_may_all_be_there() -> None:
    first = left_of(report([KILLED, HUNG]), None)
    assert 0 == with_past(report(missing=["the health of lanes"]), [first]).gone


# news


def told(*findings: Finding) -> dict[str, str]:
    return {item.id: item.address for item in findings}


def test_news_are_told_once() -> None:
    first = news(report([KILLED, DISK]), [KILLED, DISK], None)
    assert first is not None
    assert ((KILLED, DISK), frozenset({KILLED.id, DISK.id})) == (first.findings, first.new)
    before = told_in(told_text(first.known))
    assert None is news(report([DISK, KILLED]), [DISK, KILLED], before)


def test_another_time_of_the_same_finding_is_no_news() -> None:
    later = finding("pair-a/pair/1@node2", since="2026-11-30T10:00:00Z")
    assert None is news(report([later]), [later], told(KILLED))


def test_all_is_well_again_is_told_once_and_only_to_who_knew_of_something() -> None:
    over = news(report(), [], told(KILLED))
    assert over is not None
    assert ((), {}) == (over.findings, over.known)
    assert None is news(report(), [], over.known)
    assert None is news(report(), [], None)


def test_what_is_out_of_sight_is_not_told_to_be_well() -> None:
    assert None is news(report(off=["node2"]), [], told(KILLED))
    some = news(report([SILENT], unreachable=["node2"]), [SILENT], told(KILLED))
    assert some is not None
    assert told(KILLED, SILENT) == some.known


# which findings count


@pytest.mark.parametrize(
    ("words", "counted"),
    [
        ((), [KILLED, DISK]),
        (("runtime",), [KILLED]),
        (("config,identity",), []),
        (("config", "host"), [DISK]),
        (("degraded",), [KILLED]),
        (("outage, notice",), [KILLED, DISK]),
        (("outage,host",), [DISK]),
    ],
)
def test_classes_count_and_severities_with_what_is_worse(words: tuple[str, ...], counted: list[Finding]) -> None:
    rule = fail_on(words)
    assert counted == list(rule.counted([KILLED, DISK]))
    assert (Exit.CHANGES if counted else Exit.OK) == exit_of(report([KILLED, DISK]), rule)


@pytest.mark.parametrize(("word", "hint"), [("runtme", "did you mean runtime?"), ("", "name some of intent")])
def test_a_word_that_names_no_findings_is_an_error(word: str, hint: str) -> None:
    with pytest.raises(ValueError, match="neither a class") as error:
        fail_on([word])
    assert hint in str(error.value)


@pytest.mark.parametrize(("silent", "missing"), [(["node3"], []), ([], ["the health of lanes"])])
def test_what_could_not_be_looked_at_wins_over_what_was_found(silent: list[str], missing: list[str]) -> None:
    assert Exit.UNREACHABLE == exit_of(report([KILLED], unreachable=silent, missing=missing), ANY)
    assert Exit.UNREACHABLE == exit_of(report(unreachable=silent, missing=missing), fail_on(["config"]))


def test_a_node_declared_off_is_no_reason_to_look() -> None:
    assert Exit.OK == exit_of(report(off=["node3"]), ANY)
