"""By its marks a container tells that a secret changed: certainly, or not at all."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.core.classify import Situation, by_gang, classify, ours, view_of
from reconciler.core.desired import Desired, Gang, SecretRef
from reconciler.core.diff import FieldChange, changes
from reconciler.core.drift import findings
from reconciler.core.explain import boot_reason
from reconciler.core.identity import labels, owner_of, secrets_label
from reconciler.core.observed import Container, Observed
from reconciler.core.plan import Kind, plan_json
from reconciler.core.planner import make_plan
from reconciler.core.secret_marks import NO_MARKS, SecretMarks, SeenSecrets, marks_from
from reconciler.core.secret_notes import marked_references, secret_notes
from tests.unit.core.build import FLEET, container, desired, facts, gang, observed

REFERENCE = "file:/run/token"
OLD, NEW = "ab12" * 4, "cd34" * 4
KEY, OTHER_KEY = "00000001", "00000002"


def lane(reference: str = REFERENCE) -> Gang:
    return gang("a", ("n1",), container={"env": (("TOKEN", SecretRef(reference)),)})


def made(mark: str | None = OLD, key: str = KEY, of: Gang | None = None, **fields: Any) -> Container:
    """The gang's running container, made with a secret of this mark."""
    built = container(of or lane(), **fields)
    assert built.owner is not None
    marks = SecretMarks(key, (("TOKEN", mark),)) if mark else NO_MARKS
    return replace(built, owner=replace(built.owner, secrets=marks))


def seen(mark: str | None = NEW, key: str = KEY, why: str = "", no_key: str = "") -> SeenSecrets:
    marks = SecretMarks(key, ((REFERENCE, mark),) if mark else ())
    return SeenSecrets(marks, ((REFERENCE, why),) if why else (), no_key)


def world(found: Container, secrets: SeenSecrets) -> Observed:
    return replace(observed(facts("n1", containers=(found,))), secrets=secrets)


def wanted(of: Gang | None = None) -> Desired:
    return desired(of or lane())


def test_a_secret_that_changed_is_a_field_that_shows_marks_only() -> None:
    expected = FieldChange("env.TOKEN", "secret ab12ab12…", "secret cd34cd34…")
    assert (expected,) == changes(lane().ranks[0].container, made(), seen().marks)


@pytest.mark.parametrize(
    ("found", "now"),
    [
        (made(), seen(OLD)),
        (made(None), seen()),
        (made(key=OTHER_KEY), seen()),
        (made(), seen(None, why="the variable is not set here")),
        (made(), SeenSecrets(no_key="there is no key here")),
        (made(), SeenSecrets()),
    ],
    ids=["same", "never marked", "another operator's key", "cannot be resolved", "no key", "not looked at"],
)
def test_what_cannot_be_told_is_no_change_and_changes_no_plan(found: Container, now: SeenSecrets) -> None:
    plan = make_plan(wanted(), world(found, now))
    assert (("c/a",), ()) == (plan.unchanged, plan.changes)
    assert plan_json(make_plan(wanted(), world(found, SeenSecrets()))) == plan_json(plan)
    assert () == findings(wanted(), world(found, now), {})


def test_a_changed_secret_replaces_the_gang_and_says_so() -> None:
    plan = make_plan(wanted(), world(made(), seen()))
    (change,) = plan.changes
    assert (Kind.REPLACE, "a secret changed: env.TOKEN") == (change.kind, change.reason)
    assert (FieldChange("env.TOKEN", "secret ab12ab12…", "secret cd34cd34…"),) == change.fields


def test_marks_are_no_part_of_a_fingerprint() -> None:
    assert lane().fingerprint == lane().fingerprint
    assert OLD not in plan_json(make_plan(wanted(), world(made(), seen(OLD))))


def test_a_secret_changed_while_the_gang_was_stopped_boots_a_new_container() -> None:
    stopped = made(state="exited", exit_code=0)
    view = view_of(lane(), by_gang(ours(wanted(), world(stopped, seen())))["c/a"], world(stopped, seen()))
    assert Situation.STOPPED is classify(view).situation
    assert view.ranks[0].fit is None


