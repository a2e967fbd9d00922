"""An engine may print what it was given: what is shown of it has no secret in it."""

from pathlib import Path

import pytest

from reconciler.core.desired import ContainerSpec, ImagePin, SecretRef
from reconciler.execution.secrets import hider

PIN = ImagePin("x@sha256:1", "sha256:1", "digest")


def hidden(text: str, **env: str) -> str:
    spec = ContainerSpec(PIN, (), env=tuple((key, SecretRef(value)) for key, value in env.items()))
    return hider([spec])(text)


def test_values_are_taken_out_wherever_they_stand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOKEN", "poison-1234")
    (tmp_path / "key").write_text("other-secret\n")
    text = "TOKEN=poison-1234 and other-secret, poison-1234"
    assert "TOKEN=[redacted] and [redacted], [redacted]" == hidden(text, A="env:TOKEN", B=f"file:{tmp_path}/key")


def test_a_value_within_another_leaves_nothing_of_the_longer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHORT", "secret")
    monkeypatch.setenv("LONG", "secret-and-more")
    assert "[redacted]" == hidden("secret-and-more", A="env:SHORT", B="env:LONG")


def test_short_values_and_those_that_cannot_be_had_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ON", "1")
    monkeypatch.delenv("GONE", raising=False)
    assert "exit 1" == hidden("exit 1", A="env:ON", B="env:GONE")
