"""`checks: {silence: ...}`: what is let pass names a reason and a last day."""

from pathlib import Path

import pytest

import specs
from reconciler.engines import desired_fleet

BASE = "fleet: lab\n"


def load(folder: Path, text: str) -> specs.Spec:
    path = folder / "fleet.yaml"
    path.write_text(BASE + text, encoding="utf-8")
    return specs.load(path)


def test_a_silence_is_of_everywhere_unless_it_says_where(tmp_path: Path) -> None:
    text = "checks:\n  silence:\n    - {check: hca, reason: card is replaced, until: 2026-12-24}\n"
    (found,) = load(tmp_path, text).checks.silence
    assert ("hca", "*", "card is replaced", "2026-12-24") == (
        found.check,
        found.address,
        found.reason,
        found.until.isoformat(),
    )


def test_it_reaches_what_is_desired(tmp_path: Path) -> None:
    text = 'checks: {silence: [{check: "model-*", address: "dgx*", reason: why, until: 2026-12-24}]}\n'
    (found,) = desired_fleet(load(tmp_path, text)).silences
    assert ("model-*", "dgx*", "why", "2026-12-24") == (found.check, found.address, found.reason, found.until)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("{check: hca, until: 2026-12-24}", "reason"),
        ("{check: hca, reason: why}", "until"),
        ("{check: hca, reason: why, until: soon}", "'soon' is not a day"),
        ("{check: hca, reason: why, until: 24.12.2026}", "It is year, month and day: 2026-12-24"),
        ("{check: hca, reason: why, until: 20261224}", "wants a day such as 2026-12-24"),
        ("{check: hca, reason: why, until: 2026-12-24, address: dgx7}", "no node is named 'dgx7'"),
        ("{check: hca, reason: why, until: 2026-12-24, address: pair/qwen}", "no lane is named 'qwen'"),
        ("{check: hca, reason: why, until: 2026-13-01}", "until"),
        ("{check: hca, reason: why, until: 2026-12-24, node: x}", "node"),
        ('{check: hca, reason: " ", until: 2026-12-24}', "reason: must not be blank"),
        ('{check: hca, reason: "", until: 2026-12-24}', "reason"),
    ],
    ids=[
        "no reason",
        "no day",
        "not a day",
        "day first",
        "a number",
        "no such node",
        "no such lane",
        "no such month",
        "unknown key",
        "blank reason",
        "empty reason",
    ],
)
def test_what_is_missing_or_wrong_is_told_with_its_place(tmp_path: Path, item: str, expected: str) -> None:
    with pytest.raises(specs.SpecErrors, match=expected) as raised:
        load(tmp_path, f"checks: {{silence: [{item}]}}\n")
    assert 2 == raised.value.diagnostics[0].place.line
