"""Where a node is and how to get in: plain values, made from the spec."""

import getpass
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.core.observed import Unknown, UnknownKind

if TYPE_CHECKING:
    from specs import Node

DOCKER_SOCKET = "/var/run/docker.sock"
SSH_PORT = 22


@dataclass(frozen=True)
class SshTarget:
    """One node's way in. `host_key` is a public key line ("ssh-ed25519 AAAA..."): when it is set, only that key passes.

    `proxy_jump` is "[user@]host[:port]"; its own key is looked up in the same `known_hosts`.
    """

    name: str
    host: str
    port: int = SSH_PORT
    user: str | None = None
    identity_file: str | None = None
    known_hosts: str | None = None
    host_key: str | None = None
    proxy_jump: str | None = None
    docker_socket: str = DOCKER_SOCKET

    @classmethod
    def from_spec(cls, name: str, node: "Node") -> "SshTarget":
        """The way in that the spec declares. The loader has made its paths absolute."""
        ssh = node.ssh
        return cls(
            name=name,
            host=ssh.host,
            port=ssh.port,
            user=ssh.user,
            identity_file=str(ssh.identity_file) if ssh.identity_file else None,
            known_hosts=str(ssh.known_hosts) if ssh.known_hosts else None,
            host_key=ssh.host_key,
            proxy_jump=ssh.proxy_jump,
            docker_socket=node.docker.socket,
        )

    @property
    def login(self) -> str:
        """The user to log in as: the declared one, else whoever runs this."""
        return self.user or local_user()

    @property
    def address(self) -> str:
        """Where it is asked: `host:port`, the port in any case."""
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def by_hand(self) -> str:
        """The options and the place for `ssh` and `ssh-copy-id`, to try the same way in by hand."""
        port = f"-p {self.port} " if self.port != SSH_PORT else ""
        return f"{port}{self.login}@{self.host}"

    @property
    def known_hosts_path(self) -> Path:
        """The file of trusted host keys."""
        return expanded(self.known_hosts or "~/.ssh/known_hosts")

    @property
    def jump(self) -> "SshTarget | None":
        """The machine in between, as a target of its own."""
        if self.proxy_jump is None:
            return None
        user, _, place = self.proxy_jump.rpartition("@")
        host, port = split_port(place)
        return SshTarget(
            name=f"{self.name} (jump host {host})",
            host=host,
            port=port or SSH_PORT,
            user=user or self.user,
            identity_file=self.identity_file,
            known_hosts=self.known_hosts,
        )


def silent(target: SshTarget, deadline_s: float) -> Unknown:
    """The fact that nothing answered in time."""
    reason = f"{target.address} did not answer within {deadline_s:g} s"
    return Unknown(target.name, UnknownKind.TIMEOUT, reason, silence_hint(target))


def silence_hint(target: SshTarget) -> str:
    """What to look at, and the command that tries the same way in."""
    jump = f"-J {target.proxy_jump} " if target.proxy_jump else ""
    return f"is the machine on, and the network between up? Try `ssh {jump}{target.by_hand}`"


def split_port(place: str) -> tuple[str, int | None]:
    """`host:port` or `[v6]:port` apart; a bare IPv6 address has no port."""
    if place.startswith("["):
        host, _, rest = place[1:].partition("]")
        return host, int(rest[1:]) if rest.startswith(":") else None
    host, colon, port = place.rpartition(":")
    return (host, int(port)) if colon and ":" not in host else (place, None)


def local_user() -> str:
    """Who runs this, also where there is neither HOME nor LOGNAME (cron), nor a passwd entry (a bare container)."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid{os.getuid()}"


def expanded(path: str) -> Path:
    """`~` resolved, by the passwd entry when HOME is not set; left as it is when there is neither."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)
