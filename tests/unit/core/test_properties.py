"""What holds for every plan of every fleet. The worlds are random; see `worlds.py` for what they may hold."""

import os
from collections.abc import Iterator
from dataclasses import replace

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from reconciler.core.desired import Gang
from reconciler.core.drift import findings
from reconciler.core.observed import Container, NodeFacts, SourceImage, Unknown
from reconciler.core.plan import Op, Phase, Plan, Step, plan_json
from reconciler.core.preflight import SUFFIX
from reconciler.core.sync import make_sync_plan
from reconciler.views.drift_json import drift_json
from reconciler.views.drift_markdown import drift_markdown
from reconciler.views.drift_text import drift_text
from reconciler.views.plan_markdown import plan_markdown
from reconciler.views.plan_text import plan_text
from tests.unit.core.build import FLEET, before, plan, ways_back
from tests.unit.core.drift_reports import report
from tests.unit.core.worlds import SECRET_VALUE, World, after, shuffled, some_order, worlds

EXAMPLES = int(os.environ.get("FLEET_EXAMPLES", "80"))
"""Enough to find a fault in a few runs; a nightly run sets some thousands."""

many = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SEEDS = st.integers(0, 2**16)


def planned(world: World) -> Plan:
    return plan(world.desired, world.observed, allow_empty=True)


def known(world: World) -> Iterator[tuple[str, Container]]:
    """Every container of ours on every node that is known."""
    for name, state in world.observed.nodes.items():
        if isinstance(state, NodeFacts):
            yield from ((name, item) for item in state.containers if item.owner and item.owner.fleet == FLEET)


def of_lanes(made: Plan) -> list[Step]:
    """Its steps but for those that clear away what is left of a preflight: they touch no lane."""
    return [step for step in made.steps if not (step.op is Op.REMOVE and step.target.endswith(SUFFIX))]


def waiting(made: Plan) -> set[str]:
    """Gangs that this plan leaves as they are."""
    return {item.gang for item in made.deferred} | {item.gang for item in made.refusals}


def wanted_nodes(world: World, address: str) -> set[str]:
    return {node for one in world.desired.gangs if one.address == address for node in one.nodes}


def takers(world: World, address: str) -> list[Gang]:
    """The wanted gangs that take the place of what is found of this gang, itself included."""
    own = wanted_nodes(world, address)
    stands = {node for node, item in known(world) if item.owner and item.owner.gang == address}
    return [one for one in world.desired.gangs if one.address == address or (stands - own) & {*one.nodes}]


def stops(world: World, made: Plan) -> Iterator[tuple[Step, str]]:
    """Every stop, and the gang whose container it stops."""
    by_id = {item.id: item.owner.gang for _, item in known(world) if item.owner}
    yield from ((step, by_id[step.container_id or ""]) for step in made.steps if step.op is Op.STOP)


def starting(made: Plan) -> set[str]:
    return {step.gang for step in made.steps if step.op is Op.START}


@many
@given(worlds(), SEEDS)
def test_the_plan_is_the_same_bytes_whatever_order_its_inputs_came_in(world: World, seed: int) -> None:
    assert plan_json(planned(world)) == plan_json(planned(shuffled(world, seed)))


@many
@given(worlds())
def test_every_requirement_is_a_step_that_comes_earlier_in_the_plan(world: World) -> None:
    seen: set[str] = set()
    for step in planned(world).steps:
        assert not set(step.requires) - seen
        assert step.id not in seen
        seen.add(step.id)


@many
@given(worlds())
def test_the_phases_come_in_their_order(world: World) -> None:
    order = [list(Phase).index(step.phase) for step in planned(world).steps]
    assert sorted(order) == order


@many
@given(worlds())
def test_no_step_touches_an_unknown_node_or_what_is_not_ours(world: World) -> None:
    made = planned(world)
    ours = {item.id for _, item in known(world)}
    for step in (*of_lanes(made), *ways_back(made)):
        assert step.node is None or not isinstance(world.observed.nodes[step.node], Unknown)
        assert step.container_id is None or step.container_id in ours


