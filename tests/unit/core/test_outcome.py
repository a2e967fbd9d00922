"""From what happened to an exit code and the sentence that goes with it: the whole table."""

import pytest

from reconciler.core.desired import Desired
from reconciler.core.machine import Machine, Status
from reconciler.core.observed import Observed
from reconciler.core.outcome import Exit, apply_exit, plan_exit
from reconciler.core.plan import Op, Plan
from reconciler.core.summary import apply_summary, unsettled_summary
from tests.unit.core.build import container, desired, facts, foreign, gang, observed, plan, unknown, world
from tests.unit.core.test_machine import run

A = gang("a", ("n1",))
OLD = gang("a", ("n1",), "old")
B = gang("b", ("n2",))
Z = gang("z", ("n1",))

FINE = world(A, B)
BOOTS = world(nodes=("n1", "n2"))
AWAY = observed(*world(A).nodes.values(), unknown("n2"))
TAKEN = observed(facts("n1", foreign(published_ports=(30000,))), facts("n2"))
BOTH = desired(A, B)


def test_exit_codes_are_frozen() -> None:
    expected = {
        "OK": 0,
        "ERROR": 1,
        "CHANGES": 2,
        "REFUSED": 3,
        "UNREACHABLE": 4,
        "LEASE_HELD": 5,
        "UNCHANGED": 6,
        "NEEDS_A_PERSON": 7,
        "INTERRUPTED": 130,
    }
    assert expected == {item.name: item.value for item in Exit}


PLANS: list[tuple[str, Observed, Exit, Exit]] = [
    ("nothing to do", FINE, Exit.OK, Exit.OK),
    ("something to do", BOOTS, Exit.OK, Exit.CHANGES),
    ("a node away", AWAY, Exit.UNREACHABLE, Exit.UNREACHABLE),
    ("a node away and something to do", observed(facts("n1"), unknown("n2")), Exit.UNREACHABLE, Exit.UNREACHABLE),
    ("refused", TAKEN, Exit.REFUSED, Exit.REFUSED),
    ("refused and a node away", observed(TAKEN.nodes["n1"], unknown("n2")), Exit.REFUSED, Exit.REFUSED),
]


@pytest.mark.parametrize(("what", "seen", "plain", "detailed"), PLANS, ids=[row[0] for row in PLANS])
def test_the_exit_code_of_showing_a_plan(what: str, seen: Observed, plain: Exit, detailed: Exit) -> None:
    made = plan(BOTH, seen)
    assert plain == plan_exit(made, changes_count=False), what
    assert detailed == plan_exit(made, changes_count=True), what


REPLACED = world(OLD, nodes=("n2",))  # a is replaced, b boots
ROOM = world(A, nodes=("n2",))  # a is stopped for z

