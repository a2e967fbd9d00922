"""The end of a lab: found by its name alone, so that it works on whatever an earlier run left behind."""

import shutil

from . import cgroups, network, registry
from .config import LabConfig, labs_dir


def remove(name: str) -> None:
    """Take away all that carries a lab's name, from whatever run, in whatever state."""
    folder = LabConfig(name=name).folder
    nodes = network.namespaces(name)
    network.remove(name)
    for node in nodes:
        cgroups.remove(node)
    registry.remove(folder / "registry")
    if folder.exists():
        shutil.rmtree(folder)
    network.restore_bridge_filter()
    if labs_dir().exists() and not any(labs_dir().iterdir()):
        labs_dir().rmdir()
