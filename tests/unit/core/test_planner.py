"""Scenarios of the planner: what is found and wanted in, the exact steps out."""

from dataclasses import replace

import pytest

from reconciler.core.desired import Gang, Ready
from reconciler.core.observed import Observed, SourceImage, SourceUnknown
from reconciler.core.plan import Deferred, Foreign, Kind, Op, Outage, Phase, Plan, Refusal, only_gangs, plan_json
from tests.unit.core.build import (
    PLATFORM,
    before,
    container,
    desired,
    digest,
    facts,
    foreign,
    gang,
    ids,
    observed,
    of_op,
    pin,
    plan,
    step,
    unknown,
    ways_back,
    world,
)

SOLO = gang("solo", ("n3",))
PAIR = gang("pair", ("n1", "n2"))
QUAD = gang("quad", ("n1", "n2", "n3", "n4"), cluster="all")
OLD_PAIR = gang("pair", ("n1", "n2"), "serve", "--old")


def kinds(made: Plan) -> list[tuple[str, str]]:
    return [(item.gang, str(item.kind)) for item in made.changes]


def told(made: Plan) -> list[tuple[str, str]]:
    return [(item.gang, item.reason) for item in made.changes]


def phase_of(made: Plan, address: str, phase: Phase) -> set[str]:
    return {item.id for item in made.steps if item.gang == address and item.phase is phase}


def test_two_lanes_boot_on_empty_nodes() -> None:
    made = plan(desired(PAIR, SOLO), world(nodes=("n1", "n2", "n3")))
    expected = [
        "c/pair/stage/n1/create",
        "c/pair/stage/n2/create",
        "c/solo/stage/n3/create",
        "c/pair/boot/n1/start",
        "c/pair/boot/n2/start",
        "c/solo/boot/n3/start",
        "c/pair/verify/verify",
        "c/solo/verify/verify",
        "c/pair/confirm/n1/confirm",
        "c/pair/confirm/n2/confirm",
        "c/solo/confirm/n3/confirm",
    ]
    assert expected == ids(made.steps)
    assert [("c/pair", "boot"), ("c/solo", "boot")] == kinds(made)
    assert () == made.outages
    assert {"c/solo/stage/n3/create"} == before(made, "c/solo/boot/n3/start")
    assert ["c/pair/rollback/n1/stop", "c/pair/rollback/n2/stop", "c/solo/rollback/n3/stop"] == ids(ways_back(made))


def test_a_fleet_as_wanted_has_an_empty_plan() -> None:
    made = plan(desired(PAIR, SOLO), world(PAIR, SOLO))
    assert () == made.steps
    assert made.is_empty
    assert made.is_settled
    assert ("c/pair", "c/solo") == made.unchanged


def test_a_missing_image_is_pulled_before_the_container_is_created() -> None:
    seen = observed(facts("n3", images=()), sources=[SourceImage(digest(), (("linux/amd64", 9), (PLATFORM, 7)))])
    made = plan(desired(SOLO), seen)
    assert ["c/solo/stage/n3/pull", "c/solo/stage/n3/create"] == ids(made.steps)[:2]
    assert ("c/solo/stage/n3/pull",) == step(made, "c/solo/stage/n3/create").requires
    assert 7 == step(made, "c/solo/stage/n3/pull").estimate_bytes


def test_a_source_that_cannot_be_asked_is_noted_where_its_image_is_missing() -> None:
    unasked = SourceUnknown(digest(), "http://127.0.0.1:5000: refused")
    name = "ghcr.io/owner/engine@sha256:aaaaaaaaaaaa"
    expected = (f"nothing is known of image {name} before it is pulled: http://127.0.0.1:5000: refused",)
    seen = observed(facts("n3", images=()), sources=[unasked])
    assert [expected] == [item.notes for item in plan(desired(SOLO), seen).changes]
    assert [()] == [item.notes for item in plan(desired(SOLO), observed(facts("n3"), sources=[unasked])).changes]


