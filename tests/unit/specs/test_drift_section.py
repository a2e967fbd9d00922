"""`drift: {ignore: ...}` and `nodes.X.off`: what is let pass, and what nobody waits for."""

from pathlib import Path

import pytest

import specs
from reconciler.engines import desired_fleet

BASE = "fleet: lab\n"
NODE = "nodes:\n  dgx1: {ssh: {host: a}, platform: linux/arm64%s}\n"


def load(folder: Path, text: str) -> specs.Spec:
    path = folder / "fleet.yaml"
    path.write_text(BASE + text, encoding="utf-8")
    return specs.load(path)


def test_a_rule_is_of_everywhere_unless_it_says_where_and_reaches_what_is_desired(tmp_path: Path) -> None:
    text = 'drift: {ignore: [{class: host, field: "disk*", reason: a new disk comes, until: 2026-12-24}]}\n'
    (found,) = desired_fleet(load(tmp_path, text)).ignores
    expected = ("host", "*", "disk*", "a new disk comes", "2026-12-24")
    assert expected == (found.kind, found.address, found.field, found.reason, found.until)


def test_what_is_let_pass_is_no_part_of_what_the_fingerprint_says(tmp_path: Path) -> None:
    before = load(tmp_path, "").fingerprint
    text = "drift: {ignore: [{class: host, reason: why, until: 2026-12-24}]}\n"
    assert before == load(tmp_path, text).fingerprint


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("{class: hots, reason: why, until: 2026-12-24}", "class.*did you mean 'host'"),
        ("{reason: why, until: 2026-12-24}", "`class` is missing"),
        ("{class: host, until: 2026-12-24}", "`reason` is missing"),
        ("{class: host, reason: why}", "`until` is missing"),
        ("{class: host, reason: why, until: soon}", "'soon' is not a day"),
        ("{class: host, reason: why, until: 2026-12-24, kind: host}", "unknown key 'kind'"),
        ("{class: host, reason: why, until: 2026-12-24, address: dgx7}", "no node is named 'dgx7'"),
        ("{class: host, reason: why, until: 2026-12-24, address: pair/qwen}", "no lane is named 'qwen'"),
        ("{class: host, reason: why, until: 2026-12-24, address: pair/qwen/0@dgx7}", "no node is named 'dgx7'"),
    ],
)
def test_what_is_missing_or_wrong_is_told_with_its_place(tmp_path: Path, item: str, expected: str) -> None:
    with pytest.raises(specs.SpecErrors) as raised:
        load(tmp_path, f"drift: {{ignore: [{item}]}}\n")
    told = str(raised.value)
    assert all(part in told for part in expected.split(".*")), told
    assert 2 == raised.value.diagnostics[0].place.line


def test_a_node_is_declared_off_with_a_reason(tmp_path: Path) -> None:
    off = load(tmp_path, NODE % ", off: {reason: at night, until: 2026-12-24}").nodes["dgx1"].off
    assert off is not None
    assert ("at night", "2026-12-24") == (off.reason, str(off.until))


def test_a_node_that_is_off_without_a_reason_is_refused(tmp_path: Path) -> None:
    with pytest.raises(specs.SpecErrors, match="`reason` is missing"):
        load(tmp_path, NODE % ", off: {}")
    with pytest.raises(specs.SpecErrors, match="wants a mapping"):
        load(tmp_path, NODE % ", off: true")


def test_a_spec_without_the_key_has_the_fingerprint_that_it_had(tmp_path: Path) -> None:
    before, after = load(tmp_path, NODE % "").fingerprint, load(tmp_path, NODE % ", off: {reason: why}").fingerprint
    assert "off" not in str(load(tmp_path, NODE % "").model_dump(exclude_defaults=True))
    assert before != after
