"""The ssh_config for one node: the same way in as `ssh.py` has, for OpenSSH. Pure but for the keys it looks up."""

import os
from pathlib import Path

from reconciler.nodes import host_keys
from reconciler.nodes.ssh import CIPHERS, identities
from reconciler.nodes.targets import SshTarget

NODE = "node"
"""The name to give `ssh` with the file. The address is what errors and known_hosts have all the same."""

JUMP = "jump"

COMMON = {
    "BatchMode": "yes",
    "CheckHostIP": "no",
    "Ciphers": ",".join(CIPHERS),
    "Compression": "no",
    "ConnectTimeout": "20",
    "ControlMaster": "no",
    "ControlPath": "none",
    "EscapeChar": "none",
    "ExitOnForwardFailure": "yes",
    "ForwardAgent": "no",
    "ForwardX11": "no",
    "GlobalKnownHostsFile": "/dev/null",
    "LogLevel": "INFO",
    "PreferredAuthentications": "publickey",
    "RequestTTY": "no",
    "ServerAliveCountMax": "8",
    "ServerAliveInterval": "15",
    "StrictHostKeyChecking": "yes",
    "TCPKeepAlive": "yes",
    "UpdateHostKeys": "no",
}
"""For the node and the jump host alike. A link that is cut for less than two minutes ends nothing. INFO tells the port
that sshd chose; `UpdateHostKeys` would write into the user's known_hosts."""


def render(target: SshTarget, folder: Path) -> dict[str, str]:
    """The files of `folder` by name, of which `config` is the one for `ssh -F`.

    OpenSSH hands `-F` on to the `ssh` it starts for the jump host, so that the file counts there as well. Raises
    `NodeUnknownError` when the pinned key or the known_hosts file cannot be read.
    """
    files = {"config": _block(NODE, target, folder)}
    if target.host_key:
        files[f"{NODE}.keys"] = f"{host_keys.known_hosts_name(target)} {target.host_key}\n"
    if target.jump is not None:
        files["config"] += f"  ProxyJump {JUMP}\n" + _block(JUMP, target.jump, folder)
    files["config"] += "Host *\n" + "".join(f"  {name} {value}\n" for name, value in COMMON.items())
    return files


def _block(name: str, target: SshTarget, folder: Path) -> str:
    known = folder / f"{name}.keys" if target.host_key else target.known_hosts_path
    lines = [
        f"Host {name}",
        f"  HostName {_escaped(target.host)}",
        f"  Port {target.port}",
        f"  User {target.login}",
        f"  UserKnownHostsFile {_path(known)}",
        f"  HostKeyAlgorithms {','.join(_algorithms(target))}",
        *(f"  IdentityFile {_path(key)}" for key in _existing(target)),
    ]
    return "\n".join(lines) + "\n"


def _existing(target: SshTarget) -> list[Path]:
    """`none` keeps OpenSSH from its own list of usual keys, which it looks for by the passwd entry, not by HOME."""
    return [Path(key) for key in identities(target)] or [Path("none")]


def _algorithms(target: SshTarget) -> list[str]:
    """Known key types first. Names that only asyncssh has would be an error."""
    known = {variant for name in host_keys.KEY_TYPES for variant in (name, f"{name}-cert-v01@openssh.com")}
    return [name for name in host_keys.load(target).algorithms if name in known]


def _path(path: Path) -> str:
    return '"' + _escaped(os.fspath(path)).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _escaped(text: str) -> str:
    """A percent sign starts one of OpenSSH's tokens."""
    return text.replace("%", "%%")
