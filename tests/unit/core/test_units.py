"""Who has to go before whom, who stays, and how that spreads; revisions and names of what is created."""

import pytest

from reconciler.core.classify import by_gang, classify, ours, view_of
from reconciler.core.desired import Gang
from reconciler.core.observed import Observed, Placed
from reconciler.core.steps import new_names, next_revision
from reconciler.core.units import Candidate, Ties, Unit, tie
from tests.unit.core.build import container, desired, facts, foreign, gang, observed, plan, unknown, world

A = gang("a", ("n1",))
B = gang("b", ("n2",))
C = gang("c", ("n3",))


def candidate(of: Gang, *, refused: bool = False, seen: Observed | None = None) -> Candidate:
    seen = seen or world(nodes=of.nodes)
    view = view_of(of, by_gang(ours(desired(of), seen)).get(of.address, ()), seen)
    return Candidate(view, classify(view), refused)


def unit(lane: str, *nodes: str, running: bool = True, own: tuple[str, ...] = ()) -> Unit:
    """Containers of a gang on these nodes."""
    of = gang(lane, nodes)
    placed = tuple(Placed(one.node, container(of, one.index)) for one in of.ranks)
    return Unit(of.address, placed if running else (), placed, frozenset(own))


def tied(candidates: list[Candidate], units: list[Unit]) -> Ties:
    return tie(tuple(candidates), tuple(units))


def test_a_unit_is_in_the_way_of_whoever_takes_one_of_its_nodes() -> None:
    old = unit("old", "n1", "n2")
    ties = tied([candidate(A), candidate(B), candidate(C)], [old])
    assert ["c/a", "c/b"] == [item.address for item in ties.replacements(old)]
    assert (old,) == ties.obstacles(ties.candidates[0])
    assert () == ties.obstacles(ties.candidates[2])


def test_a_unit_is_not_in_the_way_where_its_gang_is_wanted() -> None:
    neighbour = unit("s", "n1", own=("n1",))
    assert () == tied([candidate(A)], [neighbour]).replacements(neighbour)


def test_the_past_of_a_gang_is_in_its_way_wherever_it_stands() -> None:
    past = Unit("c/a", (), (Placed("n9", container(A)),), frozenset({"n1"}))
    assert ["c/a"] == [item.address for item in tied([candidate(A)], [past]).replacements(past)]


def test_nothing_is_held_when_everything_can_go_on() -> None:
    ties = tied([candidate(A)], [unit("old", "n1")])
    assert ({}, {}) == (ties.blocked, ties.held)


def test_a_refused_gang_is_blocked_and_holds_what_runs_in_its_place() -> None:
    ties = tied([candidate(A, refused=True)], [unit("old", "n1")])
    assert {"c/a": "refused"} == ties.blocked
    assert {"c/old": "c/a takes its place and cannot boot now"} == ties.held


def test_a_gang_with_unknown_nodes_is_blocked_by_their_names() -> None:
    wide = gang("wide", ("n1", "n2", "n3"))
    ties = tied([candidate(wide, seen=observed(facts("n1"), unknown("n2"), unknown("n3")))], [])
    assert {"c/wide": "n2, n3 cannot be read"} == ties.blocked


def test_what_does_not_run_is_not_held() -> None:
    assert {} == tied([candidate(A, refused=True)], [unit("old", "n1", running=False)]).held


def test_it_spreads_from_gang_to_unit_to_gang_until_nothing_changes() -> None:
    """a cannot boot -> ab stays -> b cannot boot -> bc stays -> c cannot boot."""
    units = [unit("ab", "n1", "n2"), unit("bc", "n2", "n3")]
    ties = tied([candidate(A, refused=True), candidate(B), candidate(C)], units)
    expected = {
        "c/a": "refused",
        "c/b": "c/ab runs there and stays for now",
        "c/c": "c/bc runs there and stays for now",
    }
    assert expected == ties.blocked
    assert {"c/ab", "c/bc"} == set(ties.held)


@pytest.mark.parametrize("turned", [False, True], ids=["one way", "the other way"])
def test_it_spreads_the_same_from_either_end(turned: bool) -> None:
    units = [unit("ab", "n1", "n2"), unit("bc", "n2", "n3")]
    ties = tied([candidate(A), candidate(B), candidate(C, refused=True)], units[::-1] if turned else units)
    assert {"c/a", "c/b", "c/c"} == set(ties.blocked)


def test_it_does_not_spread_to_gangs_elsewhere() -> None:
    ties = tied([candidate(A, refused=True), candidate(B)], [unit("old", "n1"), unit("other", "n2")])
    assert {"c/a"} == set(ties.blocked)
    assert {"c/old"} == set(ties.held)