APPLIES: list[tuple[str, Desired, Observed, dict[str, Status], Exit, str]] = [
    ("all went well", BOTH, REPLACED, {}, Exit.OK, "1 booted, 1 replaced"),
    ("nothing to do", BOTH, FINE, {}, Exit.OK, "nothing to do"),
    (
        "all went well and a node was away",
        BOTH,
        observed(*world(OLD).nodes.values(), unknown("n2")),
        {},
        Exit.UNREACHABLE,
        "1 replaced; not reached: n2",
    ),
    (
        "a stage failed",
        BOTH,
        REPLACED,
        {"c/a/stage/n1/create": Status.FAILED},
        Exit.UNCHANGED,
        "c/a: failed before anything was stopped; the fleet serves what it served before",
    ),
    (
        "a stage lost its node",
        BOTH,
        REPLACED,
        {"c/a/stage/n1/create": Status.UNREACHABLE},
        Exit.UNCHANGED,
        "c/a: failed before anything was stopped; the fleet serves what it served before",
    ),
    (
        "a stage was stale",
        BOTH,
        REPLACED,
        {"c/a/stage/n1/create": Status.STALE},
        Exit.REFUSED,
        "c/a: changed since the plan was made; nothing was stopped; run `fleet plan` again",
    ),
    (
        "one stale, one failed",
        BOTH,
        REPLACED,
        {"c/a/stage/n1/create": Status.STALE, "c/b/stage/n2/create": Status.FAILED},
        Exit.UNCHANGED,
        "c/a, c/b: failed before anything was stopped; the fleet serves what it served before",
    ),
    (
        "the stop was stale",
        BOTH,
        REPLACED,
        {"c/a/cut/n1/stop/fleet-a-r0-v1": Status.STALE},
        Exit.REFUSED,
        "c/a: changed since the plan was made; nothing was stopped; run `fleet plan` again",
    ),
    (
        "the boot failed",
        BOTH,
        REPLACED,
        {"c/a/boot/n1/start": Status.FAILED},
        Exit.UNCHANGED,
        "c/a: the new version failed and was rolled back; what ran before serves again: c/a",
    ),
    (
        "the start was stale after the stop",
        BOTH,
        REPLACED,
        {"c/a/boot/n1/start": Status.STALE},
        Exit.UNCHANGED,
        "c/a: the new version failed and was rolled back; what ran before serves again: c/a",
    ),
    (
        "the gate failed and so did the way back: what was booted may still run",
        BOTH,
        REPLACED,
        {"c/a/verify/verify": Status.FAILED, "c/a/rollback/n1/stop": Status.UNREACHABLE},
        Exit.NEEDS_A_PERSON,
        (
            "c/a: the new version failed; what ran before is stopped and kept: fleet-a-r0-v1 on n1; "
            "may still run, since it could not be stopped: fleet-a-r0-v2.unproved on n1"
        ),
    ),
    (
        "the gate failed, and what ran before does not start",
        BOTH,
        REPLACED,
        {"c/a/verify/verify": Status.FAILED, "c/a/rollback/n1/start": Status.FAILED},
        Exit.NEEDS_A_PERSON,
        (
            "c/a: the new version failed; what ran before is stopped and kept: fleet-a-r0-v1 on n1; "
            "could not be brought back: c/a"
        ),
    ),
    (
        "the gate failed, and what ran before starts and is not proved",
        BOTH,
        REPLACED,
        {"c/a/verify/verify": Status.FAILED, "c/a/rollback/verify": Status.FAILED},
        Exit.NEEDS_A_PERSON,
        ("c/a: the new version failed; could not be brought back: c/a; runs again, not proved: fleet-a-r0-v1 on n1"),
    ),
    (
        "a removal failed",
        BOTH,
        REPLACED,
        {"c/a/retire/n1/remove/fleet-a-r0-v1": Status.FAILED},
        Exit.NEEDS_A_PERSON,
        "c/a: as wanted, but what is left of before could not be removed",
    ),
    (
        "another lane was stopped for one whose boot failed",
        desired(Z, B),
        ROOM,
        {"c/z/boot/n1/start": Status.FAILED},
        Exit.UNCHANGED,
        "c/z: its boot failed and was rolled back; what ran before serves again: c/a",
    ),
    (
        "another lane was stopped for one whose boot failed, and does not come back",
        desired(Z, B),
        ROOM,
        {"c/z/boot/n1/start": Status.FAILED, "c/a/rollback/n1/start": Status.FAILED},
        Exit.NEEDS_A_PERSON,
        (
            "c/z: its boot failed; stopped to make room for it, and kept: c/a (fleet-a-r0-v1 on n1); "
            "could not be brought back: c/a"
        ),
    ),
    (
        "the mark of proof could not be set",
        BOTH,
        REPLACED,
        {"c/a/confirm/n1/confirm": Status.FAILED},
        Exit.UNCHANGED,
        "c/a: the new version failed and was rolled back; what ran before serves again: c/a",
    ),
    (
        "a boot failed for which nothing was stopped",
        BOTH,
        BOOTS,
        {"c/b/verify/verify": Status.FAILED},
        Exit.UNCHANGED,
        "c/b: its boot failed and was rolled back; nothing served there before, and what was booted is stopped",
    ),
    (
        "a lane that nobody wants could not be stopped on one of its nodes",
        desired(B, nodes=("n1", "n3")),
        world(gang("w", ("n1", "n3")), B),
        {"c/w/cut/n3/stop/fleet-w-r1-v1": Status.FAILED},
        Exit.NEEDS_A_PERSON,
        "c/w: could not be stopped and removed whole",
    ),
    (
        "another lane was not stopped for one whose stage failed",
        desired(Z, B),
        ROOM,
        {"c/z/stage/n1/create": Status.FAILED},
        Exit.UNCHANGED,
        "c/z: failed before anything was stopped; the fleet serves what it served before",
    ),
]