def test_waves_boot_one_after_the_other_when_each_rank_is_ready() -> None:
    waves = gang("w", ("n1", "n2", "n3"), boot_order=((1, 2), (0,)), ready=Ready(50052))
    made = plan(desired(waves), world(nodes=waves.nodes))
    workers = {"c/w/boot/n2/start", "c/w/boot/n3/start", "c/w/boot/n2/ready", "c/w/boot/n3/ready"}
    assert workers == {key for key in before(made, "c/w/boot/n1/start") if "/boot/" in key}
    assert not any(item.op is Op.READY and item.rank == 0 for item in made.steps)
    assert ["c/w/rollback/n1/stop", "c/w/rollback/n2/stop", "c/w/rollback/n3/stop"] == ids(ways_back(made))


def test_a_lane_with_new_arguments_is_replaced_in_place() -> None:
    made = plan(desired(PAIR), world(OLD_PAIR))
    expected = [
        "c/pair/stage/n1/create",
        "c/pair/stage/n2/create",
        "c/pair/cut/n1/stop/fleet-pair-r0-v1",
        "c/pair/cut/n2/stop/fleet-pair-r1-v1",
        "c/pair/boot/n1/start",
        "c/pair/boot/n2/start",
        "c/pair/verify/verify",
        "c/pair/confirm/n1/confirm",
        "c/pair/confirm/n2/confirm",
        "c/pair/retire/n1/remove/fleet-pair-r0-v1",
        "c/pair/retire/n2/remove/fleet-pair-r1-v1",
    ]
    assert expected == ids(made.steps)
    assert [("c/pair", "the spec changed: argv")] == told(made)
    assert "fleet-pair-r0-v2.unproved" == step(made, "c/pair/stage/n1/create").target
    assert {"c/pair/stage/n1/create", "c/pair/stage/n2/create"} == before(made, expected[2])
    assert (Outage("c/pair", ("n1", "n2"), ("c/pair",), 30.0, 2400.0),) == made.outages


def test_two_lanes_make_room_for_one_that_takes_the_nodes_of_both() -> None:
    made = plan(desired(QUAD), world(PAIR, SOLO, nodes=("n4",)))
    stages = {f"all/quad/stage/{node}/create" for node in QUAD.nodes}
    confirms = {f"all/quad/confirm/{node}/confirm" for node in QUAD.nodes}
    stops = {
        "c/pair/cut/n1/stop/fleet-pair-r0-v1",
        "c/pair/cut/n2/stop/fleet-pair-r1-v1",
        "c/solo/cut/n3/stop/fleet-solo-r0-v1",
    }
    assert stops == set(ids(of_op(made, Op.STOP)))
    for stop in stops:
        assert stages == before(made, stop)
    for start in of_op(made, Op.START):
        assert stages | stops == before(made, start.id)
    for remove in of_op(made, Op.REMOVE):
        assert confirms <= before(made, remove.id)
    assert 3 == len(of_op(made, Op.REMOVE))
    assert [("c/pair", "stop"), ("c/solo", "stop"), ("all/quad", "boot")] == kinds(made)
    assert {"makes room for all/quad"} == {item.reason for item in made.changes if item.kind is Kind.STOP}
    assert (Outage("all/quad", ("n1", "n2", "n3", "n4"), ("c/pair", "c/solo"), 30.0, 2400.0),) == made.outages


def test_one_lane_makes_room_for_two_and_waits_for_the_stages_of_both() -> None:
    made = plan(desired(PAIR, SOLO), world(QUAD))
    stages = {"c/pair/stage/n1/create", "c/pair/stage/n2/create", "c/solo/stage/n3/create"}
    confirms = {"c/pair/confirm/n1/confirm", "c/pair/confirm/n2/confirm", "c/solo/confirm/n3/confirm"}
    stops = {f"all/quad/cut/n{number + 1}/stop/fleet-quad-r{number}-v1" for number in range(4)}
    assert stops == set(ids(of_op(made, Op.STOP)))
    for stop in stops:
        assert stages == before(made, stop)
    for start in of_op(made, Op.START):
        assert stops <= before(made, start.id)
    for remove in of_op(made, Op.REMOVE):
        assert confirms <= before(made, remove.id)
    assert [("all/quad", "stop"), ("c/pair", "boot"), ("c/solo", "boot")] == kinds(made)


