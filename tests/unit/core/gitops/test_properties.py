"""What holds whatever an agent sees and remembers."""

from dataclasses import replace
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.core.gitops.decision import Adopt, Apply, Commit, Decision, GiveUp, Heal, Look, Seen
from reconciler.core.gitops.looks import Planned, learned
from reconciler.core.gitops.memory import TRIED, Attempt, Healed, Outcome, Proven, Remembered, Suspension
from reconciler.core.gitops.settings import Heal as Mode
from reconciler.core.gitops.settings import Settings
from reconciler.core.gitops.windows import Closed, Opening
from reconciler.core.withhold import Failed, Held
from tests.unit.core.build import container, facts, gang, unknown, world
from tests.unit.core.gitops.scenes import BOTH, EMPTY, HEAD, NEW_A, NODES, NOW_S, OLD, A, B, but, look, settled, without

T = TypeVar("T")

OLDER = "9" * 40
WORLDS = (
    EMPTY,
    BOTH,
    world(NEW_A, B, nodes=NODES),
    without(BOTH, "n3"),
    but(BOTH, facts("n2", container(A, 1, state="exited"))),
    but(BOTH, facts("n3", container(B, restart_policy="always"))),
    but(BOTH, unknown("n3")),
    but(BOTH, facts("n4", container(gang("extra", ("n4",))))),
)
WANTED = ((A, B), (NEW_A, B), (A,), (NEW_A,), (gang("wide", NODES, cluster="all"),), ())
HOLDS: tuple[tuple[Held, ...], ...] = ((), (), (Held("1f00", "lane", "a", "ops", "why"),))
FAILED: tuple[tuple[Failed, ...], ...] = ((), (), (Failed("c/a", NEW_A.fingerprint, "137", "r", "noon"),))
LOOKS = {
    (world_now, wanted, holds, failed): look(WANTED[wanted], WORLDS[world_now], HOLDS[holds], FAILED[failed])
    for world_now in range(len(WORLDS))
    for wanted in range(len(WANTED))
    for holds in range(1, len(HOLDS))
    for failed in range(1, len(FAILED))
}
BY_COMMIT = st.tuples(*[st.integers(0, len(WANTED) - 1)] * 3)


@st.composite
def situations(draw: st.DrawFn) -> tuple[Seen, dict[str, Planned | None]]:
    """One fleet, three commits that want something of it, and any memory."""
    world_now, holds, failed = draw(st.tuples(st.integers(0, len(WORLDS) - 1), st.integers(1, 2), st.integers(1, 2)))
    wanted = dict(zip((OLDER, OLD, HEAD), draw(BY_COMMIT), strict=True))
    looks: dict[str, Planned | None] = {
        commit: LOOKS[world_now, choice, holds, failed] for commit, choice in wanted.items()
    }
    if draw(st.integers(0, 9)) == 0:
        looks[draw(st.sampled_from([OLDER, OLD, HEAD]))] = None
    seen = Seen(
        now_s=NOW_S,
        head=draw(heads()),
        remembered=draw(memories(looks)),
        suspended=draw(SUSPENSIONS),
        opening=draw(OPENINGS),
        settings=draw(SETTINGS),
    )
    return seen, looks


UNTIL = st.sampled_from([None, NOW_S - 1, NOW_S + 1])
SUSPENSION = st.builds(Suspension, st.just("ops"), st.just("why"), st.just(0.0), UNTIL)


def rarely(some: "st.SearchStrategy[T]") -> "st.SearchStrategy[T | None]":
    """Mostly none of it: else hardly anything would ever be done."""
    return st.integers(0, 7).flatmap(lambda number: some if number == 0 else st.none())


SUSPENSIONS = rarely(SUSPENSION)
CLOSED = rarely(st.just(Closed("closed", None)))
OPENINGS = st.builds(Opening, CLOSED, CLOSED, st.booleans())
SETTINGS = st.builds(
    Settings,
    heal=st.sampled_from([*Mode, *[Mode.ON] * 5]),
    heal_times=st.integers(1, 3),
    stops=rarely(st.integers(0, 2)),
    allow_empty=st.booleans(),
    protected=st.sampled_from([*[()] * 5, ("a",)]),
)


def heads() -> st.SearchStrategy[Commit | None]:
    """Mostly one that passes every gate."""
    descends = st.sampled_from([*[True] * 7, False, None])
    return st.builds(Commit, st.just(HEAD), descends, rarely(st.just("no signature")), rarely(st.just("bad YAML")))


@st.composite
def memories(draw: st.DrawFn, looks: dict[str, Planned | None]) -> Remembered:
    commits = st.sampled_from([OLDER, OLD, HEAD])
    observations = ["other", *(item.observation for item in looks.values() if item)]
    seen = st.sampled_from(observations)
    times = st.floats(NOW_S - 60_000, NOW_S)
    outcomes = st.sampled_from([*[Outcome.FAILED, Outcome.PARTIAL, Outcome.INTERRUPTED] * 3, *Outcome])
    attempts = draw(st.lists(st.builds(Attempt, commits, seen, outcomes, times), max_size=2))
    heals = draw(st.lists(st.builds(Healed, st.sampled_from(["c/a", "c/b"]), times, st.booleans()), max_size=4))
    proven: list[Proven] = []
    for one in (draw(st.sampled_from([A, NEW_A])), B):
        version = (one.address, one.fingerprint)
        wanting: list[str] = [commit for commit, item in looks.items() if item and version in item.wanted]
        if wanting and draw(st.integers(0, 3)) > 0:
            proven.append(Proven(*version, draw(st.sampled_from(wanting))))
    last: list[str | None] = [None, OLD, OLD, HEAD, HEAD]
    applied = draw(st.sampled_from(last))
    return Remembered(applied, draw(st.none() | commits), tuple(attempts), tuple(heals), tuple(proven))