def test_a_gang_that_only_has_to_be_proved_goes_on_beside_what_stays() -> None:
    proving = candidate(B, seen=world(B, proved=False))
    ties = tied([candidate(A, refused=True), proving], [unit("ab", "n1", "n2")])
    assert {"c/a"} == set(ties.blocked)


def revision(of: Gang, seen: Observed) -> int:
    return next_revision(candidate(of, seen=seen).view)


OLD = gang("a", ("n1",), "serve", "--old")
PAIR = gang("p", ("n1", "n2"))
TRIO = gang("t", ("n1", "n2", "n3"))
OLD_PAIR = gang("p", ("n1", "n2"), "serve", "--old")

REVISIONS: list[tuple[str, int, Gang, Observed]] = [
    ("the first is 1", 1, A, world(nodes=("n1",))),
    ("after 4 comes 5", 5, A, world(OLD, revision=4)),
    ("what fits keeps its own", 4, A, world(A, revision=4)),
    ("missing ranks join those that fit", 4, PAIR, observed(facts("n1", container(PAIR, revision=4)), facts("n2"))),
    (
        "unless a name of it is taken by another generation",
        5,
        PAIR,
        observed(facts("n1", container(PAIR, revision=4)), facts("n2", container(OLD_PAIR, 1, revision=4))),
    ),
    (
        "after several generations comes the next after the last",
        5,
        A,
        observed(facts("n1", container(OLD, revision=2, state="exited"), container(OLD, revision=4))),
    ),
    (
        "missing ranks join the newest of those that fit",
        6,
        TRIO,
        observed(facts("n1", container(TRIO, 0, revision=4)), facts("n2", container(TRIO, 1, revision=6)), facts("n3")),
    ),
    (
        "a taken name leads beyond every generation, not into a gap between them",
        5,
        PAIR,
        observed(
            facts("n1", container(PAIR, revision=4)),
            facts("n2", container(OLD_PAIR, 1, revision=4), container(OLD_PAIR, 1, revision=1, state="exited")),
        ),
    ),
    ("a foreign container's name is stepped over", 2, A, observed(facts("n1", foreign("fleet-a-r0-v1")))),
    ("also one that is not proved", 2, A, observed(facts("n1", foreign("fleet-a-r0-v1.unproved", "exited")))),
    (
        "two of them in a row are stepped over",
        3,
        A,
        observed(facts("n1", foreign("fleet-a-r0-v1"), foreign("fleet-a-r0-v2"))),
    ),
    ("the same name on another node is free", 1, A, observed(facts("n1"), facts("n2", foreign("fleet-a-r0-v1")))),
]


@pytest.mark.parametrize(("what", "expected", "of", "seen"), REVISIONS, ids=[row[0] for row in REVISIONS])
def test_the_next_revision(what: str, expected: int, of: Gang, seen: Observed) -> None:
    assert expected == revision(of, seen), what


def test_names_are_needed_only_for_ranks_without_a_fitting_container() -> None:
    view = candidate(PAIR, seen=observed(facts("n1", container(PAIR)), facts("n2"))).view
    assert [("n2", "fleet-p-r1-v7")] == list(new_names(view, 7))


def test_a_lane_with_a_rank_on_a_node_that_cannot_be_read_stays_while_that_node_is_wanted() -> None:
    """Half of it is seen: to stop that half would end the lane, for one that cannot boot."""
    left = gang("z", ("n1", "n2"))
    there = facts("n2", container(left, 1))
    made = plan(desired(gang("y", ("n1",)), nodes=("n2",)), observed(unknown("n1"), there))
    assert () == made.steps
    assert {"c/y", "c/z"} == {item.gang for item in made.deferred}


def test_a_lane_that_nobody_wants_goes_where_it_can_be_seen() -> None:
    left = gang("z", ("n1", "n2"))
    made = plan(desired(gang("b", ("n3",))), observed(unknown("n1"), facts("n2", container(left, 1)), facts("n3")))
    assert "c/z/cut/n2/stop/fleet-z-r1-v1" in {step.id for step in made.steps}


@pytest.mark.parametrize("state", ["running", "exited"])
def test_a_lane_that_moves_to_a_node_that_cannot_be_read_stays_where_it_is(state: str) -> None:
    here, there = gang("a", ("n1",)), gang("a", ("n2",), cluster="d")
    made = plan(desired(there, nodes=("n1",)), observed(facts("n1", container(here, state=state)), unknown("n2")))
    assert () == made.steps