def test_a_dead_rank_boots_the_whole_gang_again_in_its_own_containers() -> None:
    dead = container(PAIR, 1, state="exited", exit_code=137, oom_killed=True, finished_at="2026-03-01T11:02:03.4Z")
    made = plan(desired(PAIR), observed(facts("n1", container(PAIR, 0)), facts("n2", dead)))
    expected = [
        "c/pair/cut/n1/stop/fleet-pair-r0-v1",
        "c/pair/cut/n1/unprove",
        "c/pair/cut/n2/unprove",
        "c/pair/boot/n1/start",
        "c/pair/boot/n2/start",
        "c/pair/verify/verify",
        "c/pair/confirm/n1/confirm",
        "c/pair/confirm/n2/confirm",
    ]
    assert expected == ids(made.steps)
    reason = "rank 1 on n2 exited 137 (out of memory) at 2026-03-01T11:02:03Z: the gang boots again"
    assert [("c/pair", reason)] == told(made)
    assert [("c/pair", "repair")] == kinds(made)


def test_a_missing_rank_is_staged_before_the_others_are_stopped() -> None:
    made = plan(desired(PAIR), observed(facts("n1", container(PAIR, 0, revision=4)), facts("n2")))
    assert {"c/pair/stage/n2/create"} == before(made, "c/pair/cut/n1/stop/fleet-pair-r0-v4")
    assert "fleet-pair-r1-v4.unproved" == step(made, "c/pair/stage/n2/create").target
    assert [("c/pair", "rank 1 on n2 is missing: the gang boots again")] == told(made)


def test_a_gang_that_runs_and_was_never_proved_is_only_proved() -> None:
    made = plan(desired(PAIR), world(PAIR, proved=False))
    expected = ["c/pair/verify/verify", "c/pair/confirm/n1/confirm", "c/pair/confirm/n2/confirm"]
    assert expected == ids(made.steps)
    assert [("c/pair", "prove")] == kinds(made)
    assert () == made.outages


def test_a_gang_that_was_created_and_never_started_is_started() -> None:
    made = plan(desired(PAIR), world(PAIR, state="created", proved=False))
    assert ["c/pair/boot/n1/start", "c/pair/boot/n2/start"] == ids(made.steps)[:2]
    assert 5 == len(made.steps)
    assert [("c/pair", "wanted, staged, not started yet")] == told(made)


def test_after_a_reboot_the_stopped_containers_start_again_unproved() -> None:
    made = plan(desired(PAIR), world(PAIR, state="exited", exit_code=0, finished_at=""))
    assert ["c/pair/cut/n1/unprove", "c/pair/cut/n2/unprove", "c/pair/boot/n1/start"] == ids(made.steps)[:3]
    assert [] == of_op(made, Op.CREATE)
    assert [("c/pair", "rank 0 on n1 exited 0; rank 1 on n2 exited 0")] == told(made)


def test_a_gang_on_an_unknown_node_is_deferred_and_others_go_on() -> None:
    made = plan(desired(PAIR, SOLO), observed(facts("n1"), unknown("n2"), facts("n3")))
    assert (Deferred("c/pair", "n2 cannot be read"),) == made.deferred
    assert {"c/solo"} == {item.gang for item in made.steps}
    assert not made.is_settled


def test_a_lane_stays_while_the_one_that_takes_its_place_has_an_unknown_node() -> None:
    made = plan(desired(QUAD), observed(*world(PAIR, SOLO).nodes.values(), unknown("n4")))
    expected = (
        Deferred("all/quad", "n4 cannot be read"),
        Deferred("c/pair", "stays: all/quad takes its place and cannot boot now"),
        Deferred("c/solo", "stays: all/quad takes its place and cannot boot now"),
    )
    assert expected == made.deferred
    assert () == made.steps


