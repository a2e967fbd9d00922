"""What a user sees of a spec with many faults, whole."""

from pathlib import Path

import pytest

from specs import SpecErrors, load

GOLDEN = Path(__file__).parent / "golden"


def test_all_faults_of_a_spec_are_shown_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(GOLDEN)
    with pytest.raises(SpecErrors) as caught:
        load(Path("broken.yaml"))
    assert (GOLDEN / "broken.txt").read_text() == f"{caught.value}\n"


def test_the_example_with_every_key_is_valid() -> None:
    spec = load(GOLDEN / "valid.yaml")
    assert ("dgx2", "dgx1") == spec.nodes_of(spec.placements[0])
