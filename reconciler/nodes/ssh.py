"""One SSH connection a node: verified host key, keys from the agent or a file, keepalive, a deadline on everything."""

import asyncio
import contextlib
import os
import shlex
import socket
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from typing import Any

import asyncssh

from reconciler.core.observed import Unknown, UnknownKind
from reconciler.nodes import host_keys
from reconciler.nodes.client_keys import key_pairs
from reconciler.nodes.errors import ErrorKind, NodeError, NodeUnknownError
from reconciler.nodes.gathering import GatheringConnector, without_empty_packets
from reconciler.nodes.script_session import output_of
from reconciler.nodes.targets import SshTarget, expanded, local_user, silence_hint, silent
from reconciler.threads import in_thread

SILENCE_S = 15.0
"""A connection over which nothing came for so long, though asked, is lost."""

PATIENCE_S = 120.0
"""The same for a connection that holds a pull: its end makes the classic store throw away all it has fetched, so a link
that is cut for a while must not end it."""

KEEPALIVE_COUNT = 3
CLOSE_S = 0.5
ENDING_S = 0.1
CIPHERS = (
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "chacha20-poly1305@openssh.com",
    "aes256-ctr",
    "aes192-ctr",
    "aes128-ctr",
)
"""Hardware does AES: two to three times the bytes per second of the usual first choice, ChaCha20. None in CBC mode."""

EXEC_ENV = {"SHLVL": "1"}
"""Keeps bash from reading ~/.bashrc for an exec, where sshd accepts the variable; harmless where not."""


@dataclass
class SshSession:
    """An open connection, and the one to the jump host below it."""

    target: SshTarget
    connection: asyncssh.SSHClientConnection
    jump: "SshSession | None" = None

    @property
    def is_lost(self) -> bool:
        """Whether the connection is gone, ours or the jump host's."""
        return self.connection.is_closed() or (self.jump is not None and self.jump.is_lost)

    async def is_ending(self) -> bool:
        """Whether the connection is gone or just going: its channels fail a moment before it says so itself."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ENDING_S):
                await self.connection.wait_closed()
        return self.is_lost

    def lost(self, doing: str) -> NodeUnknownError:
        """The error for a connection that went away."""
        reason = f"the connection to {host_keys.place(self.target)} was lost while {doing}"
        return NodeUnknownError(Unknown(self.target.name, UnknownKind.LOST, reason))

    async def run_script(self, script: str, deadline_s: float, *arguments: str) -> str:
        """Output of a POSIX sh script, given on stdin so that any login shell will do. The exit status is ignored."""
        command = shlex.join(["exec", "sh", "-s", "--", *arguments])
        try:
            async with asyncio.timeout(deadline_s):
                output = await output_of(self.connection, command, script.encode(), EXEC_ENV)
        except TimeoutError:
            message = f"a command on {host_keys.place(self.target)} did not end within {deadline_s:g} s"
            raise NodeError(ErrorKind.TIMEOUT, message, "is a start-up file of the login shell slow?") from None
        except (asyncssh.Error, OSError) as error:
            if await self.is_ending():
                raise self.lost("running a command") from error
            raise NodeError(ErrorKind.REFUSED, f"sshd refused to run a command: {error}") from error
        return output.decode(errors="replace")

    async def close(self) -> None:
        """End the connection; a silent peer is not waited for."""
        self.connection.close()
        try:
            async with asyncio.timeout(CLOSE_S):
                await self.connection.wait_closed()
        except TimeoutError:
            self.connection.abort()
        if self.jump is not None:
            await self.jump.close()


async def connect(target: SshTarget, deadline_s: float, silence_s: float = SILENCE_S) -> SshSession:
    """An open connection to `target`, lost after `silence_s`. Raises `NodeUnknownError` with the exact reason."""
    try:
        async with asyncio.timeout(deadline_s):
            return await _connect(target, silence_s)
    except TimeoutError:
        raise NodeUnknownError(silent(target, deadline_s)) from None


async def _connect(target: SshTarget, silence_s: float) -> SshSession:
    if target.jump is None:
        return await _first_that_answers(target, await _addresses(target), silence_s)
    jump = await _connect(target.jump, silence_s)
    try:
        return await _through(target, jump, silence_s)
    except BaseException:
        await jump.close()
        raise


async def _through(target: SshTarget, jump: SshSession, silence_s: float) -> SshSession:
    try:
        return await _open(target, target.host, jump, silence_s)
    except asyncssh.ChannelOpenError as error:
        reason = f"{jump.target.host} cannot reach {host_keys.place(target)}: {error.reason}"
        raise NodeUnknownError(Unknown(target.name, UnknownKind.REFUSED, reason, silence_hint(target))) from error


async def _addresses(target: SshTarget) -> list[str]:
    """Resolved on a daemon thread: asyncio's own resolver threads would hold up the exit."""
    with contextlib.suppress(ValueError):
        return [str(ip_address(target.host))]
    look_up = partial(socket.getaddrinfo, target.host, target.port, type=socket.SOCK_STREAM)
    try:
        found = await in_thread(look_up)
    except (socket.gaierror, UnicodeError) as error:
        reason = f"the name {target.host} does not resolve: {_plainly(error)}"
        hint = "check ssh.host in the spec, or DNS"
        raise NodeUnknownError(Unknown(target.name, UnknownKind.UNRESOLVED, reason, hint)) from error
    return list(dict.fromkeys(str(item[4][0]) for item in found))


