"""A policy and real hook programs around a real change: refused, held back, then let through."""

import json
import stat

import pytest

from . import Lab
from .fleet_cli import Desk, desk, names

pytestmark = pytest.mark.lab

HOOK = """#!/bin/sh
cat >> called.ndjson
echo "$FLEET_EVENT $FLEET_LANE $FLEET_NODES" >> called
test ! -e busy || { echo sessions are open >&2; exit 7; }
"""
POLICY = """
from reconciler import Objection, Policy

RULE = Policy("calm", "Is the rack calm?", lambda context: [Objection("the rack is busy", hint="wait")])
"""


@pytest.fixture
def served(clean_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A lane serves, its next version is wanted, and a hook is asked before it is cut."""
    clean_lab.preload("llamacpp", ["node3"])
    made = desk(clean_lab, tmp_path_factory.mktemp("hooked"), ("solo", "single-3"))
    hook = made.folder / "hook"
    hook.write_text(HOOK)
    hook.chmod(hook.stat().st_mode | stat.S_IXUSR)
    (made.folder / "ours.py").write_text(POLICY)
    calls = [{"command": ["./hook"], "timeout": "5s"}]
    made.edit("fleet.yaml", lambda spec: spec.update(hooks={"before_cut": calls, "after_confirm": calls}))
    made.apply()
    made.edit_lane("solo", args={"ctx-size": 256})
    return made


def test_a_change_goes_by_its_policy_and_its_hooks(served: Desk) -> None:
    before = names(served.lab)
    served.edit("fleet.yaml", lambda spec: spec.update(policies={"files": ["ours.py"]}))
    refused = served.fleet("apply", "--yes")
    assert 3 == refused.rc, refused.said
    assert "calm (mandatory): the rack is busy" in refused.said
    served.edit("fleet.yaml", lambda spec: spec.pop("policies"))
    (served.folder / "busy").touch()
    kept = served.fleet("apply", "--yes")
    assert 6 == kept.rc, kept.said
    assert "hook before_cut[0] for single-3/solo: exit code 7: sessions are open" in kept.said
    assert [name for found in before.values() for name in found] == [
        name for found in names(served.lab).values() for name in found if not name.endswith("v2.unproved")
    ]
    (served.folder / "busy").unlink()
    assert 0 == served.fleet("apply", "--yes", "--events", "events.ndjson").rc
    called = (served.folder / "called").read_text().splitlines()
    assert ["hook.before_cut solo node3", "hook.after_confirm solo node3"] == called[-2:]
    told = [json.loads(line) for line in (served.folder / "called.ndjson").read_text().splitlines()]
    assert "single-3/solo" == told[-1]["event"]["about"]["placement"]
    kinds = [json.loads(line)["kind"] for line in (served.folder / "events.ndjson").read_text().splitlines()]
    assert 2 == kinds.count("hook.ended")
