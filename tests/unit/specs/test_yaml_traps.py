"""What YAML lets slip, a spec refuses: with the place, and with what to do."""

from pathlib import Path

import pytest

from specs import SpecErrors, load
from specs.source import MAX_FILE_BYTES
from specs.yaml_tree import MAX_DEPTH, MAX_VALUES
from tests.unit.specs.helpers import BASE, edited, errors, faults, loaded, messages, write

TRAPS = {
    "a duplicate key at the top": ("2:1: the key 'fleet' is set twice", "fleet: lab\nfleet: lab\n"),
    "a duplicate key deep inside": (
        "4:30: the key 'port' is set twice",
        "fleet: lab\nnodes:\n  n1:\n    ssh: {host: h, port: 22, port: 23}\n    platform: linux/arm64\n",
    ),
    "a duplicate key in quotes": ("2:1: the key 'fleet' is set twice", 'fleet: lab\n"fleet": lab\n'),
    "a merge key": (
        "2:9: merge keys ('<<') are not supported",
        "fleet: lab\nnodes: {<<: {a: b}}\n",
    ),
    "an alias without its anchor": ("2:8: nothing is named '&gone' above", "fleet: lab\nnodes: *gone\n"),
    "an alias inside of its own value": (
        "2:15: '*x' stands inside the value it repeats",
        "fleet: lab\nnodes: &x {a: *x}\n",
    ),
    "a Python tag": (
        "1:8: the tag 'tag:yaml.org,2002:python/name:os.system' is not supported",
        "fleet: !!python/name:os.system lab\n",
    ),
    "a tag on a scalar": ("1:8: the tag 'tag:yaml.org,2002:str' is not supported", "fleet: !!str lab\n"),
    "a local tag": ("1:8: the tag '!vault' is not supported", "fleet: !vault lab\n"),
    "a second document": ("2:1: a second document starts here", "fleet: lab\n---\nfleet: lab\n"),
    "a number as a key": ("2:9: the key 7 is not text", "fleet: lab\nnodes: {7: {}}\n"),
    "true as a key": ("2:9: the key true is not text", "fleet: lab\nnodes: {true: {}}\n"),
    "null as a key": ("2:9: the key null is not text", "fleet: lab\nnodes: {null: {}}\n"),
    "a key without text": ("3:4: the key without a name is not text", "fleet: lab\nnodes:\n  ?\n  : x\n"),
    "a list as a key": ("2:1: a key is text, found a list or a mapping", "fleet: lab\n[a, b]: x\n"),
    "a mapping as a key": ("2:3: a key is text, found a list or a mapping", "fleet: lab\n? {a: b}\n: x\n"),
    "a tab as indentation": ("3:1: a tab in the indentation", "fleet: lab\nnodes:\n\tn1: x\n"),
    "a tab after spaces": ("4:3: a tab in the indentation", "fleet: lab\nnodes:\n  n1:\n  \tssh: {}\n"),
    "a value with a colon": (
        "1:9: not valid YAML: mapping values are not allowed in this context",
        "fleet: a: b\n",
    ),
    "a list that is not closed": (
        "2:1: not valid YAML: did not find expected ',' or ']'",
        "fleet: [lab\n",
    ),
    "an unquoted at sign": (
        "1:8: not valid YAML: found character that cannot start any token",
        "fleet: @lab\n",
    ),
    "an empty file": ("1:1: the file is empty", ""),
    "only comments": ("1:1: the file is empty", "# nothing\n"),
    "a list at the top": ("1:1: a spec is a mapping, found a list", "- fleet\n"),
    "text at the top": ("1:1: a spec is a mapping, found text", "fleet\n"),
    "a byte that is not UTF-8": ("2:4: the byte 0xFF is not UTF-8", "fleet: lab\n# ä".encode() + b"\xff\n"),
    "UTF-16": ("1:1: the file is UTF-16", "fleet: lab\n".encode("utf-16")),
    "a control character": ("1:11: the file holds the control character U+0007", "fleet: lab\x07\n"),
    "an escaped NUL": ("1:8: the text holds a NUL character", 'fleet: "lab\\0"\n'),
    "half of a surrogate pair": (
        "1:11: not valid YAML: found invalid Unicode character escape code",
        'fleet: "\\ud800"\n',
    ),
    "a leading zero": (
        "2:34: 010 can be read as a decimal number, an octal number or text",
        "fleet: lab\nnodes: {n: {ssh: {host: h, port: 010}, platform: linux/arm64}}\n",
    ),
    "a number without an end": (
        "2:35: the number is too long",
        f"fleet: lab\nnodes: {{n: {{ssh: {{host: h, port:  {'9' * 5000}}}, platform: linux/arm64}}}}\n",
    ),
}


