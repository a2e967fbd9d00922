"""Policies from packages and from files, and those that come with fleet."""

import re
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import yaml

import specs
from reconciler import policing
from reconciler.core.desired import ImagePin
from reconciler.core.objection import Level, Objection
from reconciler.core.policies import Policy, PolicyContext, judged
from reconciler.core.policies.built_in import pinned
from reconciler.core.withhold import Held, withhold
from tests.unit.core.build import desired, gang, plan, world

PAGE = (Path(__file__).parents[2] / "docs/policies.md").read_text(encoding="utf-8")
OWN = Policy("own", "Is it so?", lambda context: [Objection("no")])
PAIR = (OWN, replace(OWN, id="other"))
TEXT = "text"
BUILD = ImagePin("sha256:" + "b" * 64, "sha256:" + "b" * 64, "id")
LOCAL, PULLED = gang("local", ("n1",), image=BUILD), gang("pulled", ("n2",))
MADE = plan(desired(LOCAL, PULLED), world(nodes=("n1", "n2")))


def point(value: str) -> EntryPoint:
    return EntryPoint("a", f"{__name__}:{value}", policing.GROUP)


def said(policy: Policy) -> list[str]:
    return [item.summary for item in judged(MADE, [policy], 0.0, {}).objections]


def test_an_entry_point_names_a_policy_or_several() -> None:
    assert ["own"] == [policy.id for policy in policing.loaded([point("OWN")])]
    assert ["own", "other"] == [policy.id for policy in policing.loaded([point("PAIR")])]


@pytest.mark.parametrize(("value", "why"), [("TEXT", "is str, not a Policy"), ("NOTHING", "AttributeError")])
def test_an_entry_point_that_names_none_objects(value: str, why: str) -> None:
    (policy,) = policing.loaded([point(value)])
    (told,) = said(policy)
    assert why in told


def test_a_local_build_is_objected_to_where_it_boots() -> None:
    assert ["c/local"] == [item.gang for item in judged(MADE, [pinned(("*",), Level.MANDATORY)], 0.0, {}).objections]
    assert [] == said(pinned(("pulled", "c/p*"), Level.MANDATORY))


NIGHT = """
fleet: lab
policies: {protected: [{lanes: [old], windows: [{allow: "0 1 * * *", for: 3h, zone: Europe/Berlin}]}]}
"""
TWO_AT_NIGHT_S, NOON_S = 1796000400.0, 1796036400.0
"""In Berlin, on 2026-11-30: 02:00 and 12:00."""


@pytest.mark.parametrize(("now_s", "said"), [(TWO_AT_NIGHT_S, 0), (NOON_S, 1)])
def test_a_protected_lane_stops_only_in_its_window(tmp_path: Path, now_s: float, said: int) -> None:
    (tmp_path / "fleet.yaml").write_text(NIGHT, encoding="utf-8")
    old, new = gang("old", ("n1",)), gang("new", ("n1",), cluster="d")
    made = plan(desired(new), world(old))
    found = policing.with_objections(specs.load(tmp_path / "fleet.yaml"), made, now_s).objections
    assert ["c/old"] * said == [item.gang for item in found]
    assert all("it is protected and would stop: outside of what is allowed: 0 1 * * *" in str(item) for item in found)


def test_a_protected_lane_without_windows_never_stops(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text("fleet: lab\npolicies: {protected: [{lanes: [o*]}]}\n", encoding="utf-8")
    made = plan(desired(gang("new", ("n1",), cluster="d")), world(gang("old", ("n1",))))
    (found,) = policing.with_objections(specs.load(tmp_path / "fleet.yaml"), made, NOON_S).objections
    assert "c/old: it is protected and would stop: no window lets it" == str(found)


def test_what_is_withheld_is_not_judged() -> None:
    held = withhold(MADE, [Held("1f00", "lane", "local", "ops@laptop", "a demo")], [])
    assert () == judged(held, [pinned(("*",), Level.MANDATORY)], 0.0, {}).objections


def test_mandatory_objections_come_first_and_change_no_id() -> None:
    told = judged(MADE, [replace(OWN, level=Level.ADVISORY), PAIR[1]], 0.0, {})
    assert ["other", "own"] == [item.policy for item in told.objections]
    assert MADE.id == told.id


def test_a_policy_is_told_what_time_it_is_and_sees_no_earlier_objections() -> None:
    seen: list[PolicyContext] = []
    judged(judged(MADE, [OWN], 0.0, {}), [Policy("x", "?", lambda context: seen.append(context) or [])], 5.0, {})  # type: ignore[func-returns-value]
    assert [(5.0, ())] == [(context.now_s, context.plan.objections) for context in seen]


def test_the_example_of_the_page_is_one(tmp_path: Path) -> None:
    section, code = (re.findall(rf"```{kind}\n(.*?)```", PAGE, re.S)[0] for kind in ("yaml", "python"))
    (tmp_path / "fleet.yaml").write_text(f"fleet: lab\n{section}", encoding="utf-8")
    (tmp_path / "ours.py").write_text(code, encoding="utf-8")
    wide = gang("wide", tuple(f"n{number}" for number in range(5)))
    made = plan(desired(wide), world(nodes=wide.nodes))
    told = policing.with_objections(specs.load(tmp_path / "fleet.yaml"), made, 0.0)
    assert ["takes 5 nodes at once"] == [item.summary for item in told.objections]
    assert yaml.safe_load(section)["policies"]["levels"] == {item.policy: item.level for item in told.objections}