def test_what_waits_comes_by_its_address_whatever_it_waits_for() -> None:
    made = plan(desired(gang("z", ("n1", "n9"))), observed(facts("n1", container(gang("b", ("n1",)))), unknown("n9")))
    assert ["c/b", "c/z"] == [item.gang for item in made.deferred]


def test_a_lane_that_stays_keeps_out_a_third_that_wants_its_other_node() -> None:
    """The old lane stands on n1 and n2; its n1 is for a gang that cannot boot, so its n2 is not free either."""
    far, near = gang("far", ("n1", "n9")), gang("near", ("n2",))
    made = plan(desired(far, near), observed(*world(PAIR).nodes.values(), unknown("n9")))
    assert () == made.steps
    assert Deferred("c/near", "c/pair runs there and stays for now") in made.deferred


def test_a_lane_that_moves_is_staged_there_before_it_is_stopped_here() -> None:
    moved = gang("pair", ("n5", "n6"))
    made = plan(desired(moved, nodes=("n1", "n2")), world(PAIR, nodes=("n5", "n6")))
    stop = "c/pair/cut/n1/stop/fleet-pair-r0-v1"
    assert {"c/pair/stage/n5/create", "c/pair/stage/n6/create"} == before(made, stop)
    assert stop in before(made, "c/pair/boot/n5/start")
    assert "fleet-pair-r0-v2.unproved" == step(made, "c/pair/stage/n5/create").target
    assert ["c/pair/retire/n1/remove/fleet-pair-r0-v1", "c/pair/retire/n2/remove/fleet-pair-r1-v1"] == ids(
        of_op(made, Op.REMOVE)
    )


def test_a_lane_nobody_wants_is_stopped_and_removed() -> None:
    made = plan(desired(SOLO, nodes=("n1", "n2")), world(PAIR, SOLO))
    expected = [
        "c/pair/cut/n1/stop/fleet-pair-r0-v1",
        "c/pair/cut/n2/stop/fleet-pair-r1-v1",
        "c/pair/retire/n1/remove/fleet-pair-r0-v1",
        "c/pair/retire/n2/remove/fleet-pair-r1-v1",
    ]
    assert expected == ids(made.steps)
    assert [("c/pair", "no placement wants it")] == told(made)
    assert set(expected[:2]) == before(made, expected[2])


def test_stopped_containers_nobody_wants_are_removed() -> None:
    seen = observed(*world(PAIR, state="exited").nodes.values(), facts("n3", container(SOLO)))
    made = plan(desired(SOLO, nodes=("n1", "n2")), seen)
    assert [Op.REMOVE, Op.REMOVE] == [item.op for item in made.steps]
    assert [("c/pair", "clean")] == kinds(made)


def test_stopped_containers_nobody_wants_stay_while_what_takes_their_place_cannot_boot() -> None:
    far = gang("far", ("n1", "n9"))
    made = plan(desired(far), observed(facts("n1", container(gang("old", ("n1",)), state="exited")), unknown("n9")))
    assert () == made.steps
    assert () == made.changes


def test_a_lane_on_other_nodes_says_so() -> None:
    made = plan(desired(gang("pair", ("n5", "n6")), nodes=("n1", "n2")), world(OLD_PAIR, nodes=("n5", "n6")))
    assert [("c/pair", "the spec changed: other nodes or ranks")] == told(made)


def test_a_change_that_no_field_of_the_container_shows_says_so() -> None:
    named = gang("solo", ("n3",), container={"entrypoint": ("serve",)})
    made = plan(desired(named), observed(facts("n3", container(SOLO, entrypoint=("serve",)))))
    what = "something the running container does not show, as a default that is now left to the image"
    assert [("c/solo", f"the spec changed: {what}")] == told(made)


