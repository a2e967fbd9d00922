"""What all tests share."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees the images that another test, or the user, keeps."""
    vault = tmp_path / "vault"
    monkeypatch.setenv("FLEET_VAULT", str(vault))
    return vault
