"""The lab that serves with vLLM: three nodes, of which the first and the third have different Docker generations."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab import Lab, fleet_cli, packages, registry
from tests.lab.cache import locked
from tests.lab.fleet_cli import Desk
from tests.lab.node import Node
from tests.lab.shell import Progress

from . import hf_model, lanes
from .environment import VllmUnavailableError, ensure_environment
from .image import ensure_image

PAIR = ("node1", "node3")
"""The classic and the containerd image store."""


@dataclass(frozen=True)
class Kit:
    """What a lane of vLLM needs, all of it on the nodes already."""

    lab: Lab
    env: Path
    image: str


@pytest.fixture(scope="session")
def kit() -> Iterator[Kit]:
    """The lab with vLLM; skipped, with the reason, where the one or the other cannot be had."""
    if reason := packages.unsupported():
        pytest.skip(reason)
    progress = Progress()
    try:
        env = progress.step("vLLM's CPU build", ensure_environment)
    except VllmUnavailableError as reason:
        pytest.skip(f"no vLLM here: {reason}")
    name, subnet = os.environ.get("FLEET_LAB_NAME", "fleetvllm"), os.environ.get("FLEET_LAB_SUBNET", "10.80.0.0/24")
    with locked(f"tests-{name}", wait=False):
        images = progress.step("an image to run it", lambda: ensure_image(env))
        lab = Lab.up(name, subnet, 3, progress=progress)
        registry.push(lab.registry, images)
        yield Kit(lab, env, lab.registry.reference(images.images[0]))
        if os.environ.get("FLEET_LAB_KEEP") != "1":
            lab.down()


@pytest.fixture
def desk(kit: Kit, tmp_path: Path) -> Desk:
    """A desk with a spec of both engines' lanes on the two nodes, which run nothing yet; none is placed."""
    kit.lab.reset()
    for name in PAIR:
        furnish(kit.lab.nodes[name])
    made = fleet_cli.desk(kit.lab, tmp_path)
    made.edit("inventory.yaml", lambda content: lanes.add_inventory(content, PAIR, kit.env))
    made.edit("lanes.yaml", lambda content: lanes.add_lane(content, kit.image))
    return made


def furnish(node: Node) -> None:
    """The model where the node keeps its models, and a place for vLLM's cache."""
    shutil.copytree(hf_model.ensure_model(), node.disk / "srv/models" / hf_model.NAME, dirs_exist_ok=True)
    (node.disk / lanes.CACHE.lstrip("/")).mkdir(exist_ok=True)
