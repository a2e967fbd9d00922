"""The JSON Schema accepts what `load` accepts, refuses unknown keys, and explains every key."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped] # it has no types of its own
import pytest

from specs import Spec, json_schema
from specs.scalars import resolve
from specs.tree import Mapping, Sequence, Tree
from specs.yaml_tree import Reader
from tests.unit.specs.helpers import BASE, edited, write

VALIDATOR = jsonschema.Draft202012Validator(json_schema())
GOLDEN = Path(__file__).parent / "golden"


def _parsed(tree: Tree) -> Any:
    """Return a file as an editor sees it: plain YAML 1.2."""
    if isinstance(tree, Mapping):
        return {key: _parsed(entry.value) for key, entry in tree.entries.items()}
    if isinstance(tree, Sequence):
        return [_parsed(item) for item in tree.items]
    return resolve(tree.text) if tree.plain else tree.text


def _errors(folder: Path, text: str) -> list[str]:
    return [
        "/".join(map(str, e.absolute_path))
        for e in VALIDATOR.iter_errors(_parsed(Reader([]).read(write(folder, text))))
    ]


def test_the_schema_is_of_the_dialect_it_names() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())
    assert "https://json-schema.org/draft/2020-12/schema" == json_schema()["$schema"]


@pytest.mark.parametrize("path", [GOLDEN / "valid.yaml"])
def test_valid_specs_match_the_schema(path: Path) -> None:
    assert [] == list(VALIDATOR.iter_errors(_parsed(Reader([]).read(path))))


def test_the_base_of_these_tests_matches_the_schema(tmp_path: Path) -> None:
    assert [] == _errors(tmp_path, BASE)


def test_an_included_file_matches_the_schema_too(tmp_path: Path) -> None:
    assert [] == _errors(tmp_path, 'include: ["more/*.yaml"]\nplacements: []\n')


@pytest.mark.parametrize(
    ("where", "old", "new"),
    [
        ("", "fleet: lab", "flet: lab"),
        ("nodes/n1", "gpus: 1", "gups: 1"),
        ("nodes/n1/ssh", "host: n1.lan", "host: n1.lan, x: 1"),
        ("nodes", "  n1:", "  N1:"),
        ("nodes/n1/gpus", "gpus: 1", "gpus: one"),
        ("nodes/n1/memory", "64GiB", "64G"),
        ("nodes/n1/platform", "linux/arm64", "arm64"),
        ("clusters/pair/nodes", "[n1, n2]", "[]"),
        ("clusters/trio/port", "30001", "70000"),
        ("lanes/duo/image", "ghcr.io/owner/engine@sha256:", "ghcr.io/owner/engine:"),
        ("lanes/duo/args", "nodes: 2", "args: {--x: 1}"),
        ("lanes/duo/health/boot", "nodes: 2", "health: {boot: 1:30}"),
        ("lanes/duo/env/A", "nodes: 2", "env: {A: [x]}"),
        ("lanes/duo/env/A", "nodes: 2", "env: {A: {secret: x}}"),
        ("placements/0", "cluster: pair}", "cluster: pair, node: n1}"),
        ("include/0", "fleet: lab", "fleet: lab\ninclude: [/etc/x]"),
    ],
)
def test_what_load_refuses_by_itself_the_schema_refuses_at_the_same_place(
    tmp_path: Path, where: str, old: str, new: str
) -> None:
    assert where in _errors(tmp_path, edited((old, new)))


def _objects(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield path, schema
        for key, part in schema.items():
            yield from _objects(part, f"{path}/{key}")
    elif isinstance(schema, list):
        for index, part in enumerate(schema):
            yield from _objects(part, f"{path}/{index}")


def test_every_object_is_closed() -> None:
    assert [] == [path for path, schema in _objects(json_schema()) if schema.get("additionalProperties") is not False]


def test_every_key_is_explained_and_has_a_title() -> None:
    for path, schema in _objects(json_schema()):
        for key, field in schema.get("properties", {}).items():
            assert field.get("description"), f"{path}/{key}"
            assert "title" in field or "$ref" in str(field), f"{path}/{key}"


def test_every_section_of_a_spec_is_in_the_schema() -> None:
    assert {"include", *Spec.model_fields} == set(json_schema()["properties"])


def test_each_call_returns_a_schema_of_its_own() -> None:
    json_schema()["properties"].clear()
    assert "fleet" in json_schema()["properties"]