async def _first_that_answers(target: SshTarget, addresses: list[str], silence_s: float) -> SshSession:
    problem: OSError | None = None
    for address in addresses:
        try:
            return await _open(target, address, None, silence_s)
        except OSError as error:
            problem = error
    raise _unreachable(target, problem or OSError("no address"))


def _unreachable(target: SshTarget, error: OSError) -> NodeUnknownError:
    if isinstance(error, ConnectionRefusedError):
        reason = f"{host_keys.place(target)} refused the connection"
        return NodeUnknownError(Unknown(target.name, UnknownKind.REFUSED, reason, "is sshd running, and on this port?"))
    kind = UnknownKind.LOST if isinstance(error, ConnectionError) else UnknownKind.TIMEOUT
    reason = f"{target.address} cannot be reached: {os.strerror(error.errno) if error.errno else error}"
    return NodeUnknownError(Unknown(target.name, kind, reason, silence_hint(target)))


class _Client(asyncssh.SSHClient):
    """Notes the key that was refused."""

    def __init__(self, keys: host_keys.HostKeys) -> None:
        self._keys = keys

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        """None of `CIPHERS` needs what asyncssh puts before each packet."""
        without_empty_packets(conn)

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Only called for a key that is not trusted."""
        self._keys.refused = key
        return False


async def _open(target: SshTarget, address: str, jump: SshSession | None, silence_s: float) -> SshSession:
    keys = host_keys.load(target)
    options = _options(target, keys) | {"keepalive_interval": silence_s / KEEPALIVE_COUNT}
    tunnel = jump.connection if jump else GatheringConnector()
    try:
        connection = await asyncssh.connect(address, target.port, tunnel=tunnel, **options)
    except asyncssh.HostKeyNotVerifiable as error:
        raise NodeUnknownError(keys.refusal()) from error
    except asyncssh.PermissionDenied as error:
        raise NodeUnknownError(_denied(target)) from error
    except (asyncssh.KeyExchangeFailed, asyncssh.ProtocolError, asyncssh.ProtocolNotSupported) as error:
        raise _failed(target, UnknownKind.BAD_REPLY, error) from error
    except asyncssh.DisconnectError as error:
        raise _failed(target, UnknownKind.LOST, error) from error
    return SshSession(target, connection, jump)


def _failed(target: SshTarget, kind: UnknownKind, error: asyncssh.DisconnectError) -> NodeUnknownError:
    reason = f"{host_keys.place(target)}: no SSH session: {error.reason}"
    return NodeUnknownError(Unknown(target.name, kind, reason))


def _options(target: SshTarget, keys: host_keys.HostKeys) -> dict[str, Any]:
    """All defaults that would read files or ask the environment are given, so that cron sees what a shell sees."""
    _name_local_user()
    return {
        "client_factory": partial(_Client, keys),
        "config": None,
        "username": target.login,
        "known_hosts": keys.for_asyncssh,
        "server_host_key_algs": keys.algorithms,
        "client_keys": _key_pairs(target),
        "x509_trusted_certs": None,
        "x509_trusted_cert_paths": [],
        "gss_host": None,
        "preferred_auth": "publickey",
        "encryption_algs": CIPHERS,
        "compression_algs": None,
        "keepalive_count_max": KEEPALIVE_COUNT,
    }


def _key_pairs(target: SshTarget) -> list[asyncssh.SSHKeyPair]:
    try:
        return key_pairs(identities(target))
    except (OSError, asyncssh.KeyImportError) as error:
        reason = f"the key {target.identity_file} cannot be used: {_plainly(error)}"
        raise NodeUnknownError(Unknown(target.name, UnknownKind.AUTH, reason, "check ssh.identity_file")) from error


def _plainly(error: Exception) -> str:
    """The error without its number, and without the file that the message names already."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _name_local_user() -> None:
    """Asyncssh insists on a local user name, also where it is not used; a bare container has none."""
    if "LOGNAME" not in os.environ:
        with contextlib.suppress(KeyError):
            os.environ["LOGNAME"] = local_user()


def identities(target: SshTarget) -> list[str]:
    """The declared key file, else the usual ones that are there. The agent's keys are tried as well."""
    if target.identity_file:
        return [str(expanded(target.identity_file))]
    usual = (expanded(f"~/.ssh/id_{kind}") for kind in ("ed25519", "ecdsa", "rsa"))
    return [str(path) for path in usual if os.access(path, os.R_OK)]


def _denied(target: SshTarget) -> Unknown:
    agent = "the agent's keys" if os.environ.get("SSH_AUTH_SOCK") else "no agent (SSH_AUTH_SOCK is not set)"
    tried = ", ".join([*identities(target), agent])
    reason = f"{host_keys.place(target)} did not let {target.login} in by key"
    hint = (
        f"tried: {tried}. Try `ssh-copy-id {target.by_hand}`, or name the key: ssh.identity_file in the spec; "
        "a key with a passphrase must be in the agent"
    )
    return Unknown(target.name, UnknownKind.AUTH, reason, hint)