@many
@given(worlds())
def test_a_lane_is_stopped_only_after_everything_that_takes_its_place_is_staged(world: World) -> None:
    made = planned(world)
    for stop, address in stops(world, made):
        needed = {
            step.id
            for taker in takers(world, address)
            for step in made.steps
            if step.gang == taker.address and step.phase is Phase.STAGE
        }
        assert needed <= before(made, stop.id)
        event("a stop that waits for stages" if needed else "a stop that waits for nothing")


@many
@given(worlds())
def test_a_lane_is_not_stopped_for_one_that_cannot_boot_now(world: World) -> None:
    made = planned(world)
    up = {step.gang for step in made.steps if step.op is Op.VERIFY} | {*made.unchanged}
    for _, address in stops(world, made):
        assert not (waiting(made) - up) & {taker.address for taker in takers(world, address)}


@many
@given(worlds())
def test_a_start_waits_for_the_stop_of_all_that_runs_there_and_does_not_share(world: World) -> None:
    made = planned(world)
    sharing = {(one.address, node) for one in world.desired.gangs if one.shares for node in one.nodes}
    stopped = {step.container_id: step.id for step in made.steps if step.op is Op.STOP}
    for start in (step for step in made.steps if step.op is Op.START):
        earlier = before(made, start.id)
        for node, item in known(world):
            if node == start.node and item.is_running and item.owner:
                stays = item.id not in stopped and (item.owner.gang, node) in sharing and item.owner.gang != start.gang
                assert stays or stopped[item.id] in earlier
                event("beside a lane that shares" if stays else "after a stop")


@many
@given(worlds())
def test_nothing_is_removed_before_what_takes_its_place_is_confirmed(world: World) -> None:
    made = planned(world)
    by_id = {item.id: item.owner.gang for _, item in known(world) if item.owner}
    for remove in (step for step in of_lanes(made) if step.op is Op.REMOVE):
        needed = {
            step.id
            for taker in takers(world, by_id[remove.container_id or ""])
            for step in made.steps
            if step.gang == taker.address and step.phase is Phase.CONFIRM
        }
        assert needed <= before(made, remove.id)


@many
@given(worlds())
def test_a_gang_boots_whole_or_not_at_all(world: World) -> None:
    made = planned(world)
    gangs = {one.address: one for one in world.desired.gangs}
    for address in starting(made):
        ranks = [step.rank for step in made.steps if step.gang == address and step.op is Op.START]
        assert list(range(len(gangs[address].ranks))) == sorted(rank for rank in ranks if rank is not None)
        assert [step.op for step in made.steps if step.gang == address and step.phase is Phase.VERIFY] == [Op.VERIFY]


@many
@given(worlds())
def test_a_gang_that_waits_has_no_step(world: World) -> None:
    made = planned(world)
    wanted = {one.address for one in world.desired.gangs}
    waits = {item.gang for item in made.deferred if not item.reason.startswith("what is left of it elsewhere stays")}
    waits |= {item.gang for item in made.refusals}
    assert not waits & wanted & {step.gang for step in of_lanes(made)}


@many
@given(worlds())
def test_every_wanted_gang_is_changed_unchanged_or_waits(world: World) -> None:
    made = planned(world)
    told = {item.gang for item in made.changes} | set(made.unchanged) | waiting(made)
    assert {one.address for one in world.desired.gangs} <= told


@many
@given(worlds(), SEEDS)
def test_the_plan_after_an_apply_is_empty(world: World, seed: int) -> None:
    made = planned(world)
    done = after(world, made, some_order(made, seed))
    assert () == planned(done).steps
    event(f"{len(starting(made))} gangs boot, {len(waiting(made))} wait")


@many
@given(worlds(), SEEDS, st.floats(0, 1))
def test_a_controller_killed_after_any_step_is_made_good_by_the_next_apply(
    world: World, seed: int, part: float
) -> None:
    made = planned(world)
    order = some_order(made, seed)
    killed = after(world, made, order[: round(part * len(order))])
    second = planned(killed)
    done = after(killed, second, some_order(second, seed + 1))
    assert () == planned(done).steps


