"""The three axes of a lane and its ranks, never merged; and findings of drift."""

from dataclasses import replace

import pytest

from reconciler.core.desired import Gang
from reconciler.core.drift import Finding, Kind, findings
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
from tests.unit.core.build import container, desired, facts, foreign, gang, observed, pin, spec, unknown, world

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


def drift(seen: Observed, verdict: Verdict | None = None, of: Gang = PAIR) -> list[tuple[str, str, str, str, str, str]]:
    found = findings(desired(of, nodes=seen.nodes), seen, {of.address: verdict} if verdict else {})
    return [(item.kind, item.address, item.field, item.expected, item.found, item.remedy) for item in found]


DRIFT: list[tuple[str, Observed, Verdict | None, list[tuple[str, str, str, str, str, str]]]] = [
    ("as wanted", pair(*UP), SERVING, []),
    ("as wanted, nobody asked", pair(*UP), None, []),
    ("not there", pair(None, None), None, [("intent", "c/a", "placement", "running", "not there", "boot the gang")]),
    (
        "another lane",
        observed(facts("n1", UP[0], container(gang("x", ("n1",)))), facts("n2", UP[1])),
        None,
        [("intent", "c/x", "placement", "no placement", "1 running on n1", "stop and remove them")],
    ),
    (
        "another lane that stopped",
        observed(facts("n1", UP[0], container(gang("x", ("n1",)), state="exited")), facts("n2", UP[1])),
        None,
        [("intent", "c/x", "placement", "no placement", "stopped containers on n1", "stop and remove them")],
    ),
    (
        "changed by hand",
        pair(replace(UP[0], restart_policy="always"), UP[1]),
        None,
        [("config", "c/a/0@n1", "restart", "no", "always", "replace the gang")],
    ),
    (
        "other content",
        pair(replace(UP[0], image_id="sha256:x"), UP[1]),
        None,
        [
            (
                "identity",
                "c/a/0@n1",
                "image",
                "content sha256:n1-aaaaaaaaaaaa",
                "content sha256:x",
                "replace the gang",
            )
        ],
    ),
    (
        "a dead rank",
        pair(UP[0], DEAD),
        None,
        [
            (
                "runtime",
                "c/a/1@n2",
                "state",
                "running",
                "exited 1 at 2026-03-01T11:00:00Z",
                "boot the gang again",
            )
        ],
    ),
    (
        "a missing rank",
        pair(UP[0], None),
        None,
        [("runtime", "c/a/1@n2", "state", "running", "is missing", "boot the gang again")],
    ),
    (
        "never proved",
        pair(UP[0], container(PAIR, 1, proved=False)),
        None,
        [("runtime", "c/a/1@n2", "proof", "proved healthy", "never proved", "prove it")],
    ),
    (
        "runs and answers nonsense",
        pair(*UP),
        Verdict(Health.DEGRADED, "probe", "wrong"),
        [("runtime", "c/a", "health", "healthy", "wrong", "nothing by itself: see `fleet logs`")],
    ),
    (
        "an earlier generation is left",
        observed(facts("n1", UP[0], container(OLD, 0, revision=0, state="exited")), facts("n2", UP[1])),
        None,
        [("runtime", "c/a@n1", "container fleet-a-r0-v0", "not there", "is left, stopped", "remove it")],
    ),
    (
        "it runs on another node only",
        observed(facts("n1"), facts("n2"), facts("n3", container(PAIR, 0, node="n3"))),
        None,
        [
            ("intent", "c/a", "placement", "running", "not there", "boot the gang"),
            ("runtime", "c/a@n3", "container fleet-a-r0-v1", "not there", "runs", "remove it"),
        ],
    ),
    (
        "a node that cannot be read tells of itself alone",
        observed(facts("n1", container(OLD, 0)), unknown("n2")),
        None,
        [("host", "n2", "reach", "reachable", "no answer in 10 s", "nothing; ping n2")],
    ),
]


@pytest.mark.parametrize(("what", "seen", "verdict", "expected"), DRIFT, ids=[row[0] for row in DRIFT])
def test_findings(
    what: str, seen: Observed, verdict: Verdict | None, expected: list[tuple[str, str, str, str, str, str]]
) -> None:
    assert expected == drift(seen, verdict), what


def test_a_difference_that_no_field_shows_is_a_finding_all_the_same() -> None:
    """The spec names the entrypoint that the image has anyway: another fingerprint, the same live container."""
    named = gang("a", ("n1",), container={"entrypoint": ("serve",)})
    before = gang("a", ("n1",))
    expected = (named.ranks[0].fingerprint[:12], before.ranks[0].fingerprint[:12])
    found = drift(observed(facts("n1", container(before, entrypoint=("serve",)))), of=named)
    assert [("config", "c/a/0@n1", "fingerprint", *expected, "replace the gang")] == found


def test_classes_come_in_one_order() -> None:
    seen = observed(
        facts("n1", replace(UP[0], image_id="x", restart_policy="always"), container(gang("x", ("n1",)))),
        facts("n2", DEAD),
        unknown("n3"),
    )
    assert ["intent", "config", "identity", "runtime", "host"] == [kind for kind, *_ in drift(seen)]


def test_the_id_of_a_finding_is_the_same_whenever_it_is_found_and_another_when_it_changes() -> None:
    one = Finding(Kind.CONFIG, "c/a/0@n1", "restart", "no", "always", "replace", "2026-03-01")
    assert one.id == replace(one, since="2026-04-01", remedy="something else").id
    others = [replace(one, address="x"), replace(one, field="x"), replace(one, expected="x"), replace(one, found="x")]
    assert 6 == len({one.id, replace(one, kind=Kind.HOST).id, *(item.id for item in others)})
    assert 12 == len(one.id)


def test_ids_of_findings_hold_over_versions() -> None:
    [found] = findings(desired(PAIR), pair(replace(UP[0], restart_policy="always"), UP[1]), {})
    assert "2e4c7f7a8416" == found.id


def test_a_pin_that_changed_is_the_same_finding_on_every_rank_and_told_for_each() -> None:
    new = gang("a", ("n1", "n2"), image=pin("b"))
    assert ["c/a/0@n1", "c/a/1@n2"] == [where for _, where, *_ in drift(pair(*UP), of=new)]
    assert spec(image=pin("b")) == new.ranks[0].container
