"""What all tests share."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees the images that another test, or the user, keeps."""
    vault = tmp_path / "vault"
    monkeypatch.setenv("FLEET_VAULT", str(vault))
    return vault


@pytest.fixture(autouse=True)
def own_secret_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test marks secrets with the key of another test, or of the user."""
    path = tmp_path / "settings" / "secret.key"
    monkeypatch.setenv("FLEET_SECRET_KEY_FILE", str(path))
    return path


@pytest.fixture(autouse=True)
def own_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each spec of a test has its state beside it, whatever the user keeps elsewhere."""
    monkeypatch.delenv("FLEET_STATE", raising=False)