def test_a_lane_nobody_wants_goes_where_it_can_be_seen_and_stays_where_it_cannot() -> None:
    seen = observed(facts("n1", container(PAIR, 0)), unknown("n2"), facts("n3", container(SOLO)))
    made = plan(desired(SOLO, nodes=("n1", "n2")), seen)
    assert {"n1"} == {item.node for item in made.steps}
    assert ("n2",) == tuple(state.node for state in made.unknown)


def test_a_lane_placed_on_another_cluster_with_the_same_nodes_gets_names_of_its_own() -> None:
    other = gang("pair", ("n1", "n2"), cluster="other")
    made = plan(desired(other), world(PAIR))
    assert "fleet-pair-r0-v2.unproved" == step(made, "other/pair/stage/n1/create").target
    assert [("c/pair", "makes room for other/pair"), ("other/pair", "wanted, not running")] == told(made)


def test_an_empty_spec_is_refused_while_lanes_run() -> None:
    made = plan(desired(nodes=("n1", "n2")), world(PAIR))
    expected = Refusal(
        "empty",
        "",
        None,
        "the spec places no lane, and these run: c/pair",
        "to stop them all: `fleet down --all`",
    )
    assert (expected,) == made.refusals


def test_an_empty_spec_that_is_meant_stops_everything() -> None:
    made = plan(desired(nodes=("n1", "n2")), world(PAIR), allow_empty=True)
    assert () == made.refusals
    assert 2 == len(of_op(made, Op.STOP))


def test_an_empty_spec_on_empty_nodes_is_settled() -> None:
    assert plan(desired(nodes=("n1",)), world(nodes=("n1",))).is_settled


@pytest.mark.parametrize("name", ["fleet-solo-r0-v1", "fleet-solo-r0-v1.unproved"])
def test_a_foreign_container_with_a_name_of_ours_is_left_alone_and_stepped_over(name: str) -> None:
    made = plan(desired(SOLO), observed(facts("n3", foreign(name))))
    assert "fleet-solo-r0-v2.unproved" == step(made, "c/solo/stage/n3/create").target
    assert name not in {item.target for item in made.steps}
    assert (Foreign("n3", name),) == made.foreign


@pytest.mark.parametrize("state", ["running", "exited"])
def test_a_container_whose_other_name_is_taken_is_refused_before_a_boot_that_could_never_be_confirmed(
    state: str,
) -> None:
    seen = observed(facts("n3", container(SOLO, state=state, proved=False), foreign("fleet-solo-r0-v1", "exited")))
    made = plan(desired(SOLO), seen)
    assert ["name"] == [item.code for item in made.refusals]
    assert () == made.steps


def test_earlier_generations_are_removed_when_the_lane_is_as_wanted() -> None:
    left = (container(OLD_PAIR, 0, revision=1, state="exited"), container(OLD_PAIR, 0, revision=2))
    seen = observed(facts("n1", container(PAIR, 0, revision=3), *left), facts("n2", container(PAIR, 1, revision=3)))
    made = plan(desired(PAIR), seen)
    expected = [
        "c/pair/cut/n1/stop/fleet-pair-r0-v2",
        "c/pair/retire/n1/remove/fleet-pair-r0-v2",
        "c/pair/retire/n1/remove/fleet-pair-r0-v1",
    ]
    assert expected == ids(made.steps)
    assert [("c/pair", "clean")] == kinds(made)
    assert ("c/pair",) == made.unchanged
    assert {"an earlier generation, or on another node"} == {item.reason for item in made.steps}


def test_two_fleets_on_one_node_leave_each_other_alone() -> None:
    theirs = container(SOLO, fleet="other")
    made = plan(desired(gang("solo", ("n3",), "serve", "--new")), observed(facts("n3", theirs)))
    assert not {item.container_id for item in made.steps} & {theirs.id}
    assert (Foreign("n3", "fleet-solo-r0-v1"),) == made.foreign
    assert "fleet-solo-r0-v2.unproved" == step(made, "c/solo/stage/n3/create").target


SHARED = (gang("s1", ("n1",), shares=True, ports=(1,)), gang("s2", ("n1",), shares=True, ports=(2,)))


