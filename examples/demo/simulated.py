"""The story on simulated nodes: the same commands, the same planner, the same apply; only the machines are not real."""

import asyncio
import functools
import sys
from dataclasses import replace
from pathlib import Path
from typing import Literal

from reconciler.cli.main import run
from reconciler.cli.wiring import Wiring
from reconciler.core.answers import answer_text
from reconciler.testing import SimImage, SimNodeConfig, SimulatedFleet, run_simulated, sim_nodes
from tests.lab.specfile import Inventory, write

IMAGE = "ghcr.io/example/llamacpp"
SEED = 7


def _four_nodes() -> list[SimNodeConfig]:
    """As the lab has them: two of each image store."""
    stores: tuple[Literal["classic", "containerd"], ...] = ("classic", "classic", "containerd", "containerd")
    return [
        replace(config, name=f"node{number}", store=store)
        for number, (config, store) in enumerate(zip(sim_nodes(4), stores, strict=True), 1)
    ]


class SimulatedStage:
    """See `story.Stage`. Virtual time: a boot of half a minute takes no time at all."""

    def __init__(self, folder: Path, reason: str) -> None:
        self._spec = folder / "fleet.yaml"
        image = SimImage.named(IMAGE)
        self._nodes = SimulatedFleet(_four_nodes(), [image], seed=SEED)
        self._wiring = Wiring(connect=lambda spec: self._nodes, run=functools.partial(run_simulated, seed=SEED))
        addresses = {node.name: node.config.address for node in self._nodes.nodes}
        platform = self._nodes.nodes[0].config.platform
        self._inventory = Inventory(addresses, {}, image.reference, None, platform)
        sys.stdout.write(f"simulated nodes ({reason})\n")

    def open(self) -> None:
        """They are there already."""

    def write_spec(self, placements: tuple[tuple[str, str], ...]) -> None:
        """Write the three files of the spec."""
        write(self._spec.parent, self._inventory, placements)

    def fleet(self, *words: str) -> int:
        """Run the command in this process, on the simulated nodes."""
        return run([*words, "--file", str(self._spec)], self._wiring)

    def ask(self, node: str, question: str) -> str:
        """Through the node's session, as the health gate does."""
        return run_simulated(self._ask(node, question), seed=SEED)

    async def _ask(self, node: str, question: str) -> str:
        session = await self._nodes.connect(node, 10.0)
        body = {"messages": [{"role": "user", "content": question}], "max_tokens": 16}
        reply = await session.engines.http("127.0.0.1", 30000, "POST", "/v1/chat/completions", body, 60.0)
        return answer_text(reply.body) or ""

    def kill(self, node: str, container: str) -> None:
        """By hand, on the machine."""
        sys.stdout.write(f"{node}$ docker kill {container}\n")
        run_simulated(self._kill(node, container), seed=SEED)

    async def _kill(self, node: str, container: str) -> None:
        self._nodes.node(node).kill(container)
        await asyncio.sleep(0)

    def close(self) -> None:
        """Nothing is left behind: nothing was there."""
