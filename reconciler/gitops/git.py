"""The git program: run without prompts, hooks and settings that are not asked for, and never longer than it may.

A password in the URL is handed over in the environment, for git's own process alone: it is in no file of ours, in no
list of processes, and in no message.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from reconciler.nodes.child_env import child_environment
from reconciler.threads import in_thread

LOCAL_S = 60.0
"""What git does on this machine alone, it does within that, or the disk is at fault."""

FETCH_S = 300.0
"""So long one fetch may take."""

PROTOCOLS = "file:git:http:https:ssh"
"""What a URL may make git do (git-config, `protocol.allow`): no `ext::`, which runs any program."""

OWN = ("XDG_CONFIG_HOME", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "SSL_CERT_FILE")
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")

SSH = "ssh -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=15 -o ServerAliveCountMax=3"
"""Nobody answers a question, and a silent host is given up. `GIT_SSH_COMMAND` says otherwise."""

HELPER = '!f() { printf "username=%s\\npassword=%s\\n" "$FLEET_GIT_USER" "$FLEET_GIT_PASSWORD"; }; f'
"""`echo` would take a backslash of a password for something else."""


class GitError(Exception):
    """Git could not do it: what, in one line, and what to do about it. `is_late`: it was ended, and said nothing."""

    def __init__(self, summary: str, hint: str = "", *, is_late: bool = False) -> None:
        super().__init__(summary)
        self.hint = hint
        self.is_late = is_late


@dataclass(frozen=True)
class Source:
    """Where the branch is. `url` holds no password; `user` and `password` are empty where none are given.

    A user without a password is a token, as some forges want it.
    """

    url: str
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    def __str__(self) -> str:
        return self.url

    @property
    def root(self) -> str:
        """The host that the password is for: where a redirect leads to another one, that one is not told it."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    def redacted(self, text: str) -> str:
        """The text without what nobody is to see, also as a URL spells it."""
        hidden, mark = (self.password, "") if self.password else (self.user, "@")
        for spelt in sorted({hidden, quote(hidden, safe=""), quote(hidden)}, key=len, reverse=True):
            text = text.replace(f"{spelt}{mark}", f"[redacted]{mark}") if spelt else text
        return text


def source_of(text: str) -> Source:
    """The repository that is named. Raises `GitError` for one that git would take for an option."""
    if text.startswith("-") or not text.strip():
        raise GitError("this is not the URL of a repository", "name it as git does: a folder, or https://HOST/...")
    try:
        parts = urlsplit(text)
    except ValueError:
        raise GitError("this is not the URL of a repository") from None
    if parts.scheme not in {"http", "https"} or "@" not in parts.netloc:
        return Source(text if "://" in text or not Path(text).exists() else str(Path(text).resolve()))
    clean = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return Source(clean, unquote(parts.username or ""), unquote(parts.password or ""))


@dataclass(frozen=True)
class Git:
    """Git on one bare repository. `source`: whose password, if any, is handed to a remote."""

    folder: Path
    source: Source

    async def __call__(self, *words: str, timeout_s: float = LOCAL_S, more: Mapping[str, str] | None = None) -> str:
        """Its output, without the last line end. `more`: variables. Raises `GitError`; ended when cancelled."""
        running: list[subprocess.Popen[bytes]] = []
        command = ["git", "--git-dir", str(self.folder), *words]
        try:
            return await in_thread(lambda: self._run(command, timeout_s, dict(more or {}), running))
        except asyncio.CancelledError:
            for process in running:
                _end(process)
            raise

    async def works(self, *words: str, more: Mapping[str, str] | None = None) -> bool:
        """Whether git says yes."""
        try:
            await self(*words, more=more)
        except GitError:
            return False
        return True

    def _run(
        self, command: list[str], timeout_s: float, more: dict[str, str], running: list["subprocess.Popen[bytes]"]
    ) -> str:
        try:
            process = subprocess.Popen(
                command,
                env={**self.environment(), **more},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise GitError(f"git cannot be run: {(error.strerror or str(error)).lower()}", "install git") from None
        running.append(process)
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            _end(process)
            raise GitError(f"git {_verb(command)} did not end within {timeout_s:g} s", is_late=True) from None
        if process.returncode != 0:
            raise GitError(f"git {_verb(command)}: {self._told(err) or f'exit {process.returncode}'}")
        return out.decode("utf-8", "replace").rstrip("\n")

    def environment(self) -> dict[str, str]:
        """What git is given: ways and keys of this user, no prompt, no hook, no other protocol."""
        own = {name: os.environ[name] for name in (*OWN, *PROXIES) if name in os.environ}
        settings = {
            "core.hooksPath": os.devnull,
            "submodule.recurse": "false",
            "gc.autoDetach": "false",
            "http.lowSpeedLimit": "1000",
            "http.lowSpeedTime": "30",
            "advice.detachedHead": "false",
        }
        if self.source.user or self.source.password:
            own |= {"FLEET_GIT_USER": self.source.user, "FLEET_GIT_PASSWORD": self.source.password}
            settings[f"credential.{self.source.root}.helper"] = HELPER
        numbered = {"GIT_CONFIG_COUNT": str(len(settings))}
        for number, (key, value) in enumerate(settings.items()):
            numbered |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        fixed = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "GIT_ALLOW_PROTOCOL": PROTOCOLS}
        return {"GIT_SSH_COMMAND": SSH, **child_environment(), **own, **fixed, **numbered}

    def _told(self, err: bytes) -> str:
        """What git says of an error, in a line, without what nobody is to see."""
        lines = [line.strip() for line in err.decode("utf-8", "replace").splitlines() if line.strip()]
        marked = [line for line in lines if line.startswith(("fatal:", "error:", "ERROR:"))] or lines[-1:]
        text = "; ".join(line.partition(": ")[2] or line for line in marked[:2])
        return printable(self.source.redacted(text))[:500]


def printable(text: str) -> str:
    """What others wrote, for a log or a terminal: nothing in it steers one."""
    return "".join(char if char.isprintable() else " " for char in text)


def _verb(command: list[str]) -> str:
    words = iter(command[3:])
    for word in words:
        if word == "-c":
            next(words, None)
        elif not word.startswith("-"):
            return word
    return ""


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End git and the helpers that it started: they share a session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1)
