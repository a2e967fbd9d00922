"""What became of an effect that nobody saw the end of: told by the node, never asked of a person."""

from dataclasses import dataclass, replace

import pytest

from reconciler.core.identity import labels, owner_of
from reconciler.core.machine import Status
from reconciler.core.observed import Container, LocalImage, NodeFacts
from reconciler.core.plan import Op
from reconciler.core.settling import LEFT_NOTHING, forgotten, settled
from tests.unit.core.build import FLEET, container, facts, foreign, gang, pin

DONE, NOT_DONE = Status.APPLIED, Status.SKIPPED
GANG = gang("a")
NAME = "fleet-a-r0-v1"
UNPROVED = f"{NAME}.unproved"


@dataclass(frozen=True)
class Left:
    """An intent without an outcome, as the journal has it."""

    op: str
    target: str = UNPROVED
    node: str | None = "n1"
    operation: str = "run1/c/a/stage/n1/create"


def result(intent: Left, *found: Container) -> Status:
    return told(intent, facts("n1", *found))[0]


def told(intent: Left, seen: NodeFacts) -> tuple[Status, str]:
    ended = settled(intent, seen)
    assert ended is not None
    return ended


def made_by(operation: str) -> Container:
    marks = labels(FLEET, GANG, GANG.ranks[0], 1, operation, "sha256:image")
    return replace(container(GANG, state="created", proved=False), owner=owner_of(marks))


def test_every_effect_there_is_can_be_settled() -> None:
    """A new op needs its own look."""
    texts = {op: told(Left(op), facts())[1] for op in Op}
    assert [] == [op for op, text in texts.items() if "another version" in text]


@pytest.mark.parametrize("op", [op for op in Op if op not in LEFT_NOTHING])
def test_an_effect_on_a_node_that_cannot_be_read_stays_open(op: Op) -> None:
    assert settled(Left(op), None) is None


@pytest.mark.parametrize("op", sorted(LEFT_NOTHING))
def test_a_wait_left_nothing_whatever_can_be_read(op: Op) -> None:
    found = settled(Left(op, "c/a", None), None)
    assert found is not None
    assert found[0] is NOT_DONE


def test_a_container_was_created_when_its_label_names_the_operation() -> None:
    assert result(Left(Op.CREATE), made_by("run1/c/a/stage/n1/create")) is DONE


def test_a_container_of_the_same_name_by_another_operation_is_not_ours() -> None:
    assert result(Left(Op.CREATE), made_by("run2/c/a/stage/n1/create")) is NOT_DONE
    assert result(Left(Op.CREATE), foreign(UNPROVED)) is NOT_DONE
    assert result(Left(Op.CREATE)) is NOT_DONE


def test_a_created_container_counts_also_when_a_later_run_proved_it() -> None:
    assert result(Left(Op.CREATE), replace(made_by("run1/c/a/stage/n1/create"), name=NAME)) is DONE


@pytest.mark.parametrize("state", ["running", "paused", "restarting"])
def test_what_runs_was_started_and_not_stopped(state: str) -> None:
    found = container(GANG, state=state, proved=False)
    assert result(Left(Op.START), found) is DONE
    assert result(Left(Op.STOP, NAME), found) is NOT_DONE


@pytest.mark.parametrize("state", ["created", "exited", "dead"])
def test_what_does_not_run_was_stopped_and_not_started(state: str) -> None:
    found = container(GANG, state=state, proved=False)
    assert result(Left(Op.START), found) is NOT_DONE
    assert result(Left(Op.STOP, NAME), found) is DONE


def test_what_is_gone_is_stopped_and_removed_and_neither_started_nor_renamed() -> None:
    assert {op: result(Left(op)) for op in (Op.STOP, Op.REMOVE, Op.START, Op.CONFIRM, Op.UNPROVE)} == {
        Op.STOP: DONE,
        Op.REMOVE: DONE,
        Op.START: NOT_DONE,
        Op.CONFIRM: NOT_DONE,
        Op.UNPROVE: NOT_DONE,
    }


def test_the_mark_of_proof_is_in_the_name() -> None:
    proved, unproved = container(GANG), container(GANG, proved=False)
    assert result(Left(Op.CONFIRM, UNPROVED), proved) is DONE
    assert result(Left(Op.CONFIRM, UNPROVED), unproved) is NOT_DONE
    assert result(Left(Op.UNPROVE, NAME), unproved) is DONE
    assert result(Left(Op.UNPROVE, NAME), proved) is NOT_DONE


def test_what_is_still_there_was_not_removed() -> None:
    assert result(Left(Op.REMOVE, NAME), container(GANG, state="exited")) is NOT_DONE


def test_an_image_came_when_it_is_whole_under_whatever_name() -> None:
    pull = Left(Op.PULL, pin("a").reference)
    digest = pin("a").digest
    assert told(pull, facts(images=[pin("a")]))[0] is DONE
    assert told(pull, facts(images=[pin("b")]))[0] is NOT_DONE
    half = replace(facts(), images=(LocalImage("sha256:other", (digest,), usable=False),))
    assert told(pull, half)[0] is NOT_DONE
    assert told(replace(pull, target=digest), replace(facts(), images=(LocalImage(digest),)))[0] is DONE


def test_an_op_that_nobody_knows_ends_its_entry_and_says_why() -> None:
    """Left open it would be told of for ever."""
    found, text = told(Left("qualify"), facts())
    assert found is NOT_DONE
    assert "another version" in text


def test_a_node_that_left_the_spec_is_told_as_such() -> None:
    assert (
        NOT_DONE,
        "not done: n1 is not in the spec any more: what became of it there is not known",
    ) == forgotten(Left(Op.START))


def test_what_is_told_names_the_container_the_node_and_its_state() -> None:
    ended = replace(container(GANG, state="exited"), exit_code=137, oom_killed=True, finished_at="")
    assert (
        DONE,
        f"settled by looking: {NAME} on n1 exited 137 (out of memory)",
    ) == told(Left(Op.STOP, NAME), facts("n1", ended))