@many
@given(worlds(), SEEDS)
def test_after_an_apply_every_gang_that_did_not_wait_runs_alone_and_proved(world: World, seed: int) -> None:
    made = planned(world)
    done = after(world, made, some_order(made, seed))
    up = {(node, item.owner.gang) for node, item in known(done) if item.state == "running" and item.owner}
    for one in world.desired.gangs:
        if one.address not in waiting(made):
            assert {(node, one.address) for node in one.nodes} <= up
            assert one.address in planned(done).unchanged


@many
@given(worlds())
def test_a_seed_is_a_node_of_the_gang_that_answers_and_has_a_python(world: World) -> None:
    made = planned(world)
    for pull in (step for step in made.steps if step.op is Op.PULL and step.seed is not None):
        facts = world.observed.facts(pull.seed or "")
        assert pull.seed in made.gang(pull.gang).nodes
        assert facts is not None
        assert facts.has_python
        event("a seed that has it" if facts.image_for(made.gang(pull.gang).ranks[0].container.image) else "a spool")


@many
@given(worlds())
def test_a_pull_is_told_with_figures_that_can_be(world: World) -> None:
    made = planned(world)
    pulls = [step for step in made.steps if step.op is Op.PULL]
    assert {(step.gang, step.node) for step in pulls} == {(item.gang, item.node) for item in made.transfers}
    for item in made.transfers:
        source = world.observed.sources.get(f"sha256:{item.image.rpartition(':')[2]}")
        assert (item.missing_bytes is not None) == isinstance(source, SourceImage)
        if item.missing_bytes is not None and isinstance(source, SourceImage):
            assert 0 <= item.missing_bytes <= max(dict(source.bytes_by_platform).values())
            assert item.layers_shared <= item.layers
        if item.disk_free_after_bytes is not None:
            assert 0 <= item.disk_free_after_bytes <= (item.disk_free_bytes or 0)


@many
@given(worlds())
def test_free_disk_that_wanders_makes_no_other_plan(world: World) -> None:
    plenty = {
        name: replace(state, disk_free_bytes=2**40) if isinstance(state, NodeFacts) else state
        for name, state in world.observed.nodes.items()
    }
    less = {
        name: replace(state, disk_free_bytes=2**40 - 12345) if isinstance(state, NodeFacts) else state
        for name, state in plenty.items()
    }
    plans = [planned(replace(world, observed=replace(world.observed, nodes=nodes))) for nodes in (plenty, less)]
    assert plans[0].id == plans[1].id


@many
@given(worlds())
def test_a_sync_only_pulls_and_only_what_is_lacking(world: World) -> None:
    made = make_sync_plan(world.desired, world.observed)
    assert {step.op for step in made.steps} <= {Op.PULL}
    assert () == made.rollbacks
    for step in made.steps:
        facts = world.observed.facts(step.node or "")
        assert facts is not None
        assert facts.image_for(made.gang(step.gang).ranks[step.rank or 0].container.image) is None


@many
@given(worlds(), SEEDS)
def test_a_sync_is_the_same_bytes_in_any_order_and_leaves_nothing_to_sync(world: World, seed: int) -> None:
    made = make_sync_plan(world.desired, world.observed)
    other = shuffled(world, seed)
    assert plan_json(made) == plan_json(make_sync_plan(other.desired, other.observed))
    done = after(world, made, some_order(made, seed))
    assert () == make_sync_plan(done.desired, done.observed).steps


@many
@given(worlds())
def test_a_secret_value_shows_in_no_plan_and_no_report(world: World) -> None:
    made = planned(world)
    found = report(findings(world.desired, world.observed, {}))
    reports = [view(found) for view in (drift_text, drift_json, drift_markdown)]
    for text in (plan_json(made), plan_text(made, {}), plan_markdown(made, {}), *reports):
        assert SECRET_VALUE not in text
