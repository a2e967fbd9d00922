"""Host keys, strictly: only what is written down passes, and a refusal says what to write down."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import asyncssh

from reconciler.core.observed import Unknown, UnknownKind
from reconciler.nodes.errors import NodeUnknownError
from reconciler.nodes.targets import SSH_PORT, SshTarget

if TYPE_CHECKING:
    from collections.abc import Sequence

Trusted = tuple["Sequence[asyncssh.SSHKey]", "Sequence[asyncssh.SSHKey]", "Sequence[asyncssh.SSHKey]"]
"""Host keys, CA keys and revoked keys, as asyncssh wants them."""

KEY_TYPES = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-256",
    "rsa-sha2-512",
)


@dataclass
class HostKeys:
    """The keys trusted for one target, and the last key it offered that was not one of them."""

    target: SshTarget
    trusted: tuple[asyncssh.SSHKey, ...]
    authorities: tuple[asyncssh.SSHKey, ...] = ()
    revoked: tuple[asyncssh.SSHKey, ...] = ()
    refused: asyncssh.SSHKey | None = field(default=None, init=False)

    def for_asyncssh(self, _host: str, _addr: str, _port: int | None) -> Trusted:
        """The trusted keys, whatever address the name resolved to.

        A function, because asyncssh takes an empty value for "read ~/.ssh/known_hosts".
        """
        return self.trusted, self.authorities, self.revoked

    @property
    def algorithms(self) -> list[str]:
        """Known key types first (as OpenSSH does), the others after: so a changed key is seen as changed."""
        certified = [f"{name}-cert-v01@openssh.com" for name in KEY_TYPES] if self.authorities else []
        known = [name.decode() for key in self.trusted for name in key.sig_algorithms]
        return list(dict.fromkeys([*certified, *known, *KEY_TYPES]))

    def refusal(self) -> Unknown:
        """Why the offered key does not pass, and what to do."""
        if self.refused is None:
            reason = f"the host key of {place(self.target)} is revoked or its certificate is not valid"
            return Unknown(self.target.name, UnknownKind.HOST_KEY_CHANGED, reason, _CHANGED_HINT)
        return self._changed(self.refused) if self.trusted else self._unknown(self.refused)

    def _unknown(self, key: asyncssh.SSHKey) -> Unknown:
        line = public_line(key)
        reason = f"the host key of {place(self.target)} is not known: it offers {described(key)}"
        hint = (
            f"compare {key.get_fingerprint()} with `ssh-keygen -lf` on the machine's own console, then add this line to"
            f" {self.target.known_hosts_path}:\n  {known_hosts_name(self.target)} {line}\n"
            f'or pin it in the spec (ssh):\n  host_key: "{line}"'
        )
        return Unknown(self.target.name, UnknownKind.HOST_KEY_UNKNOWN, reason, hint)

    def _changed(self, key: asyncssh.SSHKey) -> Unknown:
        expected = " or ".join(described(item) for item in self.trusted)
        source = "the spec's host_key" if self.target.host_key else str(self.target.known_hosts_path)
        reason = f"the host key of {place(self.target)} changed: {source} has {expected}, offered is {described(key)}"
        return Unknown(self.target.name, UnknownKind.HOST_KEY_CHANGED, reason, _CHANGED_HINT)


_CHANGED_HINT = (
    "somebody may be in between. If the machine was reinstalled, compare the fingerprint on its own console"
    " (`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`) and replace the old key"
)


def load(target: SshTarget) -> HostKeys:
    """The keys trusted for `target`: the pinned one alone, else those of its known_hosts file."""
    if target.host_key:
        return HostKeys(target, (_pinned(target),))
    path = target.known_hosts_path
    if not path.is_file():
        return HostKeys(target, ())
    try:
        known = asyncssh.read_known_hosts(str(path))
    except (ValueError, OSError) as error:
        reason = f"{path} cannot be read: {error}"
        raise NodeUnknownError(Unknown(target.name, UnknownKind.HOST_KEY_UNKNOWN, reason)) from error
    port = target.port if target.port != SSH_PORT else None
    keys, authorities, revoked, *_ = known.match(target.host, "", port)
    return HostKeys(target, tuple(keys), tuple(authorities), tuple(revoked))


def _pinned(target: SshTarget) -> asyncssh.SSHKey:
    try:
        return asyncssh.import_public_key(target.host_key or "")
    except asyncssh.KeyImportError as error:
        reason = f"host_key in the spec is not a public key line: {error}"
        hint = 'it looks like "ssh-ed25519 AAAA..."'
        raise NodeUnknownError(Unknown(target.name, UnknownKind.HOST_KEY_UNKNOWN, reason, hint)) from error


def place(target: SshTarget) -> str:
    """The target as people write it."""
    return target.host if target.port == SSH_PORT else f"{target.host}:{target.port}"


def known_hosts_name(target: SshTarget) -> str:
    """The target as known_hosts has it: `[host]:port` for another port than 22."""
    return target.host if target.port == SSH_PORT else f"[{target.host}]:{target.port}"


def public_line(key: asyncssh.SSHKey) -> str:
    """The key as a public key line, without a comment."""
    return " ".join(key.export_public_key().decode().split()[:2])


def described(key: asyncssh.SSHKey) -> str:
    """The key's type and fingerprint."""
    return f"{key.get_algorithm()} {key.get_fingerprint()}"
