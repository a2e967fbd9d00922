"""Helper processes are given what `ssh` needs, and none of the secrets that this process was given."""

import pytest

from reconciler.nodes.child_env import child_environment


def test_what_ssh_needs_is_kept_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "poison-1234")
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    monkeypatch.delenv("KRB5CCNAME", raising=False)
    kept = child_environment()
    assert ("/usr/bin", "/run/agent") == (kept["PATH"], kept["SSH_AUTH_SOCK"])
    assert "HF_TOKEN" not in kept
    assert "KRB5CCNAME" not in kept
