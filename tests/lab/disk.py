"""A node's disk: the folder that survives a power cycle, with an /etc of its own laid over the machine's."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from .config import CONTAINERD, NodeConfig
from .shell import run

# The user `guest` may log in and nothing else: for lanes of tests about a Docker socket that is refused.
USERS = {"ops": (2001, "docker"), "guest": (2002, "nogroup")}
SSHD = """\
Port 22
ListenAddress {address}
HostKey /etc/ssh/ssh_host_ed25519_key
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
UseDNS no
AllowTcpForwarding yes
AllowStreamLocalForwarding yes
GatewayPorts no
MaxStartups 50:30:200
PrintMotd no
AcceptEnv LANG LC_* SHLVL
Subsystem sftp /usr/lib/openssh/sftp-server
"""


def create(node: NodeConfig, *, hosts: Mapping[str, str], authorized_key: str) -> None:
    """Everything a node needs before its first boot."""
    disk = node.folder / "disk"
    for place in ("root", "home", "srv/models", "tmp", "var/log", "etc/ssh", "etc/docker", "docker", "bin"):
        (disk / place).mkdir(parents=True)
    (disk / "tmp").chmod(0o1777)
    (disk / "root").chmod(0o700)
    (node.folder / "etc.work").mkdir()
    write_etc(node, hosts)
    new_host_key(node)
    authorize(disk / "root", authorized_key, owner=0)
    for user, (number, _) in USERS.items():
        authorize(disk / "home" / user, authorized_key, owner=number)
    if node.small_disk_mb is not None:
        small_disk(disk / "docker.img", node.small_disk_mb)


def write_etc(node: NodeConfig, hosts: Mapping[str, str]) -> None:
    etc = node.folder / "etc"
    for place in ("ssh", "docker"):
        (etc / place).mkdir(parents=True)
    (etc / "hostname").write_text(f"{node.name}\n")
    names = {"localhost": "127.0.0.1", **hosts}
    (etc / "hosts").write_text("".join(f"{address} {name}\n" for name, address in names.items()))
    (node.folder / "disk/etc/ssh/sshd_config").write_text(SSHD.format(address=node.address))
    (node.folder / "disk/etc/docker/daemon.json").write_text(json.dumps(daemon_config(node), indent=2))
    add_users(etc)


def daemon_config(node: NodeConfig) -> dict[str, object]:
    """Host networking only, as inference lanes have it; a cgroup of the node's own, so that nothing is left of it."""
    config: dict[str, object] = {
        "bridge": "none",
        "iptables": False,
        "ip6tables": False,
        "exec-opts": ["native.cgroupdriver=cgroupfs"],
        "cgroup-parent": f"/{node.namespace}",
    }
    if node.store == CONTAINERD:
        config["features"] = {"containerd-snapshotter": True}
    return config


def add_users(etc: Path) -> None:
    """Users by the files of the node's own /etc; `*` is a password that none matches, and not a locked account."""
    passwd, shadow = Path("/etc/passwd").read_text(), Path("/etc/shadow").read_text()
    group = Path("/etc/group").read_text()
    for user, (number, group_name) in USERS.items():
        passwd += f"{user}:x:{number}:{number}::/home/{user}:/bin/sh\n"
        shadow += f"{user}:*:19000:0:99999:7:::\n"
        group = joined(group, group_name, user) + f"{user}:x:{number}:\n"
    (etc / "passwd").write_text(passwd)
    (etc / "group").write_text(group)
    (etc / "shadow").write_text(shadow)
    (etc / "shadow").chmod(0o600)


def joined(groups: str, name: str, user: str) -> str:
    """The group file with one more member in a group."""
    lines = groups.splitlines()
    grown = [
        line + ("" if line.endswith(":") else ",") + user if line.startswith(f"{name}:") else line for line in lines
    ]
    return "\n".join(grown) + "\n"


def authorize(home: Path, key: str, *, owner: int) -> None:
    (home / ".ssh").mkdir(parents=True, exist_ok=True)
    (home / ".ssh" / "authorized_keys").write_text(key)
    (home / ".ssh").chmod(0o700)
    for path in (home, home / ".ssh", home / ".ssh" / "authorized_keys"):
        shutil.chown(path, owner, owner)


def host_key(node: NodeConfig) -> Path:
    return node.folder / "disk/etc/ssh" / "ssh_host_ed25519_key"


def public_host_key(node: NodeConfig) -> str:
    """The public line, type and key only, as known_hosts wants it."""
    return " ".join(host_key(node).with_suffix(".pub").read_text().split()[:2])


def new_host_key(node: NodeConfig) -> None:
    new_key(host_key(node), comment=node.name)


def new_key(path: Path, *, comment: str) -> None:
    path.unlink(missing_ok=True)
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)])


def small_disk(image: Path, megabytes: int) -> None:
    """A file system that a few images fill; mounted inside the node, so it goes when the node goes."""
    with image.open("wb") as handle:
        handle.truncate(megabytes << 20)
    run(["mkfs.ext4", "-q", "-F", "-m", "0", str(image)])


def place_models(node: NodeConfig, models: Sequence[Path]) -> None:
    """Put the model files where lanes expect them; again after a test damaged them."""
    for model in models:
        place = node.folder / "disk" / "srv" / "models" / model.name
        if not place.is_file() or place.is_symlink() or place.read_bytes() != model.read_bytes():
            place.unlink(missing_ok=True)
            shutil.copyfile(model, place)