@pytest.mark.parametrize(("expected", "text"), TRAPS.values(), ids=TRAPS.keys())
def test_a_trap_is_refused_at_its_place(tmp_path: Path, expected: str, text: str | bytes) -> None:
    assert [expected] == faults(tmp_path, text)


@pytest.mark.parametrize("text", [BASE.replace("\n", "\r\n"), "\ufeff" + BASE, "---\n" + BASE + "...\n"])
def test_line_ends_byte_order_marks_and_document_marks_make_no_difference(tmp_path: Path, text: str) -> None:
    assert loaded(tmp_path, BASE).fingerprint == loaded(tmp_path, text).fingerprint


def test_places_are_right_behind_a_byte_order_mark_and_with_crlf(tmp_path: Path) -> None:
    assert ["2:1: unknown key 'x'"] == faults(tmp_path, b"\xef\xbb\xbffleet: lab\r\nx: 1\r\n")


def test_columns_count_characters_not_bytes(tmp_path: Path) -> None:
    text = 'fleet: lab\nlanes: {"ä€😀": {engine: [], image: "' + "sha256:" + "a" * 64 + '"}}\n'
    expected = ["2:9: lanes: 'ä€😀' is not a name", "2:25: lanes.ä€😀.engine: wants text, found a list"]
    assert expected == faults(tmp_path, text)


def test_an_alias_repeats_a_value(tmp_path: Path) -> None:
    text = edited(("interfaces: {f0: {name: e0, address: 10.0.0.1}}, paths: {models: /m}", "paths: &p {models: /m}"))
    text = edited(("n3.lan}, platform", "n3.lan}, paths: *p, platform"), (", interface: f0", ""), text=text)
    assert {"models": "/m"} == loaded(tmp_path, text).nodes["n3"].paths


def test_aliases_that_explode_are_refused_quickly(tmp_path: Path) -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 30)]
    (line,) = [row for row in faults(tmp_path, "\n".join(rows)) if "too large" in row]
    assert "6:25: the spec is too large" == line
    assert f"A spec has at most {MAX_VALUES} keys and values" in messages(tmp_path, "\n".join(rows))


def test_aliases_that_build_depth_are_refused(tmp_path: Path) -> None:
    rows = ["a0: &a0 [x]", *(f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 100))]
    assert f"64:12: nested more than {MAX_DEPTH} levels deep" in faults(tmp_path, "\n".join(rows))


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_deep_nesting_is_refused_not_followed(tmp_path: Path, opening: str) -> None:
    (fault,) = errors(tmp_path, "fleet: lab\nnodes:\n  " + opening * 100_000).diagnostics
    assert "nest" in fault.summary  # libyaml has a bound of its own, which a row of brackets meets first


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    assert ["1:1: the file is too large"] == faults(tmp_path, "#" * (MAX_FILE_BYTES + 1))


def test_a_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    assert "lab" == loaded(tmp_path, BASE.ljust(MAX_FILE_BYTES, "#")[:MAX_FILE_BYTES]).fleet


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(SpecErrors) as caught:
        load(tmp_path / "fleet.yaml")
    assert f"{tmp_path}/fleet.yaml: the file cannot be read: no such file or directory" == str(caught.value)


def test_a_broken_flow_mapping_says_what_may_be_missing(tmp_path: Path) -> None:
    """As often a forgotten brace or comma as a colon in a text."""
    told = messages(tmp_path, "fleet: lab\nnodes: {n: {ssh: {host: h user: ops}}}\n")
    assert told.endswith("quote text that holds ': ', or add the ',' or '}' that is missing before it")
    assert messages(tmp_path, "fleet: lab\nnodes: a: b\n").endswith("quote text that holds ': '")


def test_a_folder_is_no_spec(tmp_path: Path) -> None:
    with pytest.raises(SpecErrors, match="is a folder, not a file"):
        load(tmp_path)


def test_a_device_is_no_spec() -> None:
    with pytest.raises(SpecErrors, match="is not a regular file"):
        load(Path("/dev/zero"))


def test_an_unreadable_file_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = write(tmp_path, BASE)
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(SpecErrors, match="the file cannot be read: permission denied"):
        load(path)


def test_a_path_no_file_can_have_says_so() -> None:
    with pytest.raises(SpecErrors, match="the file cannot be read"):
        load(Path("a\0b"))


def test_two_traps_in_one_file_are_both_reported(tmp_path: Path) -> None:
    text = edited(("fleet: lab", "fleet: lab\nfleet: lab"), ("engine: vllm", "engine: !x vllm"))
    assert ["2:1: the key 'fleet' is set twice", "14:13: the tag '!x' is not supported"] == faults(tmp_path, text)
