"""The three axes of a lane and its ranks, never merged."""

import pytest

from reconciler.core.desired import Gang
from reconciler.core.gate import Health, Verdict
from reconciler.core.observed import Container, Observed
from reconciler.core.status import (
    LaneStatus,
    Unwanted,
    can_be_asked,
    lane_status,
    running_refs,
    unwanted,
    views,
)
from tests.unit.core.build import container, desired, facts, foreign, gang, observed, unknown, world

PAIR = gang("a", ("n1", "n2"))
OLD = gang("a", ("n1", "n2"), "serve", "--old")
SERVING = Verdict(Health.HEALTHY, "serving")
LOADING = Verdict(Health.PROGRESSING, "loading", "/health answers 503")


def status(seen: Observed, verdict: Verdict | None = None, of: Gang = PAIR) -> LaneStatus:
    return lane_status(views(desired(of), seen)[0], verdict)


def pair(first: Container | None, second: Container | None) -> Observed:
    return observed(*(facts(node, *([one] if one else [])) for node, one in (("n1", first), ("n2", second))))


UP = (container(PAIR, 0), container(PAIR, 1))
DEAD = container(PAIR, 1, state="exited", finished_at="2026-03-01T11:00:00Z")

LANES: list[tuple[str, Observed, Verdict | None, tuple[str, str, str, str]]] = [
    ("serving", pair(*UP), SERVING, ("in-sync", "healthy", "reachable", "")),
    ("in sync and loading", pair(*UP), LOADING, ("in-sync", "progressing", "reachable", "/health answers 503")),
    (
        "in sync and wrong",
        pair(*UP),
        Verdict(Health.DEGRADED, "probe", "'q' got 'x', expected 'y'"),
        ("in-sync", "degraded", "reachable", "'q' got 'x', expected 'y'"),
    ),
    (
        "in sync, and nobody asked the head",
        pair(*UP),
        None,
        ("in-sync", "unknown", "reachable", "the head was not asked"),
    ),
    (
        "healthy and out of sync",
        world(OLD),
        SERVING,
        ("out-of-sync", "healthy", "reachable", "the spec changed: argv"),
    ),
    (
        "healthy and never proved",
        world(PAIR, proved=False),
        SERVING,
        ("out-of-sync", "healthy", "reachable", "every rank runs as wanted, but the gang was never proved healthy"),
    ),
    (
        "a dead rank",
        pair(UP[0], DEAD),
        None,
        ("out-of-sync", "degraded", "reachable", "rank 1 on n2 exited 1 at 2026-03-01T11:00:00Z"),
    ),
    (
        "a rank that restarts again and again",
        pair(UP[0], container(PAIR, 1, state="restarting")),
        None,
        ("out-of-sync", "crash-looping", "reachable", "rank 1 on n2 is restarting"),
    ),
    ("a missing rank", pair(UP[0], None), None, ("out-of-sync", "missing", "reachable", "rank 1 on n2 is missing")),
    ("nothing there", pair(None, None), None, ("out-of-sync", "missing", "reachable", "wanted, not running")),
    (
        "a node that cannot be read",
        observed(facts("n1", UP[0]), unknown("n2")),
        None,
        ("unknown", "unknown", "unreachable", "n2: no answer in 10 s"),
    ),
]


@pytest.mark.parametrize(("what", "seen", "verdict", "expected"), LANES, ids=[row[0] for row in LANES])
def test_a_lane_on_three_axes(
    what: str, seen: Observed, verdict: Verdict | None, expected: tuple[str, str, str, str]
) -> None:
    found = status(seen, verdict)
    assert expected == (found.sync, found.health, found.reach, found.detail), what


def test_a_lane_says_where_it_answers_and_as_what() -> None:
    found = status(pair(*UP), SERVING)
    assert ("http://n1:30000/v1", "a") == (found.url, found.served_name)


RANKS: list[tuple[str, Container | None, tuple[str | None, str, str, str]]] = [
    ("up", UP[1], ("fleet-a-r1-v1", "in-sync", "healthy", "running")),
    ("exited", DEAD, ("fleet-a-r1-v1", "out-of-sync", "degraded", "exited 1 at 2026-03-01T11:00:00Z")),
    (
        "restarting",
        container(PAIR, 1, state="restarting"),
        ("fleet-a-r1-v1", "out-of-sync", "crash-looping", "is restarting"),
    ),
    ("paused", container(PAIR, 1, state="paused"), ("fleet-a-r1-v1", "out-of-sync", "degraded", "is paused")),
    (
        "created",
        container(PAIR, 1, state="created", proved=False),
        ("fleet-a-r1-v1.unproved", "out-of-sync", "degraded", "was never started"),
    ),
    ("another spec", container(OLD, 1), ("fleet-a-r1-v1", "out-of-sync", "healthy", "running")),
    ("gone", None, (None, "out-of-sync", "missing", "is missing")),
]


@pytest.mark.parametrize(("what", "found", "expected"), RANKS, ids=[row[0] for row in RANKS])
def test_a_rank_on_its_axes(what: str, found: Container | None, expected: tuple[str | None, str, str, str]) -> None:
    rank = status(pair(UP[0], found)).ranks[1]
    assert expected == (rank.container, rank.sync, rank.health, rank.detail), what


def test_the_ranks_of_a_lane_that_cannot_be_read_are_told_apart_by_reach() -> None:
    ranks = status(observed(facts("n1", UP[0]), unknown("n2"))).ranks
    expected = [
        ("n1", "unknown", "unknown", "reachable", "not judged: another node of the gang cannot be read"),
        ("n2", "unknown", "unknown", "unreachable", "no answer in 10 s"),
    ]
    assert expected == [(rank.node, rank.sync, rank.health, rank.reach, rank.detail) for rank in ranks]


ASKED: list[tuple[str, Observed, bool]] = [
    ("all run", pair(*UP), True),
    ("as something else", world(OLD), True),
    ("one dead", pair(UP[0], DEAD), False),
    ("one paused", pair(UP[0], container(PAIR, 1, state="paused")), False),
    ("none", pair(None, None), False),
    ("one unknown", observed(facts("n1", UP[0]), unknown("n2")), False),
]


@pytest.mark.parametrize(("what", "seen", "expected"), ASKED, ids=[row[0] for row in ASKED])
def test_the_head_is_asked_only_when_every_rank_runs(what: str, seen: Observed, expected: bool) -> None:
    assert expected == can_be_asked(views(desired(PAIR), seen)[0]), what


def test_the_head_is_asked_in_the_container_that_runs() -> None:
    newer = container(PAIR, 0, revision=2, state="created", proved=False)
    seen = observed(facts("n1", newer, UP[0]), facts("n2", UP[1]))
    assert {0: UP[0].id, 1: UP[1].id} == running_refs(views(desired(PAIR), seen)[0])


def test_lanes_nobody_wants_are_listed_with_how_many_still_run() -> None:
    seen = observed(facts("n1", container(PAIR, 0)), facts("n2", DEAD, foreign()))
    assert (Unwanted("c/a", ("n1", "n2"), 1),) == unwanted(desired(nodes=("n1", "n2")), seen)
