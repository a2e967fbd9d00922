"""`fleet images sync`: images only, no lane is touched."""

from dataclasses import replace

from reconciler.core.exits import Exit
from reconciler.core.machine import Machine, Status
from reconciler.core.observed import SourceMissing
from reconciler.core.outcome import apply_exit, plan_exit
from reconciler.core.plan import Kind, Op, Plan
from reconciler.core.summary import apply_summary
from reconciler.core.sync import make_sync_plan
from tests.unit.core.build import GIB, desired, digest, facts, gang, layer, observed, pin, source, unknown, world

PAIR, SOLO = gang("pair", ("n1", "n2"), cluster="a"), gang("solo", ("n3",), cluster="b", image=pin("b"))
SOURCES = [source("a", layer("base")), source("b", layer("other"))]
BARE = [facts(name, images=()) for name in ("n1", "n2", "n3")]


def pulls(made: Plan) -> list[tuple[str, str | None]]:
    assert {Op.PULL} >= {step.op for step in made.steps}
    return [(step.gang, step.node) for step in made.steps]


def test_every_node_of_a_placement_gets_its_image() -> None:
    made = make_sync_plan(desired(PAIR, SOLO), observed(*BARE, sources=SOURCES))
    assert [("a/pair", "n1"), ("a/pair", "n2"), ("b/solo", "n3")] == pulls(made)
    assert [(Kind.SYNC, ("n1", "n2")), (Kind.SYNC, ("n3",))] == [(item.kind, item.nodes) for item in made.changes]
    assert (True, (), ()) == (made.is_sync, made.rollbacks, made.outages)
    assert all(step.requires == () for step in made.steps)


def test_only_the_named_clusters_count() -> None:
    seen = observed(*BARE, sources=SOURCES)
    assert [("b/solo", "n3")] == pulls(make_sync_plan(desired(PAIR, SOLO), seen, frozenset({"b"})))
    assert () == make_sync_plan(desired(PAIR, SOLO), seen, frozenset()).steps


def test_what_is_there_is_not_brought_and_what_runs_is_not_touched() -> None:
    made = make_sync_plan(desired(PAIR, gang("other", ("n3",))), world(PAIR, gang("old", ("n3",))))
    assert made.is_settled
    assert ("a/pair", "c/other") == made.unchanged


def test_a_lane_that_runs_and_whose_image_is_gone_gets_it_back() -> None:
    running = world(PAIR).facts("n1")
    assert running is not None
    made = make_sync_plan(desired(PAIR), observed(replace(running, images=()), facts("n2"), sources=SOURCES))
    assert [("a/pair", "n1")] == pulls(made)


def test_a_node_that_cannot_be_read_holds_up_no_other() -> None:
    made = make_sync_plan(desired(PAIR, SOLO), observed(BARE[0], unknown("n2"), BARE[2], sources=SOURCES))
    assert [("a/pair", "n1"), ("b/solo", "n3")] == pulls(made)
    assert [("a/pair", "n2 cannot be read")] == [(item.gang, item.reason) for item in made.deferred]
    assert Exit.UNREACHABLE == plan_exit(made, changes_count=True)


def test_what_cannot_be_brought_is_refused_with_its_reason() -> None:
    missing = SourceMissing(digest("b"), "404")
    full = replace(BARE[0], disk_free_bytes=GIB)
    made = make_sync_plan(desired(PAIR, SOLO), observed(full, *BARE[1:], sources=[SOURCES[0], missing]))
    assert [("disk", "n1"), ("image-missing", "n3")] == [(item.code, item.node) for item in made.refusals]
    assert () == made.steps


def ended(made: Plan, *ends: Status) -> Machine:
    machine = Machine(made)
    for step, end in zip(machine.begin(), ends, strict=True):
        machine.ended(step.id, end)
    return machine


def summary(machine: Machine) -> tuple[Exit, str]:
    code = apply_exit(machine)
    return code, apply_summary(machine, code)


def test_the_end_is_told_in_images_and_nodes() -> None:
    made = make_sync_plan(desired(PAIR, SOLO), observed(*BARE, sources=SOURCES))
    done = ended(made, Status.APPLIED, Status.NOOP, Status.APPLIED)
    assert (Exit.OK, "2 images brought to 3 nodes") == summary(done)
    lost = replace(made, unknown=(unknown("n9"),))
    told = "2 images brought to 3 nodes; not reached: n9"
    assert (Exit.UNREACHABLE, told) == summary(ended(lost, Status.APPLIED, Status.NOOP, Status.APPLIED))


def test_models_are_told_as_models() -> None:
    made = make_sync_plan(desired(PAIR), observed(*BARE[:2], sources=SOURCES))
    models = replace(made, steps=tuple(replace(step, op=Op.FETCH, target="bigram") for step in made.steps))
    assert (Exit.OK, "1 model brought to 2 nodes") == summary(ended(models, Status.APPLIED, Status.NOOP))
    _, told = summary(ended(models, Status.APPLIED, Status.UNREACHABLE))
    assert told.endswith("when n2 can be reached again: `fleet models sync` goes on from here")


def test_what_failed_is_named_and_no_lane_was_touched() -> None:
    made = make_sync_plan(desired(PAIR), observed(*BARE[:2], sources=SOURCES))
    told = (
        "could not be brought: ghcr.io/owner/engine to n2; no lane was touched\n"
        "mend what is shown above, then `fleet images sync`"
    )
    assert (Exit.UNCHANGED, told) == summary(ended(made, Status.APPLIED, Status.FAILED))
    code, text = summary(ended(made, Status.APPLIED, Status.UNREACHABLE))
    assert Exit.UNCHANGED == code
    assert text.endswith("when n2 can be reached again: `fleet images sync` goes on from here")
