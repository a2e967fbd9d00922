"""The control groups that a node's containers lived in: empty after a power cut, and nobody's but ours to remove."""

from pathlib import Path

from .shell import wait_until

ROOT = Path("/sys/fs/cgroup")


def of(name: str) -> list[Path]:
    """The node's group in each hierarchy, in either version of cgroups."""
    return [path for path in (ROOT / name, *ROOT.glob(f"*/{name}")) if path.is_dir()]


def remove(name: str) -> None:
    """Remove the node's groups; the kernel lets go of a killed process's group a moment later."""
    wait_until(f"the control groups of {name} to be free", lambda: try_remove(name), seconds=10)


def try_remove(name: str) -> bool:
    for group in of(name):
        for path in (*sorted(folders(group), reverse=True), group):
            try:
                path.rmdir()
            except OSError:
                return False
    return True


def folders(group: Path) -> list[Path]:
    return [path for path in group.rglob("*") if path.is_dir()]
