"""What docs/events.md and docs/hooks.md show is so: their examples load, their lines are events, their tables whole."""

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped] # it has no types of its own
import pytest

import specs
from reconciler.core.envelope import TOLD
from reconciler.core.gitops.events import GITOPS_EVENTS
from reconciler.core.hooks import About, AfterConfirm, BeforeCut, OnFailure, Point, about, environment
from reconciler.hooking import hooks_of
from reconciler.nodes.hooks import KEPT
from reconciler.views.event_schema import event_schema
from tests.unit.core.build import desired, gang, plan, world

DOCS = Path(__file__).parents[2] / "docs"
EVENTS, HOOKS = ((DOCS / name).read_text(encoding="utf-8") for name in ("events.md", "hooks.md"))
VALID = jsonschema.Draft202012Validator(event_schema())


def examples(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.S)


def rows(page: str) -> set[str]:
    """What the first cells of the tables name."""
    cells = re.findall(r"^\| (`.*?) \|", page, re.M)
    return {name for cell in cells for name in re.findall(r"`([\w.]+)`", cell)}


@pytest.mark.parametrize("page", [EVENTS, HOOKS], ids=["events", "hooks"])
def test_the_lines_that_a_page_shows_are_events_of_the_schema(page: str) -> None:
    (text,) = examples(page, "json")
    shown: dict[str, Any] = json.loads(text)
    VALID.validate(shown)
    assert list(VALID.schema["properties"]) == list(shown)


def test_the_page_of_events_names_every_kind_and_no_other() -> None:
    elsewhere = {*GITOPS_EVENTS, BeforeCut, AfterConfirm, OnFailure}  # on the pages of the agent and of hooks
    kinds = {vars(kind)["KIND"] for kind in TOLD if kind not in elsewhere}
    assert kinds == {name for name in rows(EVENTS) if "." in name}


def test_the_hooks_of_the_page_load(tmp_path: Path) -> None:
    (text,) = examples(HOOKS, "yaml")
    (tmp_path / "fleet.yaml").write_text(f"fleet: lab\n{text}", encoding="utf-8")
    found = hooks_of(specs.load(tmp_path / "fleet.yaml"))
    assert [f"{point}[0]" for point in Point] == [hook.name for hook in found]
    assert [("LB_TOKEN",), ("Authorization",), ("url",)] == [
        tuple(name for name, _ in hook.references) for hook in found
    ]


def test_the_page_names_every_hook_and_all_that_a_program_is_given() -> None:
    made = plan(desired(gang("chat", ("n1",))), world(nodes=("n1",)))
    assert {*Point, *environment(BeforeCut(about(made, "c/chat")), "1f00")} == rows(HOOKS)
    named = re.findall(r"`([A-Z_]+)`", HOOKS.partition("| variable")[0])
    assert {"PATH", *KEPT} == set(named)


def test_every_field_of_the_event_of_a_hook_is_in_its_example() -> None:
    event = json.loads(examples(HOOKS, "json")[0])["event"]
    assert {item.name for item in fields(OnFailure)} == {*event}
    assert {item.name for item in fields(About)} == {*event["about"]}
