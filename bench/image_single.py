"""What our way costs beside a bare pull: one node after the other, from a vault that has it all."""

import statistics
from functools import partial

from bench.images import wall, world
from bench.measure import Measured

NAMES = ("image_1_node_vs_bare_pull",)
NODES = ("node3", "node2")
"""One of each image store; times are added."""


def measure() -> list[Measured]:
    """Whole processes of ours, against `docker pull` on the node alone. Needs root on Linux."""
    with world() as lab:
        lab.sync_filled(NODES[0])  # fills the vault
        pairs = [lab.rounds(partial(lab.sync_filled, node), partial(lab.bare_pull, node)) for node in NODES]
    ours_s = sum(wall(ours) for ours, _ in pairs)
    bare_s = sum(statistics.median(bare) for _, bare in pairs)
    return [Measured(NAMES[0], 1.2, "docker pull, registry on the bridge", ours_s, bare_s)]
