"""Logins from Docker's configuration."""

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest

from reconciler.images import logins
from reconciler.images.logins import FoundLogin, Login, find_login


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    return tmp_path


def write(folder: Path, config: Any) -> None:
    (folder / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))


def helper(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / f"docker-credential-{name}"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def auth(text: str) -> dict[str, str]:
    return {"auth": base64.b64encode(text.encode()).decode()}


@pytest.mark.parametrize(
    ("key", "registry"),
    [
        ("ghcr.io", "ghcr.io"),
        ("https://ghcr.io", "ghcr.io"),
        ("https://ghcr.io/v2/", "ghcr.io"),
        ("registry.lan:5000", "registry.lan:5000"),
        ("https://index.docker.io/v1/", "docker.io"),
        ("docker.io", "docker.io"),
    ],
)
def test_a_login_is_found_under_any_form_of_its_host(folder: Path, key: str, registry: str) -> None:
    write(folder, {"auths": {"other.io": auth("no:no"), key: auth("me:pass:word")}})
    assert FoundLogin(Login("me", "pass:word")) == find_login(registry)
    assert FoundLogin() == find_login("quay.io")


def test_an_identity_token_is_a_login(folder: Path) -> None:
    write(folder, {"auths": {"x.azurecr.io": {**auth("00000000:"), "identitytoken": "abc"}}})
    assert Login("00000000", "", "abc") == find_login("x.azurecr.io").login


def test_no_configuration_is_no_login(folder: Path) -> None:
    assert FoundLogin() == find_login("ghcr.io")


@pytest.mark.parametrize("text", ["{", "[]", '{"auths": []}', '{"auths": {"ghcr.io": {"auth": "x"}}}'])
def test_a_broken_configuration_is_no_login(folder: Path, text: str) -> None:
    write(folder, text)
    assert find_login("ghcr.io").login is None


def test_why_a_login_cannot_be_read_is_told_without_it(folder: Path) -> None:
    write(folder, {"auths": {"ghcr.io": {"auth": base64.b64encode(b"\xff\xfesecret").decode()}}})
    assert FoundLogin(None, f"{folder}/config.json: the login for ghcr.io is not readable") == find_login("ghcr.io")


def test_a_helper_is_asked_for_its_registry(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = 'read server\necho "{\\"Username\\": \\"me\\", \\"Secret\\": \\"$1 $server\\"}"'
    helper(folder, "mine", script, monkeypatch)
    write(folder, {"credHelpers": {"ghcr.io": "mine"}, "auths": {"quay.io": auth("other:one")}})
    assert FoundLogin(Login("me", "get ghcr.io")) == find_login("ghcr.io")
    assert FoundLogin(Login("other", "one")) == find_login("quay.io")


def test_the_helper_for_all_knows_docker_hub_by_its_old_url(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = 'read server\necho "{\\"Username\\": \\"<token>\\", \\"Secret\\": \\"$server\\"}"'
    helper(folder, "all", script, monkeypatch)
    write(folder, {"credsStore": "all", "auths": {"https://index.docker.io/v1/": {}}})
    assert FoundLogin(Login("", "", "https://index.docker.io/v1/")) == find_login("docker.io")


@pytest.mark.parametrize(
    ("script", "remark"),
    [
        ("echo 'credentials not found in native keychain'; exit 1", ""),
        ("echo no; exit 3", "docker-credential-bad failed with exit code 3"),
        ("echo '<html>'", "docker-credential-bad answered with something that is no login"),
        ("exec sleep 60", "docker-credential-bad gave no answer within 0 s"),
        ("sleep 60 & wait", "docker-credential-bad gave no answer within 0 s"),
    ],
)
def test_a_helper_without_a_login(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str, remark: str) -> None:
    monkeypatch.setattr(logins, "HELPER_S", 0.3)
    helper(folder, "bad", script, monkeypatch)
    write(folder, {"credsStore": "bad"})
    began = time.monotonic()
    assert FoundLogin(None, remark) == find_login("ghcr.io")
    assert time.monotonic() - began < 30  # not as long as what it started


def test_a_helper_that_is_not_installed_leaves_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    write(folder, {"credsStore": "gone", "auths": {"ghcr.io": auth("me:secret")}})
    assert FoundLogin(Login("me", "secret"), "docker-credential-gone: no such file or directory") == find_login(
        "ghcr.io"
    )


def test_a_helper_is_a_name_and_no_path(folder: Path) -> None:
    write(folder, {"credsStore": "../../bin/sh"})
    assert find_login("ghcr.io").login is None
    assert "a name that is none" in find_login("ghcr.io").remark


def test_a_login_shows_no_secret() -> None:
    assert "Login(username='me')" == repr(Login("me", "secret", "token"))
