"""What holds for every input: a spec or located faults, and no dependence on how it is written."""

import json
import random
import tempfile
from pathlib import Path
from typing import Any

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from specs import Spec, SpecErrors, load
from specs.scalars import Mode, to_data
from specs.tree import Tree
from specs.yaml_tree import Reader
from tests.unit.specs.helpers import BASE, edited, faults, loaded, write

VALID = (Path(__file__).parent / "golden" / "valid.yaml").read_text()

# Pieces that YAML and a spec give a meaning, so that random text reaches more than the parser's first line.
PIECES = [
    "fleet: ", "lab", "nodes:", "lanes:", "clusters:", "models:", "placements:", "include:", "registries:",
    '\n', '\n  ', '\n    ', '\n- ', " ", ": ", "- ", "{", "}", "[", "]", ",", "&a ", "*a", "!!python/x ",
    "<<: ", "?", "|", ">", "#", "'", '"', "\\", '\t', "---", "...", "%YAML 1.1", "yes", "010", "1e3", "~",
    "null", '\x00', '\x85', '\u2028', '\ufeff', "@", "`", "0x", "é", "😀", "ssh: ", "host: ", "env: ", "args: ",
    "health: ", "secret: ", "nodes: [a, a]", "{paths.x}", "9" * 50, '\r\n', '\r', "\\ud800", "\\x00", "*.yaml",
    "[fleet.yaml]", "-1", ".inf", "1:30", "!",
]  # fmt: skip


def _outcome(data: bytes) -> Spec | SpecErrors:
    """Load a file with this content; every fault found must lie inside of the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.yaml"
        path.write_bytes(data)
        try:
            return load(path)
        except SpecErrors as errors:
            found = errors
    _check(found, path, data)
    return found


def _check(errors: SpecErrors, path: Path, data: bytes) -> None:
    lines = data.decode("utf-8-sig", "replace").splitlines()
    assert errors.diagnostics
    for d in errors.diagnostics:
        assert path == d.path
        assert 1 <= d.line <= len(lines) + 1
        assert d.column >= 1
        assert d.summary
        json.dumps(d.to_dict())


# No deadline on an example: a busy machine makes no property false.
@settings(deadline=None)
@given(st.text())
@example("\ufeff")
@example("%")
@example("- \n-")
@example("a: &x\nb: *x")
def test_any_text_is_a_spec_or_faults(text: str) -> None:
    _outcome(text.encode("utf-8", "surrogatepass"))


@settings(deadline=None)
@given(st.binary())
def test_any_bytes_are_a_spec_or_faults(data: bytes) -> None:
    _outcome(data)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_any_mix_of_the_pieces_of_a_spec_is_a_spec_or_faults(text: str) -> None:
    _outcome(text.encode())


@settings(max_examples=400, deadline=None)
@given(st.integers(0, len(VALID)), st.integers(0, 20), st.sampled_from(PIECES))
def test_any_edit_of_a_valid_spec_is_a_spec_or_faults(at: int, cut: int, piece: str) -> None:
    _outcome((VALID[:at] + piece + VALID[at + cut :]).encode())


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
VALUES = st.recursive(LEAVES, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=5), v, max_size=3))


def _leaves(data: Any, loc: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [loc, *(leaf for key, child in children for leaf in _leaves(child, (*loc, key)))]


PARSED: Any = yaml.safe_load(VALID)
LOCATIONS = _leaves(PARSED)[1:]


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(LOCATIONS), VALUES)
def test_any_value_anywhere_is_a_spec_or_faults(loc: tuple[Any, ...], value: Any) -> None:
    data = json.loads(json.dumps(PARSED))
    parent = data
    for part in loc[:-1]:
        parent = parent[part]
    parent[loc[-1]] = value
    _outcome(yaml.safe_dump(data, allow_unicode=True).encode("utf-8", "surrogatepass"))


def _shuffled(data: Any, source: random.Random) -> Any:
    if isinstance(data, dict):
        keys = list(data)
        source.shuffle(keys)
        return {key: _shuffled(data[key], source) for key in keys}
    return [_shuffled(item, source) for item in data] if isinstance(data, list | tuple) else data


@settings(max_examples=50, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_keys_changes_nothing(source: random.Random) -> None:
    text = json.dumps(_shuffled(PARSED, source))
    shuffled, plain = _outcome(text.encode()), _outcome(json.dumps(PARSED).encode())
    assert isinstance(shuffled, Spec)
    assert isinstance(plain, Spec)
    assert plain.fingerprint == shuffled.fingerprint
    assert plain.lanes == shuffled.lanes


def _tree(text: str) -> Tree:
    with tempfile.TemporaryDirectory() as folder:
        return Reader([]).read(write(Path(folder), text))


# What a plain scalar can be made of without meaning something else to YAML.
PLAIN = st.text(st.sampled_from("abcxyzYESNOonftrue0123456789._+-/=~:"), min_size=1, max_size=12).filter(
    lambda text: text[0] not in "-:" and text[-1] != ":" and text not in {"~", "null"}
)


@settings(deadline=None)
@given(PLAIN)
@example("010")
@example("1e3")
@example("yes")
@example("0x1F")
@example("1.10")
@example(".inf")
@example("=")
def test_env_keeps_any_plain_scalar_as_written(text: str) -> None:
    assert {"k": text} == to_data(_tree(f"k: {text}\n"), {"*": Mode.TEXT}, [])


@settings(deadline=None)
@given(PLAIN)
def test_an_argument_prints_as_it_was_written_or_is_a_value_of_its_own(text: str) -> None:
    found: list[Any] = []
    data = to_data(_tree(f"k: {text}\n"), Mode.JSON, found)
    assert isinstance(data, dict)
    value = data["k"]
    assert found or isinstance(value, bool | int) or str(value) == text


@settings(max_examples=50, deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20))
def test_env_keeps_any_quoted_text(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        env = edited(("nodes: 2", f"nodes: 2\n    env: {{K: {json.dumps(text)}}}"))
        if any(c > "\uffff" for c in text):  # JSON writes it as a pair of surrogates, which YAML does not have
            assert faults(Path(folder), env)
        else:
            assert {"K": text} == loaded(Path(folder), env).lanes["duo"].env


def test_the_base_of_these_properties_is_valid() -> None:
    assert isinstance(_outcome(VALID.encode()), Spec)
    assert isinstance(_outcome(BASE.encode()), Spec)