def test_a_changed_spec_is_told_before_a_changed_secret() -> None:
    other = gang("a", ("n1",), container={"env": (("A", "1"), ("TOKEN", SecretRef(REFERENCE)))})
    look = world(made(), seen())
    view = view_of(other, by_gang(ours(desired(other), look))["c/a"], look)
    rule = classify(view)
    assert Situation.CHANGED is rule.situation
    assert "the spec changed: env.A, env.TOKEN" == boot_reason(view, rule)


def test_a_change_by_hand_beside_a_changed_secret_is_a_change_and_all_fields_are_told() -> None:
    look = world(made(restart_policy="always"), seen())
    (change,) = make_plan(wanted(), look).changes
    assert "a secret changed: env.TOKEN" == change.reason
    assert {"env.TOKEN", "restart"} == {field.field for field in change.fields}


def test_another_reference_is_another_field_not_another_value() -> None:
    moved = lane("file:/run/other")
    marks = SecretMarks(KEY, (("file:/run/other", NEW),))
    (change,) = changes(moved.ranks[0].container, made(), marks)
    assert ("secret file:/run/token", "secret file:/run/other") == (change.before, change.after)


def test_drift_reports_it_without_a_value() -> None:
    (finding,) = findings(wanted(), world(made(), seen()), {})
    assert ("env.TOKEN", "secret cd34cd34…", "secret ab12ab12…") == (finding.field, finding.expected, finding.found)


def test_the_label_is_read_back() -> None:
    marks = SecretMarks(KEY, (("A", OLD), ("TOKEN", NEW)))
    text = {**labels(FLEET, lane(), lane().ranks[0], 1, "op", "sha256:x"), **secrets_label(marks)}
    owner = owner_of(text)
    assert {"fleet.secrets": f"{KEY} A={OLD} TOKEN={NEW}"} == secrets_label(marks)
    assert owner is not None
    assert marks == owner.secrets


@pytest.mark.parametrize("text", ["", " ", "key", "key A", "key =x", "key A=", "key A=1 x"])
def test_a_label_that_is_not_ours_says_nothing(text: str) -> None:
    assert () == marks_from(text).marks


def test_no_marks_make_no_label() -> None:
    assert {} == secrets_label(NO_MARKS)


def test_only_what_has_a_mark_under_this_key_is_worth_resolving() -> None:
    states = world(made(), SeenSecrets()).nodes
    assert frozenset({REFERENCE}) == marked_references(wanted(), states, KEY)
    assert frozenset() == marked_references(wanted(), states, OTHER_KEY)
    assert frozenset() == marked_references(desired(gang("a", ("n1",))), states, KEY)
    assert frozenset() == marked_references(wanted(lane("file:/run/other")), states, KEY)


def test_a_command_is_never_looked_at() -> None:
    of = lane("command:pass show hf/token")
    look = world(made(of=of), SeenSecrets())
    assert frozenset() == marked_references(wanted(of), look.nodes, KEY)
    assert () == secret_notes(wanted(of), look)


@pytest.mark.parametrize(
    ("found", "now", "why"),
    [
        (made(None), seen(), "the running container was made without a key to mark it with"),
        (made(key=OTHER_KEY), seen(), f"it was marked with another key, {OTHER_KEY} (the one here is {KEY})"),
        (made(), SeenSecrets(no_key="there is no key here: /x"), "there is no key here: /x"),
        (made(), seen(None, why="the variable is not set here"), "the variable is not set here"),
    ],
)
def test_why_a_secret_was_not_compared_is_said(found: Container, now: SeenSecrets, why: str) -> None:
    expected = f"c/a: whether env.TOKEN changed is not known: {why}"
    assert (expected,) == secret_notes(wanted(), world(found, now))


def test_nothing_is_said_of_what_was_compared_or_does_not_run() -> None:
    assert () == secret_notes(wanted(), world(made(), seen()))
    assert () == secret_notes(wanted(), world(made(None, state="exited", exit_code=0), seen()))
