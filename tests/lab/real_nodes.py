"""The real nodes of the lab, for tests of `reconciler.nodes`."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

from reconciler.core.desired import ContainerSpec, ImagePin
from reconciler.core.lock import NO_LOCK, Lock
from reconciler.nodes.ssh_fleet import SshFleet
from reconciler.nodes.targets import SshTarget
from specs import Images

from . import Lab
from .node import Node

SCRIPT = "i=0; while [ $i -lt 600 ]; do echo line $i; i=$((i+1)); sleep 0.2; done"


def target(lab: Lab, node: str, **changes: object) -> SshTarget:
    """The way in to a node, as a spec would have it."""
    plain = SshTarget(
        name=node,
        host=lab.nodes[node].address,
        user="root",
        identity_file=str(lab.identity_file),
        known_hosts=str(lab.known_hosts),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


@asynccontextmanager
async def fleet_of(
    *targets: SshTarget,
    endpoints: dict[str, str] | None = None,
    images: Images | None = None,
    lock: Lock = NO_LOCK,
    from_nodes: frozenset[str] = frozenset(),
) -> AsyncIterator[SshFleet]:
    """A fleet that is closed at the end."""
    fleet = SshFleet(targets, endpoints, images=images, lock=lock, from_nodes=from_nodes)
    try:
        yield fleet
    finally:
        await fleet.close()


@contextmanager
def sshd_setting(node: Node, line: str) -> Iterator[None]:
    """A node whose sshd has a further setting; the first one counts."""
    config = node.disk / "etc" / "ssh" / "sshd_config"
    before = config.read_text()
    _configure(node, config, f"{line}\n{before}")
    try:
        yield
    finally:
        _configure(node, config, before)


def _configure(node: Node, config: Path, text: str) -> None:
    config.write_text(text)
    node.stop_sshd()
    node.start_sshd()


def pin_of(lab: Lab, image: str) -> ImagePin:
    """A lab image as a spec pins it."""
    reference = lab.images[image]
    name, _, digest = reference.partition("@")
    registry, _, repository = name.partition("/")
    return ImagePin(reference, digest, "digest", registry, repository)


def talker(pin: ImagePin) -> ContainerSpec:
    """A rank that says a line every 0.2 seconds for two minutes, and ends at once on SIGTERM."""
    return ContainerSpec(image=pin, command=("sh", "-c", f"trap 'exit 0' TERM; {SCRIPT}"))
