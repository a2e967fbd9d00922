"""Logins of registries, as Docker's own configuration has them (`docker login`).

A configuration that cannot be used is no error: many images need no login. Why there is none is told with the failure
of what would have needed it. Secrets are never part of a message.
"""

import base64
import binascii
import json
import os
import re
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

HELPER_S = 10.0
"""A helper may ask a key ring, or a cloud; one that waits for a person does not hold up a fleet."""

DOCKER_HUB = "docker.io"
HUB_KEY = "https://index.docker.io/v1/"
_HUB_HOSTS = frozenset({DOCKER_HUB, "index.docker.io", "registry-1.docker.io"})


@dataclass(frozen=True)
class Login:
    """Who asks. With an `identity_token` the registry gives tokens without a password."""

    username: str
    password: str = field(default="", repr=False)
    identity_token: str = field(default="", repr=False)


@dataclass(frozen=True)
class FoundLogin:
    """The login for a registry; where there is none, `remark` says why, where there is something to say."""

    login: Login | None = None
    remark: str = ""


class _Unusable(Exception):  # noqa: N818 - it becomes a remark, and never leaves this module
    """What is wrong with the configuration."""


def find_login(registry: str) -> FoundLogin:
    """The login for a registry, by its host as image references name it."""
    path = config_path()
    try:
        return _found(registry, _config(path), path)
    except FileNotFoundError:
        return FoundLogin()
    except _Unusable as error:
        return FoundLogin(remark=str(error))
    except OSError as error:
        return FoundLogin(remark=f"{path}: {(error.strerror or 'it cannot be read').lower()}")


def config_path() -> Path:
    """Where Docker keeps its configuration."""
    folder = os.environ.get("DOCKER_CONFIG")
    with suppress(RuntimeError):  # nobody's home: a bare container
        return Path(folder) / "config.json" if folder else Path.home() / ".docker" / "config.json"
    return Path("/nonexistent/config.json")


def _config(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise _Unusable(f"{path} is not JSON: no login of it is used") from None
    if not isinstance(found, dict):
        raise _Unusable(f"{path} is not an object: no login of it is used")
    return found


def _found(registry: str, config: Mapping[str, Any], path: Path) -> FoundLogin:
    """Of a helper for this registry, else of the helper for all, else of the file itself."""
    helpers = config.get("credHelpers")
    own = _by_host(helpers, registry) if isinstance(helpers, dict) else None
    helper, remark = own or config.get("credsStore"), ""
    if isinstance(helper, str) and helper:
        try:
            login = _of_helper(helper, HUB_KEY if registry in _HUB_HOSTS else registry)
        except _Unusable as error:
            login, remark = None, str(error)
        if login is not None:
            return FoundLogin(login)
    auths = config.get("auths")
    entry = _by_host(auths, registry) if isinstance(auths, dict) else None
    if not isinstance(entry, dict):
        return FoundLogin(remark=remark)
    try:
        return FoundLogin(_of_file(entry), remark)
    except (ValueError, binascii.Error):
        return FoundLogin(remark=f"{path}: the login for {registry} is not readable")


def _by_host(entries: Mapping[str, Any], registry: str) -> Any:
    """Keys may be hosts or URLs of them, with a path."""
    wanted = _HUB_HOSTS if registry in _HUB_HOSTS else frozenset({registry})
    hosts = ((urlsplit(key if "//" in key else f"//{key}").netloc, value) for key, value in entries.items())
    return entries.get(registry) or next((value for host, value in hosts if host in wanted), None)


def _of_file(entry: Mapping[str, Any]) -> Login | None:
    """An entry without any field is what a helper leaves behind."""
    username, password = str(entry.get("username") or ""), str(entry.get("password") or "")
    if entry.get("auth"):
        decoded = base64.b64decode(str(entry["auth"])).decode()
        username, _, password = decoded.partition(":")
    token = str(entry.get("identitytoken") or "")
    return Login(username, password.rstrip("\0"), token) if password or token else None


def _of_helper(name: str, server: str) -> Login | None:
    """What `docker-credential-NAME` has for the server; None where it has nothing."""
    program = f"docker-credential-{name}"
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        raise _Unusable("a credential helper of Docker's configuration has a name that is none")
    code, output = _asked(program, server)
    if code != 0:
        if "not found" in output:  # the helpers' common way to say that they have none
            return None
        raise _Unusable(f"{program} failed with exit code {code}")
    try:
        found = json.loads(output)
        username, secret = str(found["Username"]), str(found["Secret"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _Unusable(f"{program} answered with something that is no login") from None
    return Login("", "", secret) if username == "<token>" else Login(username, secret)


def _asked(program: str, server: str) -> tuple[int, str]:
    """Exit code and output. It is ended with all it started when it takes too long."""
    try:
        process = subprocess.Popen(
            [program, "get"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
    except OSError as error:
        raise _Unusable(f"{program}: {(error.strerror or 'it cannot be run').lower()}") from None
    with process:
        try:
            output, _ = process.communicate(server, HELPER_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise _Unusable(f"{program} gave no answer within {HELPER_S:.0f} s") from None
        except (OSError, ValueError):
            raise _Unusable(f"{program} answered with something that is no login") from None
        return process.returncode, output
