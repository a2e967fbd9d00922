"""Foreign containers that a placement may stop: only the named ones, only for a boot, only behind its staging."""

from dataclasses import replace

from reconciler.core.desired import Gang
from reconciler.core.observed import Container, Listener
from reconciler.core.plan import Op, Phase
from tests.unit.core.build import before, container, desired, facts, foreign, gang, ids, observed, plan, ways_back

WEB = foreign("open-webui", gpus=1, published_ports=(30000,))


def permitted(*names: str) -> Gang:
    return replace(gang("a", ("n1",), container={"gpus": 1}), may_stop=names)


def test_without_permission_it_refuses_the_plan() -> None:
    made = plan(desired(permitted("another")), observed(facts("n1", WEB)))
    assert {"foreign-gpu", "foreign-port"} == {item.code for item in made.refusals}


def test_it_is_stopped_behind_the_staging_and_before_the_boot() -> None:
    made = plan(desired(permitted("open-webui")), observed(facts("n1", WEB)))
    assert () == made.refusals
    assert ["c/a/cut/n1/stop/open-webui"] == ids(step for step in made.steps if step.op is Op.STOP)
    assert {"c/a/stage/n1/create"} == before(made, "c/a/cut/n1/stop/open-webui")
    assert "c/a/cut/n1/stop/open-webui" in before(made, "c/a/boot/n1/start")
    assert [] == [step for step in made.steps if step.op is Op.REMOVE]


def test_it_is_told_as_an_outage_and_with_the_change_and_not_as_left_alone() -> None:
    made = plan(desired(permitted("open-webui")), observed(facts("n1", WEB)))
    assert ("open-webui on n1",) == made.outages[0].stops
    assert "stops open-webui on n1, which fleet did not make, as `may_stop` allows" in made.changes[0].notes
    assert () == made.foreign


def test_it_starts_again_when_the_lane_fails_after_what_was_booted_has_stopped() -> None:
    made = plan(desired(permitted("open-webui")), observed(facts("n1", WEB)))
    back = [step for step in ways_back(made) if step.op is Op.START]
    assert [("open-webui", WEB.id, Phase.ROLLBACK)] == [(step.target, step.container_id, step.phase) for step in back]
    assert ("c/a/rollback/n1/stop",) == back[0].requires


def test_for_a_lane_that_runs_as_wanted_nothing_is_stopped() -> None:
    wanted = permitted("open-webui")
    made = plan(desired(wanted), observed(facts("n1", container(wanted), WEB)))
    assert () == made.steps


def test_what_is_stopped_already_or_of_another_fleet_is_not_touched() -> None:
    another = container(gang("x", ("n1",)), fleet="another", name="open-webui")
    for found in (foreign("open-webui", state="exited"), another):
        made = plan(desired(permitted("open-webui")), observed(facts("n1", found)))
        assert [] == [step for step in made.steps if step.op is Op.STOP]


def test_a_port_whose_holder_cannot_be_seen_may_be_that_of_what_goes() -> None:
    """Only root sees whose a listener is; a container in the host's network publishes no port."""
    web: Container = replace(WEB, published_ports=())
    held = facts("n1", web, listeners=(Listener(30000),))
    assert () == plan(desired(permitted("open-webui")), observed(held)).refusals
    assert ["foreign-port"] == [
        item.code
        for item in plan(desired(permitted("open-webui")), observed(facts("n1", listeners=(Listener(30000),)))).refusals
    ]
