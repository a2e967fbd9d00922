"""What the agent remembers: across restarts, and what a look teaches it."""

from dataclasses import replace

import pytest

from reconciler.core.canonical import canonical_json
from reconciler.core.decode import DecodeError
from reconciler.core.exits import Exit
from reconciler.core.gitops.looks import learned
from reconciler.core.gitops.memory import (
    ATTEMPTS,
    TRIED,
    Outcome,
    Remembered,
    Suspension,
    remembered_of,
    suspension_of,
)
from tests.unit.core.build import unknown
from tests.unit.core.gitops.scenes import BOTH, HEAD, NEW_A, NOW_S, OLD, A, B, but, look, proved, without


def test_it_survives_as_text() -> None:
    full = proved(OLD, A, B).began(HEAD, "seen", NOW_S).ended(Outcome.FAILED, NOW_S + 1, "out of memory", "run1")
    full = full.repairing(["c/a"], NOW_S).giving_up({"c/b": "too often"}, NOW_S)
    assert full == remembered_of(full.to_json())
    assert Remembered() == remembered_of(Remembered().to_json()) == remembered_of(None)


@pytest.mark.parametrize("text", ["", "[]", '{"applied": 3}', '{"something": "new"}'])
def test_what_is_not_such_a_text_is_an_error(text: str) -> None:
    with pytest.raises(DecodeError):
        remembered_of(text)


def test_an_attempt_is_there_from_before_its_first_effect() -> None:
    begun = proved(OLD, A).began(HEAD, "seen", NOW_S)
    assert (HEAD, OLD, [Outcome.BEGUN]) == (begun.applied, begun.good, [item.outcome for item in begun.attempts])
    again = begun.began(HEAD, "seen", NOW_S + 9).ended(Outcome.APPLIED, NOW_S + 10)
    assert [Outcome.BEGUN, Outcome.APPLIED] == [item.outcome for item in again.attempts]
    assert begun.ended(Outcome.APPLIED, NOW_S).ended(Outcome.FAILED, NOW_S) == begun.ended(Outcome.APPLIED, NOW_S)


def test_only_so_much_is_kept() -> None:
    remembered = Remembered()
    for number in range(ATTEMPTS + 9):
        remembered = remembered.began(HEAD, str(number), NOW_S).repairing(["c/a"], NOW_S)
    assert (ATTEMPTS, str(ATTEMPTS + 8)) == (len(remembered.attempts), remembered.attempts[-1].observation)
    assert ATTEMPTS == len(remembered.heals)


def test_a_repair_counts_from_before_its_first_effect_unless_it_was_broken_off() -> None:
    begun = proved(OLD, A, B).repairing(["c/a", "c/b"], NOW_S)
    assert [("c/a", False), ("c/b", False)] == [(item.gang, item.ok) for item in begun.heals]
    done = begun.repaired(["c/a", "c/b"], NOW_S, NOW_S + 60, ok=True)
    assert [(NOW_S + 60, True)] * 2 == [(item.at_s, item.ok) for item in done.heals]
    assert () == begun.repaired(["c/a", "c/b"], NOW_S, NOW_S + 60, ok=None).heals
    again = done.repairing(["c/a"], NOW_S + 90).repaired(["c/a"], NOW_S + 90, NOW_S + 99, ok=None)
    assert done == again


def test_every_exit_code_is_an_outcome_and_a_held_part_is_not_a_refusal() -> None:
    assert list(Exit) == [code for code in Exit if Outcome.of(code)]
    assert (Outcome.REFUSED, Outcome.PARTIAL) == (Outcome.of(Exit.REFUSED), Outcome.of(Exit.REFUSED, withheld=True))
    assert {Outcome.BEGUN, Outcome.INTERRUPTED, Outcome.LEASE_HELD} == set(Outcome) - TRIED


def test_a_suspension_lapses() -> None:
    told = Suspension("ops@laptop", "a demo", NOW_S, NOW_S + 60)
    assert told == suspension_of(canonical_json(told), NOW_S + 59)
    assert None is suspension_of(canonical_json(told), NOW_S + 60)
    assert None is suspension_of(None, NOW_S)
    forever = replace(told, until_s=None)
    assert forever == suspension_of(canonical_json(forever), NOW_S + 1e9)


def test_a_look_at_what_was_applied_teaches_what_is_in_place_and_whether_all_is() -> None:
    begun = Remembered().began(HEAD, "seen", NOW_S)
    whole = learned(begun, HEAD, look([A, B], BOTH))
    assert (HEAD, proved(HEAD, A, B).proven) == (whole.good, whole.proven)
    part = learned(begun, HEAD, look([A, B], without(BOTH, "n3")))
    assert (None, proved(HEAD, A).proven) == (part.good, part.proven)


def test_a_look_at_another_commit_teaches_nothing() -> None:
    before = proved(OLD, A, B)
    assert before is learned(before, HEAD, look([A, B], BOTH))


def test_what_drifted_is_still_known_as_it_was_proved_and_what_was_taken_away_is_forgotten() -> None:
    before = proved(HEAD, A, B)
    drifted = learned(before, HEAD, look([A, B], without(BOTH, "n3")))
    assert (before.proven, HEAD) == (drifted.proven, drifted.good)
    going = learned(replace(before, good=OLD), HEAD, look([A], BOTH))
    assert (before.proven, OLD) == (going.proven, going.good)
    gone = learned(before, HEAD, look([A], without(BOTH, "n3")))
    assert proved(HEAD, A).proven == gone.proven


def test_a_commit_is_good_only_when_every_node_was_seen() -> None:
    begun = Remembered().began(HEAD, "seen", NOW_S)
    assert None is learned(begun, HEAD, look([A, B], but(BOTH, unknown("n4")))).good


def test_a_new_version_takes_the_place_of_the_proof_of_the_old() -> None:
    after = learned(proved(OLD, A, B).began(HEAD, "seen", NOW_S), HEAD, look([NEW_A, B], BOTH))
    assert [(OLD, A.fingerprint), (HEAD, B.fingerprint)] == [(item.commit, item.fingerprint) for item in after.proven]


def test_attempts_that_were_broken_off_never_crowd_out_the_one_that_failed() -> None:
    made = Remembered().began("c1", "seen", 1.0).ended(Outcome.FAILED, 2.0)
    for at_s in range(200):
        made = made.began("c1", "seen", float(at_s)).ended((Outcome.LEASE_HELD, Outcome.INTERRUPTED)[at_s % 2], 3.0)
    assert [Outcome.FAILED, Outcome.INTERRUPTED] == [item.outcome for item in made.attempts]
