"""A loaded spec: look-ups, the fingerprint, and what it keeps to itself."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from specs import Lane, Model, Node, Parallel, Place, Placement, Secret, Spec, Ssh
from tests.unit.specs.helpers import BASE, DIGEST, edited, loaded


@pytest.mark.parametrize(
    ("expected", "fields"),
    [
        (1, {}),
        (3, {"nodes": 3}),
        (8, {"parallel": Parallel(tensor=4, pipeline=2)}),
        (8, {"parallel": Parallel(tensor=4, data=2, expert=8)}),
        (2, {"nodes": 2, "parallel": Parallel(tensor=8)}),
    ],
)
def test_a_lane_says_how_many_nodes_it_takes(expected: int, fields: dict[str, object]) -> None:
    lane = Lane.model_validate({"engine": "vllm", "image": DIGEST, **fields})
    assert expected == lane.node_count


def test_a_placement_takes_the_first_nodes_of_its_cluster(tmp_path: Path) -> None:
    spec = loaded(tmp_path, edited(("cluster: pair", "cluster: trio")))
    assert ("n1", "n2") == spec.nodes_of(spec.placements[0])


def test_a_placement_takes_the_nodes_it_names_in_its_order(tmp_path: Path) -> None:
    spec = loaded(tmp_path, edited(("cluster: pair", "cluster: pair, nodes: [n2, n1]")))
    assert ("n2", "n1") == spec.nodes_of(spec.placements[0])


def test_a_node_expands_its_paths(tmp_path: Path) -> None:
    assert "/m/x" == loaded(tmp_path, BASE).nodes["n1"].expand("{paths.models}/x")


def test_a_spec_knows_where_its_values_were_written(tmp_path: Path) -> None:
    spec = loaded(tmp_path, BASE)
    assert Place(tmp_path / "fleet.yaml", 13, 13) == spec.place("lanes", "duo", "engine")


def test_a_value_nobody_wrote_is_placed_at_the_nearest_thing_around_it(tmp_path: Path) -> None:
    spec = loaded(tmp_path, BASE)
    assert Place(tmp_path / "fleet.yaml", 13, 5) == spec.place("lanes", "duo", "health", "boot")


def test_a_spec_can_be_made_without_files() -> None:
    spec = Spec(fleet="lab", nodes={"n": Node(ssh=Ssh(host="h"), platform="linux/amd64")})
    assert (Path(), ()) == (spec.root, spec.files)
    assert spec.fingerprint.startswith("sha256:")
    assert Place(Path()) == spec.place("nodes", "n")


SAME: dict[str, list[tuple[str, str]]] = {
    "comments": [("nodes:\n", "# a comment\nnodes: # another\n")],
    "the order of keys": [("nodes: [n1, n2], interface: f0", "interface: f0, nodes: [n1, n2]")],
    "a default written out": [("host: n1.lan", "host: n1.lan, port: 22")],
    "another way to write a size": [("64GiB", "65536MiB")],
    "quotes": [("vllm", '"vllm"')],
}

OTHER: dict[str, list[tuple[str, str]]] = {
    "the name of the fleet": [("fleet: lab", "fleet: lab2")],
    "the order of nodes": [("[n1, n2]", "[n2, n1]")],
    "a digest": [("ab" * 32, "cd" * 32)],
    "an env": [("nodes: 2", "nodes: 2\n    env: {A: b}")],
    "the type of an arg": [("nodes: 2", 'nodes: 2\n    args: {a: "1"}'), ("model: m\n", "model: m\n")],
    "a key file": [("host: n1.lan", "host: n1.lan, identity_file: x")],
    "a placement": [("  - {lane: duo, cluster: pair}", "  []")],
}


@pytest.mark.parametrize("edits", SAME.values(), ids=SAME.keys())
def test_the_fingerprint_does_not_depend_on_how_it_is_written(tmp_path: Path, edits: list[tuple[str, str]]) -> None:
    assert loaded(tmp_path, BASE).fingerprint == loaded(tmp_path, edited(*edits)).fingerprint


def test_the_fingerprint_depends_on_everything_that_is_said(tmp_path: Path) -> None:
    texts = [BASE, *(edited(*edits) for edits in OTHER.values())]
    assert len(texts) == len({loaded(tmp_path, text).fingerprint for text in texts})


def test_the_fingerprint_is_the_same_in_another_checkout(tmp_path: Path) -> None:
    text = edited(("host: n1.lan", "host: n1.lan, identity_file: ../keys/id, known_hosts: kh"))
    assert loaded(tmp_path / "a", text).fingerprint == loaded(tmp_path / "b/c", text).fingerprint


def test_the_fingerprint_of_the_canonical_form_is_stable(tmp_path: Path) -> None:
    # A change here makes every fleet see a changed spec after an upgrade: raise CANONICAL_VERSION if it must be.
    assert (
        "sha256:ed51084964ec0af079385494408346a3e563cfb82fd334d2c33534f8b61be397" == loaded(tmp_path, BASE).fingerprint
    )


def test_models_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Ssh(host="h").port = 23


def test_models_take_python_values_of_the_right_type_only() -> None:
    with pytest.raises(ValidationError):
        Ssh.model_validate({"host": "h", "port": "22"})


def test_an_error_of_a_model_repeats_no_value() -> None:
    with pytest.raises(ValidationError) as caught:
        Secret(secret="hf_s3cr3t")
    assert "s3cr3t" not in str(caught.value)


def test_a_secret_shows_only_where_it_is() -> None:
    assert "Secret(secret='env:HF_TOKEN')" == repr(Secret(secret="env:HF_TOKEN"))


def test_equal_content_is_equal_wherever_it_was_read(tmp_path: Path) -> None:
    assert loaded(tmp_path / "a", BASE) == loaded(tmp_path / "b", BASE)


def test_the_default_probe_wants_any_answer() -> None:
    (probe,) = Lane.model_validate({"engine": "vllm", "image": DIGEST}).health.probes
    assert (True, None, None) == (bool(probe.chat), probe.expect, probe.expect_regex)


def test_a_model_needs_its_files() -> None:
    with pytest.raises(ValidationError, match="needs `repo` or `path`"):
        Model()


def test_a_placement_without_nodes_is_short() -> None:
    assert None is Placement(lane="a", cluster="b").nodes