def decided(situation: tuple[Seen, dict[str, Planned | None]]) -> tuple[Seen, Decision]:
    """As an agent decides: with all looks, having learned from them."""
    seen, looks = situation
    return seen, settled(seen, looks)


MANY = settings(max_examples=120, deadline=None)


@given(situations())
@MANY
def test_it_comes_to_an_end_and_says_the_same_again(
    situation: tuple[Seen, dict[str, Planned | None]],
) -> None:
    _, found = decided(situation)
    assert not isinstance(found, Look)
    assert found == settled(*situation)


@given(situations())
@MANY
def test_nothing_is_changed_while_it_is_suspended_or_denied(
    situation: tuple[Seen, dict[str, Planned | None]],
) -> None:
    seen, found = decided(situation)
    if (seen.suspended and seen.suspended.holds(NOW_S)) or seen.opening.denied:
        assert not isinstance(found, Apply | Heal)
    if seen.opening.closed:
        assert not isinstance(found, Apply)


@given(situations())
@MANY
def test_only_a_sound_signed_commit_that_comes_after_the_last_is_applied(
    situation: tuple[Seen, dict[str, Planned | None]],
) -> None:
    seen, found = decided(situation)
    if isinstance(found, Apply | Adopt):
        assert seen.head is not None
        assert (seen.head.id, None, None) == (found.commit, seen.head.unsigned, seen.head.broken)
        assert seen.head.descends or seen.remembered.applied in {None, HEAD}


@given(situations())
@MANY
def test_a_commit_is_tried_once_for_what_was_seen(situation: tuple[Seen, dict[str, Planned | None]]) -> None:
    seen, found = decided(situation)
    if isinstance(found, Apply):
        planned = situation[1][found.commit]
        assert planned is not None
        same = (item for item in seen.remembered.attempts if item.observation == planned.observation)
        assert not any(item.commit == HEAD and item.outcome in TRIED for item in same)
        assert planned.wanted or seen.settings.allow_empty


@given(situations())
@MANY
def test_what_is_held_or_failed_before_is_never_part_of_what_is_done(
    situation: tuple[Seen, dict[str, Planned | None]],
) -> None:
    _, found = decided(situation)
    if isinstance(found, Apply | Heal):
        planned = situation[1][found.commit]
        assert planned is not None
        assert not {item.gang for item in planned.plan.withheld} & {*found.gangs}
        assert found.gangs


@given(situations())
@MANY
def test_a_repair_brings_a_lane_to_exactly_what_it_was_proved_to_be(
    situation: tuple[Seen, dict[str, Planned | None]],
) -> None:
    seen, found = decided(situation)
    if isinstance(found, Heal):
        planned = situation[1][found.commit]
        assert planned is not None
        known = learned(seen.remembered, found.commit, planned).proven
        known += seen.remembered.proven
        for one in found.gangs:
            wanted = dict(planned.wanted)[one]
            assert any((item.gang, item.fingerprint, item.commit) == (one, wanted, found.commit) for item in known)
            assert not seen.remembered.is_given_up(one)
        assert seen.settings.heal is Mode.ON


@given(situations())
@MANY
def test_no_run_stops_more_than_its_budget(situation: tuple[Seen, dict[str, Planned | None]]) -> None:
    seen, found = decided(situation)
    if isinstance(found, Apply | Heal) and seen.settings.stops == 0:
        planned = situation[1][found.commit]
        assert planned is not None
        assert not {item.gang for item in planned.plan.outages if item.gang in found.gangs} & {
            item.gang for item in planned.plan.changes if item.kind == "replace"
        }


@given(st.integers(0, len(WORLDS) - 1), st.integers(0, len(WANTED) - 2), st.none() | st.just(OLD))
@MANY
def test_a_good_commit_in_an_open_window_is_applied_or_there(world_now: int, wanted: int, applied: str | None) -> None:
    """Progress: nothing but what a person said, or a node that cannot be read, holds it up."""
    looks: dict[str, Planned | None] = {HEAD: LOOKS[world_now, wanted, 1, 1]}
    planned = looks[HEAD]
    assert planned is not None
    found = settled(Seen(NOW_S, Commit(HEAD, True), Remembered(applied=applied)), looks)
    if planned.plan.refusals:
        return
    assert isinstance(found, Apply if planned.plan.steps else Adopt)


@given(situations())
@MANY
def test_giving_up_is_said_once(situation: tuple[Seen, dict[str, Planned | None]]) -> None:
    seen, found = decided(situation)
    if isinstance(found, GiveUp):
        after = replace(seen, remembered=seen.remembered.giving_up(dict(found.why), NOW_S))
        again = settled(after, situation[1])
        assert not isinstance(again, GiveUp) or not {gang for gang, _ in again.why} & {gang for gang, _ in found.why}
