"""A small simulated fleet and the containers of one lane over two of its nodes."""

from collections.abc import Awaitable, Callable

from reconciler.core.desired import ContainerSpec
from reconciler.nodes.protocols import Progress
from reconciler.testing import Behaviour, SimImage, SimulatedFleet, SimulatedNode, run_simulated, sim_nodes

IMAGE = SimImage.named("ghcr.io/acme/llama")
HEAD_PORT, WORKER_PORT = 30000, 50052


def a_fleet(count: int = 2, seed: int = 7, *images: SimImage) -> SimulatedFleet:
    return SimulatedFleet(sim_nodes(count), [IMAGE, *images], seed)


def play(fleet: SimulatedFleet, scene: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scene()

    run_simulated(main(), seed=1)


def ignore(_: Progress) -> None:
    """No interest in progress."""


def head(model: str = "/models/good.gguf", *workers: str) -> ContainerSpec:
    peers = ("--rpc", ",".join(f"{address}:{WORKER_PORT}" for address in workers)) if workers else ()
    argv = ("--model", model, "--alias", "tiny", "--host", "0.0.0.0", "--port", str(HEAD_PORT), *peers)
    return ContainerSpec(IMAGE.pin, argv, ("llama-server",))


def worker(address: str) -> ContainerSpec:
    return ContainerSpec(IMAGE.pin, ("-H", address, "-p", str(WORKER_PORT)), ("ggml-rpc-server",))


def running(behaviour: Behaviour) -> tuple[SimImage, ContainerSpec]:
    """An image whose containers behave like this, and a container of it."""
    image = SimImage.named("ghcr.io/acme/other", behaviour)
    return image, ContainerSpec(image.pin, ("serve",))


async def boot(node: SimulatedNode, name: str, spec: ContainerSpec) -> str:
    """Staged, created and started; the id."""
    image = await node.images.stage(spec.image, "linux/amd64", ignore)
    made = await node.containers.create(name, spec, image.id, {}, {})
    await node.containers.start(made)
    return made