def test_a_lane_boots_beside_one_that_shares_and_does_not_stop_it() -> None:
    made = plan(desired(*SHARED), observed(facts("n1", container(SHARED[0]))))
    assert [] == of_op(made, Op.STOP)
    assert ("c/s1",) == made.unchanged


def test_a_lane_that_shares_boots_when_the_changed_one_beside_it_has_let_go() -> None:
    old = gang("s1", ("n1",), "serve", "--large", shares=True, ports=(1,))
    made = plan(desired(*SHARED), observed(facts("n1", container(old))))
    assert "c/s1/cut/n1/stop/fleet-s1-r0-v1" in before(made, "c/s2/boot/n1/start")
    assert {"c/s1/stage/n1/create"} == before(made, "c/s1/cut/n1/stop/fleet-s1-r0-v1")


def test_one_lane_on_two_clusters_that_share_a_node_gets_two_names_there() -> None:
    twins = (gang("s", ("n1",), cluster="c", shares=True), gang("s", ("n1",), cluster="d", shares=True, ports=(2,)))
    targets = [item.target for item in of_op(plan(desired(*twins), world(nodes=("n1",))), Op.CREATE)]
    assert ["fleet-s-r0-v1.unproved", "fleet-s-r0-v2.unproved"] == targets


def test_memory_that_a_lane_declares_is_waited_for_after_the_stops() -> None:
    old, new = (gang("m", ("n1",), word, memory_bytes=2**30) for word in ("old", "new"))
    made = plan(desired(new), world(old))
    assert "c/m/cut/n1/stop/fleet-m-r0-v1" in before(made, "c/m/cut/n1/room")
    assert "c/m/cut/n1/room" in before(made, "c/m/boot/n1/start")


def test_a_refused_gang_has_no_step_and_keeps_what_it_would_replace() -> None:
    wanted = replace(QUAD, ranks=tuple(replace(one, memory_bytes=2**50) for one in QUAD.ranks))
    made = plan(desired(wanted, SOLO_5), world(PAIR, SOLO, nodes=("n4", "n5")))
    assert {"c/five"} == {item.gang for item in made.steps}
    assert {"all/quad"} == {item.gang for item in made.refusals}
    assert ["c/pair", "c/solo"] == [item.gang for item in made.deferred]


SOLO_5 = gang("five", ("n5",))


def test_only_gangs_is_the_part_of_a_plan_about_some_gangs() -> None:
    made = plan(desired(PAIR, SOLO), world(OLD_PAIR, nodes=("n3",)))
    part = only_gangs(made, lambda address: address == "c/solo")
    assert {"c/solo"} == {item.gang for item in (*part.steps, *ways_back(part))} | {item.gang for item in part.changes}
    assert () == part.outages
    assert ("c/solo",) == tuple(item.address for item in part.gangs)
    assert made.id != part.id
    assert made == only_gangs(made, lambda address: True)


def test_the_id_of_a_plan_is_of_its_content() -> None:
    one, two = plan(desired(PAIR), world(OLD_PAIR)), plan(desired(PAIR), world(OLD_PAIR))
    assert one.id == two.id
    assert plan_json(one) == plan_json(two)
    assert one.id != plan(desired(PAIR), world(OLD_PAIR), commit="4f2c1ab").id


def test_what_a_node_has_free_does_not_change_the_plan() -> None:
    one = observed(facts("n3", disk_free_bytes=1, memory_available_bytes=2))
    two = observed(facts("n3", disk_free_bytes=3, memory_available_bytes=4))
    assert plan(desired(SOLO), one) == plan(desired(SOLO), two)


NOT_BOOTED: list[tuple[str, Gang, Observed]] = [
    ("unchanged", SOLO, world(SOLO)),
    ("deferred", SOLO, observed(unknown("n3"))),
]


