"""What was written as JSON is read back as the same value, and nothing else is taken for one."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from reconciler.core.canonical import canonical_json
from reconciler.core.decode import DecodeError, decoded
from reconciler.core.desired import ContainerSpec, Gang, HealthGate, Mount, Ready, SecretRef
from reconciler.core.plan import Plan, plan_json, sealed
from reconciler.core.probes import Probe
from tests.unit.core.build import desired, gang, pin, plan, rank, world
from tests.unit.core.test_properties import many, planned
from tests.unit.core.worlds import World, worlds
from tests.unit.views import scenes

WHOLE = gang(
    "whole",
    ("n1", "n2"),
    cluster="far",
    image=pin("b"),
    boot_order=((1,), (0,)),
    shares=True,
    gate=HealthGate("127.0.0.1", 1, probes=(Probe("chat", "2+2?", expect_regex="4"),), boot_s=60.0, stall_s=30.5),
    container={
        "env": (("A", "plain"), ("B", SecretRef("env:B"))),
        "mounts": (Mount("/a", "/b", read_only=False),),
        "ulimits": (("memlock", -1),),
        "shm_bytes": 2**34,
        "entrypoint": ("vllm",),
        "gpus": 1,
    },
    memory_bytes=2**36,
    ready=Ready(50052),
    paths=("/srv/models",),
)
MADE = plan(desired(WHOLE), world(nodes=("n1", "n2")))


@many
@given(worlds())
def test_every_plan_is_read_back_as_it_was_written(world: World) -> None:
    made = planned(world)
    read = decoded(Plan, plan_json(made))
    assert made == read
    assert made.id == sealed(read).id


@pytest.mark.parametrize("scene", [scenes.demo, scenes.everything, scenes.hostile, scenes.sync])
def test_every_kind_of_plan_is_read_back(scene: Callable[[], Any]) -> None:
    assert scene() == decoded(Plan, plan_json(scene()))


SILENT = replace(gang(), ranks=(rank(container=ContainerSpec(pin())),))


@pytest.mark.parametrize("one", [WHOLE, gang(), SILENT], ids=["whole", "bare", "the image's own command"])
def test_a_gang_is_read_back_from_canonical_json_with_the_same_fingerprints(one: Gang) -> None:
    read = decoded(Gang, canonical_json(one))
    assert (one, one.fingerprint) == (read, read.fingerprint)
    assert one.ranks[0].fingerprint == read.ranks[0].fingerprint


def edited(change: Callable[[dict[str, Any]], object]) -> str:
    fields = json.loads(plan_json(MADE))
    change(fields)
    return json.dumps(fields)


WRONG: dict[str, tuple[str, str]] = {
    "nothing": ("", "not a plan: "),
    "cut in the middle": (plan_json(MADE)[:200], "not a plan: invalid JSON"),
    "another value": ("[]", "not a plan: "),
    "a field is missing": (edited(lambda plan: plan.pop("steps")), "not a plan at steps: "),
    "a text for a number": (edited(lambda plan: plan["gangs"][0]["gate"].update(port="1")), "at gangs.0.gate.port: "),
    "a number for a text": (edited(lambda plan: plan["steps"][0].update(target=7)), "at steps.0.target: "),
    "an op that is not known": (edited(lambda plan: plan["steps"][0].update(op="burn")), "at steps.0.op: "),
    "a key of a newer version": (edited(lambda plan: plan["steps"][1].update(force=True)), "at steps.1.force: no such"),
    "a key of a newer version on top": (edited(lambda plan: plan.update(window="night")), "at window: no such"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_not_a_plan_is_told_with_its_place(what: str) -> None:
    text, told = WRONG[what]
    with pytest.raises(DecodeError) as caught:
        decoded(Plan, text)
    assert told in str(caught.value)
