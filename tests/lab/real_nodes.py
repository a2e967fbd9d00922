"""The real nodes of the lab, for tests of `reconciler.nodes`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from reconciler.core.desired import ContainerSpec, ImagePin
from reconciler.nodes.ssh_fleet import SshFleet
from reconciler.nodes.targets import SshTarget

from . import Lab

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
async def fleet_of(*targets: SshTarget, endpoints: dict[str, str] | None = None) -> AsyncIterator[SshFleet]:
    """A fleet that is closed at the end."""
    fleet = SshFleet(targets, endpoints)
    try:
        yield fleet
    finally:
        await fleet.close()


def pin_of(lab: Lab, image: str) -> ImagePin:
    """A lab image as a spec pins it."""
    reference = lab.images[image]
    name, _, digest = reference.partition("@")
    registry, _, repository = name.partition("/")
    return ImagePin(reference, digest, "digest", registry, repository)


def talker(pin: ImagePin) -> ContainerSpec:
    """A rank that says a line every 0.2 seconds for two minutes, and ends at once on SIGTERM."""
    return ContainerSpec(image=pin, command=("sh", "-c", f"trap 'exit 0' TERM; {SCRIPT}"))
