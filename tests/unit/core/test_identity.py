"""Names and labels: how a container says whose it is; the digest a plan is bound to."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.canonical import canonical_json, fingerprint, jsonable, plain
from reconciler.core.desired import ContainerSpec, Mount, SecretRef
from reconciler.core.identity import (
    container_name,
    is_proved,
    labels,
    owner_by,
    owner_of,
    proved_name,
    recipe,
    secret_references,
    unproved_name,
)
from reconciler.core.observed import LocalImage, NodeFacts, Owner, facts_digest
from tests.unit.core.build import container, digest, facts, foreign, gang, pin, spec

GANG = gang(
    "a",
    ("n1", "n2"),
    container={"env": (("A", "1"), ("TOKEN", SecretRef("env:TOKEN")))},
    ports=(30000, 50052),
    stop_grace_s=2.5,
)
MARKS = labels("lab", GANG, GANG.ranks[1], 7, "plan/step", "sha256:local")


def test_the_labels_of_a_rank_are_these() -> None:
    expected = {
        "fleet.fleet": "lab",
        "fleet.lane": "a",
        "fleet.cluster": "c",
        "fleet.rank": "1",
        "fleet.size": "2",
        "fleet.fingerprint": GANG.ranks[1].fingerprint,
        "fleet.revision": "7",
        "fleet.operation": "plan/step",
        "fleet.image": f"ghcr.io/owner/engine@{digest()}",
        "fleet.image-id": "sha256:local",
        "fleet.ports": "30000,50052",
        "fleet.stop-grace": "2.5",
        "fleet.spec": canonical_json(GANG.ranks[1].container),
        "fleet.gang": recipe(GANG),
    }
    assert expected == MARKS


def test_what_the_labels_say_is_read_back() -> None:
    expected = Owner(
        fleet="lab",
        lane="a",
        cluster="c",
        rank=1,
        size=2,
        fingerprint=GANG.ranks[1].fingerprint,
        revision=7,
        operation="plan/step",
        pin=f"ghcr.io/owner/engine@{digest()}",
        image_id="sha256:local",
        ports=(30000, 50052),
        stop_grace_s=2.5,
        declared_env=("A", "TOKEN"),
        container_text=canonical_json(GANG.ranks[1].container),
        recipe=recipe(GANG),
    )
    assert expected == owner_of(MARKS)
    assert ("c/a", digest()) == (expected.gang, expected.digest)


@pytest.mark.parametrize("missing", sorted(set(MARKS) - {"fleet.spec", "fleet.gang"}))
def test_a_container_with_half_of_the_labels_is_foreign(missing: str) -> None:
    assert owner_of({key: value for key, value in MARKS.items() if key != missing}) is None


@pytest.mark.parametrize("key", ["rank", "size", "revision", "ports", "stop-grace"])
def test_a_container_with_labels_that_are_no_numbers_is_foreign(key: str) -> None:
    assert owner_of({**MARKS, f"fleet.{key}": "x"}) is None


@pytest.mark.parametrize("grace", ["inf", "nan", "-1", "1e300"])
def test_a_container_with_a_grace_that_no_spec_allows_is_foreign(grace: str) -> None:
    """Written by hand. Docker takes a negative one for ever."""
    assert owner_of({**MARKS, "fleet.stop-grace": grace}) is None


@pytest.mark.parametrize("text", ["[" * 100_000, '{"env": [["A", {"other": 1}]]}', '{"env": {"A": 1}}', '{"env": [1]}'])
def test_a_spec_label_that_makes_no_sense_says_nothing(text: str) -> None:
    marks = {**MARKS, "fleet.spec": text}
    assert owner_of(marks) is not None
    assert {} == secret_references(marks)


def test_no_labels_are_foreign() -> None:
    assert owner_of({}) is None


def test_the_value_of_a_secret_is_on_no_label_only_its_reference() -> None:
    assert {"TOKEN": "env:TOKEN"} == secret_references(MARKS)
    assert '["TOKEN",{"secret":"env:TOKEN"}]' in MARKS["fleet.spec"]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"env": 5}', '{"env": [1]}', '{"env": [["A"]]}'])
def test_a_spec_label_that_somebody_spoiled_declares_nothing(text: str) -> None:
    assert {} == secret_references({**MARKS, "fleet.spec": text})
    owner = owner_of({**MARKS, "fleet.spec": text})
    assert owner is not None
    assert () == owner.declared_env


def test_labels_without_the_name_they_ask_for_are_a_copy_and_nobodys() -> None:
    assert owner_of(MARKS) == owner_by("fleet-a-r1-v7", MARKS) == owner_by("fleet-a-r1-v7.unproved", MARKS)
    assert (None, None) == (owner_by("copy", MARKS), owner_by("fleet-a-r1-v8", MARKS))


def test_names_go_from_unproved_to_proved_and_back() -> None:
    name = container_name("a", 1, 7)
    assert "fleet-a-r1-v7" == name
    assert "fleet-a-r1-v7.unproved" == unproved_name(name) == unproved_name(unproved_name(name))
    assert name == proved_name(unproved_name(name)) == proved_name(name)
    assert (True, False) == (is_proved(name), is_proved(unproved_name(name)))


@given(st.text("ab-.r0v1", min_size=1), st.integers(0, 99), st.integers(1, 99), st.text("ab-.r0v1", min_size=1))
def test_no_two_ranks_of_any_lanes_have_one_name(one: str, rank: int, revision: int, other: str) -> None:
    name = container_name(one, rank, revision)
    assert name != container_name(one, rank + 1, revision)
    assert name != container_name(one, rank, revision + 1)
    assert (one == other) == (name == container_name(other, rank, revision))


def test_unset_fields_are_left_out_of_the_canonical_form_and_kept_for_readers_outside() -> None:
    made = spec("x", mounts=(Mount("/a", "/b"),))
    assert {"image", "command", "mounts", "gpus"} == set(plain(made))
    assert {"entrypoint", "env", "shm_bytes"} <= set(jsonable(made))


def test_a_field_that_is_false_or_zero_is_not_unset() -> None:
    assert {"source": "/a", "target": "/b", "read_only": False} == plain(Mount("/a", "/b", read_only=False))
    assert 0 == plain(spec("x"))["gpus"]


@given(st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=4))
def test_equal_values_have_one_text_whatever_order_they_were_built_in(value: dict[str, object]) -> None:
    turned = dict(reversed(value.items()))
    assert canonical_json(value) == canonical_json(turned)
    assert fingerprint(value) == fingerprint(turned)
    assert value == json.loads(canonical_json(value))


FIELDS: list[tuple[str, ContainerSpec]] = [
    ("image", spec("x", image=pin("b"))),
    ("command", spec("x", "y")),
    ("entrypoint", spec("x", entrypoint=("sh",))),
    ("env", spec("x", env=(("A", "1"),))),
    ("secret", spec("x", env=(("A", SecretRef("env:A")),))),
    ("another secret", spec("x", env=(("A", SecretRef("env:B")),))),
    ("mounts", spec("x", mounts=(Mount("/a", "/b"),))),
    ("writable mounts", spec("x", mounts=(Mount("/a", "/b", read_only=False),))),
    ("devices", spec("x", devices=("/dev/a",))),
    ("shm", spec("x", shm_bytes=1)),
    ("ulimits", spec("x", ulimits=(("memlock", -1),))),
    ("gpus", spec("x", gpus=1)),
]


def test_every_field_of_a_container_is_in_its_fingerprint() -> None:
    prints = [replace(GANG.ranks[0], container=made).fingerprint for _, made in [("", spec("x")), *FIELDS]]
    assert len(FIELDS) + 1 == len(set(prints))


SEEN = facts("n1", container(GANG), foreign())

OTHERS: list[tuple[str, NodeFacts]] = [
    ("a boot", replace(SEEN, boot_id="other")),
    ("a container that is gone", replace(SEEN, containers=SEEN.containers[1:])),
    ("a container that stopped", facts("n1", container(GANG, state="exited"), foreign())),
    ("a container that was renamed", facts("n1", container(GANG, name="x"), foreign())),
    ("a container that was made anew", facts("n1", container(GANG, id="x"), foreign())),
    ("a foreign container that stopped", facts("n1", container(GANG), foreign(state="exited"))),
    ("an image that is gone", replace(SEEN, images=())),
    ("an image that cannot be used", replace(SEEN, images=(replace(SEEN.images[0], usable=False),))),
]


@pytest.mark.parametrize(("what", "other"), OTHERS, ids=[row[0] for row in OTHERS])
def test_a_plan_is_bound_to(what: str, other: NodeFacts) -> None:
    assert facts_digest(SEEN) != facts_digest(other), what


def test_a_plan_is_not_bound_to_free_room_or_the_order_of_things() -> None:
    other = replace(SEEN, disk_free_bytes=1, memory_available_bytes=2, containers=SEEN.containers[::-1])
    assert facts_digest(SEEN) == facts_digest(other)


IMAGES: list[tuple[str, LocalImage, bool]] = [
    ("known by a digest", LocalImage("sha256:x", (digest("b"), digest())), True),
    ("known by its id", LocalImage(digest()), True),
    ("another", LocalImage("sha256:x", (digest("b"),)), False),
    ("not usable", LocalImage("sha256:x", (digest(),), usable=False), False),
    ("only named alike", LocalImage("sha256:x", (), ("ghcr.io/owner/engine:latest",)), False),
]


@pytest.mark.parametrize(("what", "image", "expected"), IMAGES, ids=[row[0] for row in IMAGES])
def test_an_image_is_there_by_content_alone(what: str, image: LocalImage, expected: bool) -> None:
    found = facts("n1", images=()).image_for(pin())
    assert found is None
    assert (image if expected else None) == replace(facts("n1"), images=(image,)).image_for(pin()), what
