"""Secrets are resolved whole, or not at all: the message has the reference and never the value."""

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.core.desired import ContainerSpec, SecretRef
from reconciler.execution.secrets import SecretError, resolve
from tests.unit.core.build import spec


def wanting(reference: str) -> ContainerSpec:
    return replace(spec("a"), env=(("TOKEN", SecretRef(reference)),))


def test_a_file_is_taken_without_its_last_line_end(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(b"one\r\ntwo\n\n")
    assert {f"file:{path}": "one\r\ntwo\n"} == resolve(wanting(f"file:{path}"))


@pytest.mark.parametrize(("content", "reason"), [(b"hush\0hush", "NUL"), (b"hush\xff", "not UTF-8 text")])
def test_what_no_variable_of_a_container_can_hold_is_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(SecretError, match=reason) as refused:
        resolve(wanting(f"file:{path}"))
    assert "hush" not in str(refused.value)


def test_a_variable_that_is_no_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "hush\udcff")
    with pytest.raises(SecretError, match="not UTF-8 text") as refused:
        resolve(wanting("env:TOKEN"))
    assert "hush" not in str(refused.value)
