"""The difference between a rank as wanted and its live container: one row a field."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.core.desired import ContainerSpec, Mount, SecretRef
from reconciler.core.diff import FieldChange, changes
from reconciler.core.identity import labels, owner_of
from reconciler.core.observed import Container
from tests.unit.core.build import FLEET, container, desired, digest, facts, foreign, gang, observed, pin, plan, world

TOKEN = SecretRef("env:HF_TOKEN")
GANG = gang(
    container={
        "entrypoint": ("python3", "-m"),
        "env": (("A", "1"), ("B", "2")),
        "mounts": (Mount("/models", "/m"),),
        "devices": ("/dev/a", "/dev/b"),
        "shm_bytes": 64,
        "ulimits": (("memlock", -1), ("stack", 8)),
        "gpus": 1,
    }
)
WANTED = GANG.ranks[0].container
FOUND = container(GANG)


def test_the_container_that_was_made_for_the_rank_differs_in_nothing() -> None:
    assert () == changes(WANTED, FOUND)


ROWS: list[tuple[dict[str, Any], tuple[str, str | None, str | None]]] = [
    ({"entrypoint": ("sh",)}, ("entrypoint", "sh", "python3 -m")),
    ({"entrypoint": None}, ("entrypoint", "", "python3 -m")),
    ({"command": ("serve", "--old", "1")}, ("argv", "--old 1", None)),
    ({"command": ()}, ("argv", None, "serve")),
    ({"env": (("A", "1"), ("B", "3"))}, ("env.B", "3", "2")),
    ({"env": (("A", "1"),)}, ("env.B", None, "2")),
    ({"mounts": ()}, ("mount /m", None, "/models ro")),
    ({"mounts": (Mount("/models", "/m", read_only=False),)}, ("mount /m", "/models rw", "/models ro")),
    ({"mounts": (Mount("/models", "/m"), Mount("/x", "/y"))}, ("mount /y", "/x ro", None)),
    ({"devices": ("/dev/a",)}, ("devices", "/dev/a", "/dev/a /dev/b")),
    ({"shm_bytes": 32}, ("shm_size", "32", "64")),
    ({"shm_bytes": None}, ("shm_size", None, "64")),
    ({"ulimits": (("memlock", 5), ("stack", 8))}, ("ulimits", "memlock=5 stack=8", "memlock=-1 stack=8")),
    ({"gpus": 2}, ("gpus", "2", "1")),
    ({"network_mode": "bridge"}, ("network", "bridge", "host")),
    ({"restart_policy": "always"}, ("restart", "always", "no")),
    ({"auto_remove": True}, ("auto_remove", "true", "false")),
]


@pytest.mark.parametrize(("changed", "expected"), ROWS, ids=[f"{row[1][0]} {row[1][1]}" for row in ROWS])
def test_what_was_changed_by_hand_shows_in_its_field_alone(
    changed: dict[str, Any], expected: tuple[str, str | None, str | None]
) -> None:
    assert (FieldChange(*expected),) == changes(WANTED, replace(FOUND, **changed))


@pytest.mark.parametrize(
    "same",
    [
        {"env": (("B", "2"), ("A", "1"))},
        {"env": (("A", "1"), ("B", "2"), ("PATH", "/usr/bin"))},
        {"devices": ("/dev/b", "/dev/a")},
        {"ulimits": (("stack", 8), ("memlock", -1))},
        {"ulimits": (("stack", 8), ("memlock", -1), ("nofile", 1024))},
        {"restart_policy": ""},
        {"exit_code": 0, "started_at": "2027", "restart_count": 3},
    ],
    ids=[
        "order of env",
        "env of the image",
        "order of devices",
        "order of ulimits",
        "limits of the engine",
        "no policy",
        "its life",
    ],
)
def test_what_means_the_same_is_no_change(same: dict[str, Any]) -> None:
    assert () == changes(WANTED, replace(FOUND, **same))


def test_the_entrypoint_and_shm_of_the_image_are_no_change_where_the_spec_has_none() -> None:
    plain = gang()
    live = container(plain, entrypoint=("llama-server",), shm_bytes=64 * 2**20)
    assert () == changes(plain.ranks[0].container, live)


def test_argv_shows_only_the_words_that_went_and_came() -> None:
    old, new = gang("a", ("n1",), "serve", "--ctx", "512"), gang("a", ("n1",), "serve", "--ctx", "1024", "--jinja")
    assert (FieldChange("argv", "--ctx 512", "--ctx 1024 --jinja"),) == changes(new.ranks[0].container, container(old))


def test_argv_in_another_order_shows_both_lines() -> None:
    old, new = gang("a", ("n1",), "x", "y"), gang("a", ("n1",), "y", "x")
    assert (FieldChange("argv", "x y", "y x"),) == changes(new.ranks[0].container, container(old))


def test_argv_with_a_word_more_of_the_same_shows_both_lines() -> None:
    old, new = gang("a", ("n1",), "x", "-v"), gang("a", ("n1",), "x", "-v", "-v")
    assert (FieldChange("argv", "x -v", "x -v -v"),) == changes(new.ranks[0].container, container(old))


def test_an_env_variable_that_the_spec_took_away_is_a_change() -> None:
    old, new = gang(container={"env": (("A", "1"), ("B", "2"))}), gang(container={"env": (("A", "1"),)})
    assert (FieldChange("env.B", "2", None),) == changes(new.ranks[0].container, container(old))


SECRETS: list[tuple[str, object, object, FieldChange]] = [
    ("another secret", SecretRef("env:OLD"), TOKEN, FieldChange("env.T", "secret env:OLD", "secret env:HF_TOKEN")),
    (
        "a plain value that becomes a secret",
        "hunter2",
        TOKEN,
        FieldChange("env.T", "a value, not shown", "secret env:HF_TOKEN"),
    ),
    (
        "a secret that becomes a plain value",
        TOKEN,
        "hunter2",
        FieldChange("env.T", "secret env:HF_TOKEN", "a value, not shown"),
    ),
    ("a new secret", None, TOKEN, FieldChange("env.T", None, "secret env:HF_TOKEN")),
    ("a secret taken away", TOKEN, None, FieldChange("env.T", "secret env:HF_TOKEN", None)),
]


@pytest.mark.parametrize(("what", "old", "new", "expected"), SECRETS, ids=[row[0] for row in SECRETS])
def test_a_change_of_a_secret_is_named_and_never_shown(
    what: str, old: object, new: object, expected: FieldChange
) -> None:
    before, after = (gang(container={"env": (("T", value),) if value else ()}) for value in (old, new))
    assert (expected,) == changes(after.ranks[0].container, container(before)), what


def test_the_same_digest_under_another_name_is_no_change() -> None:
    wanted = gang(image=pin("a", "mirror.lan/engine"))
    found = container(gang(image=pin("a", "ghcr.io/owner/engine")))
    assert () == changes(wanted.ranks[0].container, found)
    assert found.owner is not None
    assert found.owner.fingerprint == wanted.ranks[0].fingerprint


def test_a_new_digest_is_a_change_from_one_reference_to_the_other() -> None:
    expected = FieldChange("image", f"ghcr.io/owner/engine@{digest('a')}", f"ghcr.io/owner/engine@{digest('b')}")
    assert (expected,) == changes(gang(image=pin("b")).ranks[0].container, container(gang()))


def test_a_container_recreated_from_other_content_is_a_change() -> None:
    found = container(gang(), image_id="sha256:other")
    assert (FieldChange("image", "content sha256:other", "content sha256:n1-aaaaaaaaaaaa"),) == changes(
        gang().ranks[0].container, found
    )


def test_a_foreign_container_differs_at_least_in_its_image() -> None:
    assert "image" == changes(WANTED, foreign())[0].field


def test_one_digest_under_different_docker_ids_on_two_nodes_is_no_step() -> None:
    pair = gang("a", ("n1", "n2"))
    seen = world(pair)
    ids = {item.image_id for state in seen.nodes for item in (seen.facts(state) or facts()).containers}
    assert 2 == len(ids)
    assert () == plan(desired(pair), seen).steps


def test_two_image_stores_that_name_one_content_differently_are_no_step() -> None:
    """The classic store names an image by its config, the containerd store by its manifest or index."""
    pair = gang("a", ("n1", "n2"))
    made = {"n1": "sha256:config", "n2": digest("a")}
    found: dict[str, Container] = {}
    for one in pair.ranks:
        marks = labels(FLEET, pair, one, 1, "op", made[one.node])
        found[one.node] = replace(container(pair, one.index, owner=owner_of(marks)), image_id=made[one.node])
    seen = observed(facts("n1", found["n1"], store="classic"), facts("n2", found["n2"]))
    assert () == plan(desired(pair), seen).steps


def test_changed_mounts_come_by_their_target() -> None:
    targets = [f"/{letter}" for letter in "qwertyuiop"]
    wanted = gang(container={"mounts": tuple(Mount("/s", target) for target in targets)})
    expected = [f"mount {target}" for target in sorted(targets)]
    assert expected == [change.field for change in changes(wanted.ranks[0].container, container(gang()))]


def test_changes_come_in_one_order_however_much_differs() -> None:
    wanted: ContainerSpec = WANTED
    fields = [change.field for change in changes(wanted, foreign(gpus=3, network_mode="bridge"))]
    expected = ["image", "entrypoint", "argv", "env.A", "env.B", "mount /m", "devices", "shm_size", "ulimits"]
    assert [*expected, "gpus", "network"] == fields