@pytest.mark.parametrize(("what", "of", "seen"), NOT_BOOTED, ids=[row[0] for row in NOT_BOOTED])
def test_the_plan_holds_only_gangs_that_it_boots_or_proves(what: str, of: Gang, seen: Observed) -> None:
    with pytest.raises(KeyError):
        plan(desired(of), seen).gang(of.address)


def test_the_same_content_from_another_registry_is_no_step_and_a_new_digest_is_a_replacement() -> None:
    seen = world(gang("solo", ("n3",), image=pin("a")))
    assert plan(desired(gang("solo", ("n3",), image=pin("a", "mirror.lan/x"))), seen).is_settled
    made = plan(desired(gang("solo", ("n3",), image=pin("b"))), seen)
    assert [("c/solo", "the spec changed: image")] == told(made)


def test_a_lane_that_is_taken_down_by_hand_says_so() -> None:
    made = plan(desired(PAIR).without(frozenset({"pair"})), world(PAIR), allow_empty=True)
    assert [("c/pair", "taken down by hand; the spec places it")] == told(made)


def test_a_new_container_never_gets_a_lower_revision_than_one_that_served() -> None:
    """A rank that does not change keeps its number for ever; the others count on."""
    wanted = gang("a", ("n1", "n2"))
    old = gang("a", ("n1", "n2"), "old")
    there = observed(
        facts("n1", container(old, 0, revision=3)),
        facts("n2", container(wanted, 1, revision=1)),
    )
    made = plan(desired(wanted), there)
    assert {"fleet-a-r0-v4.unproved"} == {step.target for step in made.steps if step.op is Op.CREATE}


def test_a_generation_that_shares_a_rank_with_what_failed_comes_back_though_its_mark_was_taken_away() -> None:
    """The controller was killed while the new one was proved; the rank that both share lost its mark in the cut."""
    old, new = gang("a", ("n1", "n2"), "old"), gang("a", ("n1", "n2"), "new")
    new = replace(new, ranks=(new.ranks[0], old.ranks[1]))
    n1 = facts("n1", container(old, 0, state="exited"), container(new, 0, revision=2, proved=False))
    made = plan(replace(desired(new), retain=1), observed(n1, facts("n2", container(old, 1, proved=False))))
    assert [Kind.PROVE] == [item.kind for item in made.changes]
    back = [step.target for step in ways_back(made) if step.op is Op.START]
    assert ["fleet-a-r0-v1", "fleet-a-r1-v1.unproved"] == back
    assert [] == of_op(made, Op.REMOVE)


def test_a_container_whose_proved_name_another_has_is_not_booted_but_removed() -> None:
    """Two controllers made it twice, and the other one was proved."""
    wanted, other = gang("a", ("n1",)), gang("a", ("n1",), "other")
    there = facts("n1", container(other), container(wanted, state="created", proved=False))
    made = plan(desired(wanted), observed(there))
    assert () == made.refusals
    assert {"fleet-a-r0-v2.unproved"} == {step.target for step in of_op(made, Op.CREATE)}
    assert {"fleet-a-r0-v1", "fleet-a-r0-v1.unproved"} == {step.target for step in of_op(made, Op.REMOVE)}


def test_of_two_lanes_that_a_person_let_run_on_one_node_the_proved_and_wanted_one_comes_back() -> None:
    old, wanted, other = gang("a", ("n1",), "old"), gang("a", ("n1",)), gang("b", ("n1",))
    for stranger in (container(other), container(other, proved=False)):
        made = plan(desired(wanted), observed(facts("n1", container(old), stranger)))
        assert ["fleet-a-r0-v1"] == [step.target for step in ways_back(made) if step.op is Op.START]


def test_a_lane_that_lay_stopped_where_another_runs_now_does_not_come_back_there() -> None:
    here, there = gang("z", ("n2",)), gang("z", ("n1",), cluster="d")
    beside = gang("w", ("n2",), cluster="r")
    n2 = facts("n2", container(beside), container(here, state="exited"))
    made = plan(desired(there, beside), observed(facts("n1"), n2))
    assert [] == [step.target for step in ways_back(made) if step.op is Op.START]
