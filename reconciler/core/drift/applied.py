"""What a container was made as, by the spec on its labels: so a hand's work is told from the spec's moves."""

from dataclasses import replace

from reconciler.core.canonical import canonical_json, fingerprint, plain
from reconciler.core.decode import DecodeError, decoded
from reconciler.core.desired import ContainerSpec
from reconciler.core.observed import Container, Owner


def applied_spec(owner: Owner | None, wanted: ContainerSpec) -> ContainerSpec | None:
    """The spec that a container was made from; None where its labels do not tell, or not of one piece.

    As a rule it is the wanted one: that is seen without making a reader, which takes tens of milliseconds.
    """
    if owner is None or not owner.container_text:
        return None
    found = wanted if owner.container_text == canonical_json(wanted) else _read(owner.container_text)
    return found if found is not None and _fingerprint(found) == owner.fingerprint else None


def _read(text: str) -> ContainerSpec | None:
    try:
        return decoded(ContainerSpec, text)
    except (DecodeError, ValueError, RecursionError):
        return None


def _fingerprint(spec: ContainerSpec) -> str:
    """As `RankSpec.fingerprint` has it."""
    return fingerprint({**plain(spec), "image": spec.image.digest})


def as_made(container: Container, spec: ContainerSpec) -> Container:
    """The container as it was when it came from this spec, before anybody laid hands on it."""
    owner = container.owner
    return replace(
        container,
        image_id=owner.image_id if owner else container.image_id,
        entrypoint=container.entrypoint if spec.entrypoint is None else spec.entrypoint,
        command=spec.command,
        env=spec.env,
        mounts=spec.mounts,
        devices=spec.devices,
        shm_bytes=spec.shm_bytes,
        ulimits=spec.ulimits,
        gpus=spec.gpus,
        network_mode="host",
        restart_policy="no",
        auto_remove=False,
    )