@pytest.mark.parametrize(
    ("what", "wanted", "seen", "ends", "code", "summary"), APPLIES, ids=[row[0] for row in APPLIES]
)
def test_the_exit_code_of_an_apply_and_its_sentence(
    what: str, wanted: Desired, seen: Observed, ends: dict[str, Status], code: Exit, summary: str
) -> None:
    machine = Machine(plan(wanted, seen))
    assert set(ends) <= set(run(machine, ends)), what
    assert code == apply_exit(machine)
    assert summary == apply_summary(machine, code).splitlines()[0]


NEXT: list[tuple[str, dict[str, Status], str]] = [
    ("before the cut", {"c/a/stage/n1/create": Status.FAILED}, "mend what is shown above, then `fleet apply`"),
    (
        "a silent node",
        {"c/a/stage/n1/create": Status.UNREACHABLE},
        "when n1 can be reached again: `fleet apply` goes on from here",
    ),
    (
        "after the cut of a change",
        {"c/a/verify/verify": Status.FAILED, "c/a/rollback/n1/start": Status.FAILED},
        (
            "change the spec, then `fleet apply`; to try the same again: `fleet apply --retry`; "
            "to have back what was stopped: undo the change in the spec, then `fleet apply`"
        ),
    ),
    (
        "nothing but a removal",
        {"c/a/retire/n1/remove/fleet-a-r0-v1": Status.FAILED},
        "mend what is shown above, then `fleet apply`",
    ),
]


@pytest.mark.parametrize(("what", "ends", "expected"), NEXT, ids=[row[0] for row in NEXT])
def test_a_failed_apply_names_the_next_command(what: str, ends: dict[str, Status], expected: str) -> None:
    machine = Machine(plan(BOTH, REPLACED))
    run(machine, ends)
    assert expected == apply_summary(machine, apply_exit(machine)).splitlines()[1], what


def test_a_repair_that_failed_is_not_undone_by_the_spec_whatever_else_was_booted() -> None:
    seen = observed(facts("n1", container(A, state="restarting")), facts("n2"))
    machine = Machine(plan(BOTH, seen))
    run(machine, {"c/a/verify/verify": Status.FAILED})
    expected = (
        "c/a: its boot failed and was rolled back; nothing served there before, and what was booted is stopped\n"
        "change the spec, then `fleet apply`; to try the same again: `fleet apply --retry`"
    )
    assert expected == apply_summary(machine, apply_exit(machine))


def interrupted(made: Plan) -> Machine:
    machine = Machine(made)
    for step in machine.begin():
        machine.ended(step.id, Status.FAILED)
    machine.interrupt()
    return machine


def test_an_interrupt_wins_over_everything_else_and_says_how_to_go_on() -> None:
    machine = interrupted(plan(BOTH, REPLACED))
    assert Exit.INTERRUPTED == apply_exit(machine)
    assert "interrupted with 8 steps not done; `fleet resume` goes on from here" == apply_summary(
        machine, Exit.INTERRUPTED
    )


def test_what_does_not_settle_is_named_by_its_fields_or_its_reason() -> None:
    made = plan(BOTH, REPLACED)
    expected = "applied, but it will not settle: c/a (argv); c/b (wanted, not running)"
    assert expected == unsettled_summary(made.changes)


def test_of_many_containers_a_few_are_named_and_the_rest_counted() -> None:
    nodes = tuple(f"n{number}" for number in range(1, 7))
    made = plan(desired(gang("w", nodes)), world(gang("w", nodes, "old")))
    machine = Machine(made)
    run(machine, {"c/w/verify/verify": Status.FAILED, "c/w/rollback/n1/start": Status.FAILED})
    first = apply_summary(machine, Exit.NEEDS_A_PERSON).splitlines()[0]
    assert first.endswith("fleet-w-r4-v1 on n5 and 1 more")


def test_an_interrupt_after_a_stop_says_what_is_stopped_until_the_next_apply() -> None:
    machine = Machine(plan(desired(Z, B), ROOM))
    ready = list(machine.begin())
    while not any(step.op is Op.STOP and machine.status[step.id] is Status.APPLIED for step in machine.plan.steps):
        ready += machine.ended(ready.pop(0).id, Status.APPLIED)
    for step in ready:
        machine.ended(step.id, Status.SKIPPED)
    machine.interrupt()
    told = apply_summary(machine, Exit.INTERRUPTED)
    assert "steps not done; stopped until then: fleet-a-r0-v1 on n1; `fleet resume` goes on from here" in told
