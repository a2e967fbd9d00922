"""What every store does, whatever it is made of."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from state import (
    REPORTS,
    Entry,
    Intent,
    Memory,
    MemoryStore,
    MisuseError,
    Outcome,
    Snapshot,
    StateError,
    Store,
    open_store,
)
from tests.unit.state.samples import a_hold, a_measure, a_quarantine, a_revision, a_run, fill, intend


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = MemoryStore()
    if request.param == "sqlite":
        made = open_store(tmp_path / ".fleet")
    elif request.param == "postgres":
        made = open_store(request.getfixturevalue("postgres"))
    yield made
    made.close()


def test_a_new_store_is_empty_sound_and_writable(store: Store) -> None:
    store.check_writable()
    assert store.runs(10) == ()
    assert store.open_entries() == ()
    assert store.verify() == ()


def test_a_run_reads_back_as_it_was_begun(store: Store) -> None:
    run = replace(a_run(), commit="4f2c1ab")
    store.begin_run(run)
    assert store.runs(1) == (run,)


def test_runs_come_newest_first_and_limited(store: Store) -> None:
    for name in ("r1", "r2", "r3"):
        store.begin_run(a_run(name))
    assert [run.id for run in store.runs(2)] == ["r3", "r2"]


def test_the_order_of_runs_is_that_of_recording_even_when_the_clock_went_back(store: Store) -> None:
    store.begin_run(a_run("r1", at=2_000.0))
    store.begin_run(a_run("r2", at=1_000.0))
    assert [run.id for run in store.runs(2)] == ["r2", "r1"]


def test_an_ended_run_has_its_exit_code_and_time(store: Store) -> None:
    store.begin_run(a_run())
    store.end_run("r1", exit_code=6, at=1_500.0)
    assert store.runs(1) == (replace(a_run(), ended_at=1_500.0, exit_code=6),)


def test_sequences_count_from_one_in_each_run(store: Store) -> None:
    store.begin_run(a_run("r1"))
    store.begin_run(a_run("r2"))
    assert [intend(store, "r1"), intend(store, "r2"), intend(store, "r1")] == [1, 1, 2]


def test_effects_that_begin_together_are_recorded_together(store: Store) -> None:
    store.begin_run(a_run())
    first = intend(store)
    drafts = tuple(Intent(f"s{n}", "pair/tiny", None, "start", "c", f"op-{n}", 1_002.0) for n in range(3))
    assert store.intents("r1", drafts) == (first + 1, first + 2, first + 3)
    assert store.entries("r1")[1:] == tuple(item.as_entry("r1", n) for n, item in enumerate(drafts, start=2))
    assert store.intents("r1", ()) == ()
    with pytest.raises(MisuseError):
        store.intents("nobody", drafts)
    assert len(store.open_entries()) == 4


def test_an_intent_is_an_open_entry_with_all_it_was_given(store: Store) -> None:
    store.begin_run(a_run())
    intend(store)
    entry = Entry("r1", 1, "pair/tiny/boot/0", "pair/tiny", "n1", "start", "fleet-tiny-r0-v1", "op-1", 1_001.0)
    assert store.entries("r1") == (entry,)
    assert store.open_entries() == (entry,)
    assert entry.is_open


def test_a_step_of_a_whole_gang_has_no_node(store: Store) -> None:
    store.begin_run(a_run())
    store.intent("r1", "pair/tiny/verify", "pair/tiny", None, "verify", "pair/tiny", "op-1", 1_001.0)
    assert store.entries("r1")[0].node is None


def test_an_outcome_closes_its_entry(store: Store) -> None:
    store.begin_run(a_run())
    sequence = intend(store)
    store.outcome("r1", sequence, "applied", "took 3 s", at=1_004.0)
    assert store.open_entries() == ()
    entry = store.entries("r1")[0]
    assert (entry.result, entry.detail, entry.ended_at) == ("applied", "took 3 s", 1_004.0)


def test_a_later_run_may_settle_what_a_dead_one_left_open(store: Store) -> None:
    store.begin_run(a_run("dead"))
    sequence = intend(store, "dead")
    store.begin_run(a_run("next"))
    assert [entry.run_id for entry in store.open_entries()] == ["dead"]
    store.outcome("dead", sequence, "applied", "found running", at=1_900.0)
    assert store.open_entries() == ()


def test_open_entries_of_all_runs_come_oldest_first(store: Store) -> None:
    for name in ("r2", "r1"):
        store.begin_run(a_run(name))
        intend(store, name)
    assert [entry.run_id for entry in store.open_entries()] == ["r2", "r1"]


def test_entries_of_an_unknown_run_are_none(store: Store) -> None:
    assert store.entries("nobody") == ()


def test_boots_come_newest_first_limited_and_only_of_that_gang(store: Store) -> None:
    store.begin_run(a_run())
    for number, seconds in enumerate((10.0, 20.0, 30.0), start=1):
        store.confirm(a_revision(number, boot_s=seconds))
    store.confirm(a_revision(1, gang="pair/other", boot_s=99.0))
    assert store.boots("pair/tiny", 2) == (30.0, 20.0)


def test_confirming_the_same_revision_again_in_a_run_replaces_it(store: Store) -> None:
    store.begin_run(a_run())
    store.confirm(a_revision(boot_s=10.0))
    store.confirm(a_revision(boot_s=11.0))
    assert store.boots("pair/tiny", 5) == (11.0,)


def test_a_repair_boots_the_same_revision_in_another_run_and_both_count(store: Store) -> None:
    for name, seconds in (("r1", 10.0), ("r2", 14.0)):
        store.begin_run(a_run(name))
        store.confirm(a_revision(1, run=name, boot_s=seconds))
    assert store.boots("pair/tiny", 5) == (14.0, 10.0)


def test_a_run_that_ended_with_an_open_entry_is_a_finding(store: Store) -> None:
    store.begin_run(a_run())
    intend(store)
    store.end_run("r1", 0, 1_500.0)
    assert store.verify() == ("run r1 ended while its entry 1 (pair/tiny/boot/0) was open",)


def test_a_run_is_begun_once(store: Store) -> None:
    store.begin_run(a_run())
    with pytest.raises(MisuseError):
        store.begin_run(a_run())
    assert len(store.runs(9)) == 1


def test_no_intent_without_a_run(store: Store) -> None:
    with pytest.raises(MisuseError):
        intend(store, "nobody")
    assert store.open_entries() == ()


def test_no_intent_and_no_second_end_after_the_end(store: Store) -> None:
    store.begin_run(a_run())
    store.end_run("r1", 0, 1_500.0)
    with pytest.raises(MisuseError):
        intend(store)
    with pytest.raises(MisuseError):
        store.end_run("r1", 1, 1_600.0)
    assert store.runs(1)[0].exit_code == 0


def test_no_outcome_without_an_intent(store: Store) -> None:
    store.begin_run(a_run())
    with pytest.raises(MisuseError):
        store.outcome("r1", 1, "applied", "", 1_002.0)
    assert store.verify() == ()


def test_no_second_outcome(store: Store) -> None:
    store.begin_run(a_run())
    sequence = intend(store)
    store.outcome("r1", sequence, "failed", "no", 1_002.0)
    with pytest.raises(MisuseError):
        store.outcome("r1", sequence, "applied", "yes", 1_003.0)
    assert store.entries("r1")[0].result == "failed"


def test_no_revision_of_an_unknown_run(store: Store) -> None:
    with pytest.raises(MisuseError):
        store.confirm(a_revision(run="nobody"))
    assert store.boots("pair/tiny", 1) == ()


def test_a_run_is_found_by_its_id(store: Store) -> None:
    store.begin_run(a_run("r1"))
    store.begin_run(a_run("r2"))
    assert store.run("r1") == a_run("r1")
    assert store.run("r3") is None


def test_a_detail_with_bytes_that_no_text_has_is_kept_readable(store: Store) -> None:
    store.begin_run(a_run())
    store.outcome("r1", intend(store), "failed", "exit\0 \udcff é", 1_002.0)
    assert store.entries("r1")[0].detail == "exit\N{REPLACEMENT CHARACTER} ? é"


def test_revisions_come_newest_first_limited_and_of_one_gang_or_all(store: Store) -> None:
    store.begin_run(a_run())
    first, other = a_revision(1), replace(a_revision(1, gang="pair/other"), spec='{"a":1}', how="rollback")
    second = a_revision(2)
    for revision in (first, other, second):
        store.confirm(revision)
    assert store.revisions("pair/tiny", 9) == (second, first)
    assert store.revisions(None, 2) == (second, other)
    assert store.revisions("pair/none", 9) == ()


def test_a_saved_plan_is_claimed_by_one_run_for_ever(store: Store) -> None:
    for name in ("r1", "r2"):
        store.begin_run(a_run(name))
    assert store.claim_plan("plan-1", "r1", 1_001.0) is None
    assert store.claim_plan("plan-1", "r1", 1_002.0) is None
    assert store.claim_plan("plan-1", "r2", 1_003.0) == "r1"
    assert store.claim_plan("plan-2", "r2", 1_003.0) is None


def test_no_claim_of_an_unknown_run(store: Store) -> None:
    store.begin_run(a_run())
    for _ in range(2):
        with pytest.raises(MisuseError):
            store.claim_plan("plan-1", "nobody", 1_001.0)
        store.claim_plan("plan-1", "r1", 1_001.0)
    assert [claim.run_id for claim in store.snapshot().claims] == ["r1"]


def test_holds_are_active_until_they_expire_or_are_released(store: Store) -> None:
    ending, lasting = a_hold("h1", until=2_000.0), a_hold("h2", until=None)
    store.place_hold(ending)
    store.place_hold(lasting)
    assert store.holds(1_999.9) == (ending, lasting)
    assert store.holds(2_000.0) == (lasting,)
    assert store.release_hold("h2", 1_500.0)
    assert store.holds(1_600.0) == (ending,)


def test_a_hold_is_released_once_and_only_while_it_holds(store: Store) -> None:
    store.place_hold(a_hold("h1", until=2_000.0))
    assert not store.release_hold("h9", 1_500.0)
    assert not store.release_hold("h1", 2_000.0)
    assert store.release_hold("h1", 1_500.0)
    assert not store.release_hold("h1", 1_600.0)
    assert [hold.released_at for hold in store.snapshot().holds] == [1_500.0]


def test_a_hold_has_an_id_of_its_own(store: Store) -> None:
    store.place_hold(a_hold("h1"))
    with pytest.raises(MisuseError):
        store.place_hold(a_hold("h1", until=None))
    assert store.holds(1_500.0) == (a_hold("h1"),)


def test_a_version_that_fails_again_replaces_what_was_said_of_it(store: Store) -> None:
    store.begin_run(a_run())
    for failed in (a_quarantine("f1"), a_quarantine("f2"), a_quarantine("f1", cause="out of memory")):
        store.quarantine(failed)
    assert store.quarantined() == (a_quarantine("f2"), a_quarantine("f1", cause="out of memory"))


def test_quarantine_is_lifted_for_one_version_or_a_whole_gang(store: Store) -> None:
    store.begin_run(a_run())
    for failed in (a_quarantine("f1"), a_quarantine("f2"), a_quarantine("f3"), a_quarantine("f1", gang="pair/other")):
        store.quarantine(failed)
    assert store.lift("pair/tiny", "f1") == 1
    assert store.lift("pair/tiny", "f1") == 0
    assert store.lift("pair/tiny", None) == 2
    assert store.quarantined() == (a_quarantine("f1", gang="pair/other"),)


def test_no_quarantine_by_an_unknown_run(store: Store) -> None:
    with pytest.raises(MisuseError):
        store.quarantine(a_quarantine(run="nobody"))
    assert store.quarantined() == ()


def test_a_snapshot_restored_into_an_empty_store_is_all_there_was(store: Store) -> None:
    model = MemoryStore()
    fill(model)
    assert model.verify() == ()
    store.restore(model.snapshot())
    assert store.snapshot() == model.snapshot()
    assert store.runs(9) == model.runs(9)
    assert store.open_entries() == model.open_entries()
    assert intend(store, "r2") == 2
    assert store.claim_plan("plan-1", "r2", 9_000.0) == "r1"


def test_nothing_is_restored_over_something(store: Store) -> None:
    model = MemoryStore()
    fill(model)
    store.place_hold(a_hold("own"))
    with pytest.raises(StateError, match="empty one only") as caught:
        store.restore(model.snapshot())
    assert not isinstance(caught.value, MisuseError)
    assert store.snapshot() == Snapshot(holds=(a_hold("own"),))


@pytest.mark.parametrize(
    "broken",
    [
        Snapshot(runs=(a_run(), a_run())),
        Snapshot(outcomes=(Outcome("r1", 1, "applied", "", 1.0),)),
        Snapshot(quarantines=(a_quarantine(),)),
        Snapshot(holds=(a_hold(), a_hold())),
        Snapshot(memories=(Memory("agent", "1"), Memory("agent", "2"))),
    ],
)
def test_what_is_not_sound_is_not_restored(store: Store, broken: Snapshot) -> None:
    with pytest.raises(StateError, match="is not sound"):
        store.restore(broken)
    assert store.snapshot() == Snapshot()


def test_of_each_subject_the_last_measures_come_back_newest_first(store: Store) -> None:
    store.begin_run(a_run())
    assert store.measures(3) == ()
    boots = [a_measure(float(seconds)) for seconds in range(1, 6)]
    pull, other = a_measure(9.0, "pull"), a_measure(7.0, model="huge")
    store.measure((*boots[:3], pull))
    store.measure((other, *boots[3:]))
    store.measure(())
    assert store.measures(2) == (boots[4], boots[3], other, pull)
    assert store.measures(9) == (boots[4], boots[3], other, pull, *reversed(boots[:3]))


def test_a_measure_is_of_a_known_run(store: Store) -> None:
    with pytest.raises(StateError):
        store.measure((a_measure(run="nobody"),))
    assert store.measures(9) == ()


def test_reports_come_newest_first_and_limited(store: Store) -> None:
    assert store.reports(9) == ()
    for number in range(1, 4):
        store.add_report(float(number), f"report {number}")
    assert store.reports(2) == ((3.0, "report 3"), (2.0, "report 2"))


def test_only_the_newest_reports_are_kept(store: Store) -> None:
    for number in range(REPORTS + 3):
        store.add_report(float(number), f"report {number}")
    kept = store.reports(REPORTS + 9)
    assert (REPORTS, REPORTS + 2.0, 3.0) == (len(kept), kept[0][0], kept[-1][0])


def test_a_memory_is_replaced_and_forgotten_by_its_name_alone(store: Store) -> None:
    assert store.recall("agent") is None
    store.remember("agent", "first")
    store.remember("notes", "other")
    store.remember("agent", "second \0")
    assert store.recall("agent") == "second \N{REPLACEMENT CHARACTER}"
    store.remember("agent", None)
    store.remember("nobody", None)
    assert (None, "other") == (store.recall("agent"), store.recall("notes"))
