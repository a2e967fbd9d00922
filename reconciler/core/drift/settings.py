"""Config and identity: a container, or the content it runs, is not what was applied. Somebody's hand, or a disk's.

Compared is the live container with the spec that it was made from.
"""

from collections.abc import Iterator

from reconciler.core.classify import GangView, RankView
from reconciler.core.diff import FieldChange, changes
from reconciler.core.drift.applied import applied_spec
from reconciler.core.drift.finding import Finding, Kind, Severity
from reconciler.core.drift.undeclared import BY_HAND, other_secrets, undeclared
from reconciler.core.identity import container_name, keep_tag
from reconciler.core.observed import Container, Owner

WHERE = {
    "argv": "Config.Cmd",
    "entrypoint": "Config.Entrypoint",
    "env": "Config.Env",
    "mount": "Mounts",
    "devices": "HostConfig.Devices",
    "shm_size": "HostConfig.ShmSize",
    "ulimits": "HostConfig.Ulimits",
    "gpus": "HostConfig.DeviceRequests",
    "network": "HostConfig.NetworkMode",
    "restart": "HostConfig.RestartPolicy",
    "auto_remove": "HostConfig.AutoRemove",
    "image": "Image",
}
"""Where `docker inspect` shows a field, by its first word."""

PLACES = {"Networks": "NetworkSettings.Networks"}
"""Where settings that nobody asked for show, when it is not in HostConfig."""

UPDATED = frozenset({"restart", "Networks", "NanoCpus", "PidsLimit", "BlkioWeight"})
UPDATED_KINDS = ("Memory", "Cpu", "Cpuset", "KernelMemory")
"""What `docker update` and `docker network connect` change in place, and say no time of; all else means that the
container was made anew."""

REPLACE = "replace the gang"


def rank_settings(address: str, rank: RankView) -> Iterator[Finding]:
    """Of the container that stands for a rank, when it runs."""
    present = rank.present
    if present is None or not present.is_running:
        return
    where = f"{address}/{rank.rank.index}@{rank.rank.node}"
    made = applied_spec(present.owner, rank.rank.container)
    if made is not None:
        yield from (_changed(where, present, change) for change in changes(made, present))
    elif present.owner is not None and present.owner.fingerprint == rank.rank.fingerprint:
        yield from _without_labels(where, rank, present)
    for name, value in present.unasked:
        yield Finding(
            Kind.CONFIG,
            where,
            name,
            "not set",
            value,
            BY_HAND,
            since=_since(name, present),
            evidence=f"docker inspect {present.name}: {PLACES.get(name, 'HostConfig.' + name)}; ours are made without",
        )
    yield from undeclared(where, rank)
    yield from other_secrets(where, rank)
    yield from _tag(where, rank)


def _since(field: str, present: Container) -> str:
    return "" if field in UPDATED or field.startswith(UPDATED_KINDS) else present.created_at


def _without_labels(where: str, rank: RankView, present: Container) -> Iterator[Finding]:
    """Labels that do not say what was applied: of an earlier release, or somebody changed them."""
    yield from (_changed(where, present, change) for change in changes(rank.rank.container, present))
    if present.owner is not None and present.owner.container_text:
        yield Finding(
            Kind.CONFIG,
            where,
            "labels",
            "the spec that it was made from",
            "another spec",
            REPLACE,
            since=present.created_at,
            evidence=f"docker inspect {present.name}: label fleet.spec does not fit label fleet.fingerprint",
        )


def _changed(where: str, present: Container, change: FieldChange) -> Finding:
    field = change.field
    path = WHERE.get(field.partition(".")[0].partition(" ")[0], "HostConfig")
    return Finding(
        Kind.IDENTITY if field == "image" else Kind.CONFIG,
        where,
        field,
        change.after or "not set",
        change.before or "not set",
        REPLACE,
        since=_since(field, present),
        evidence=f"docker inspect {present.name}: {path}, against its label fleet.spec",
    )


def _tag(where: str, rank: RankView) -> Iterator[Finding]:
    """The tag that keeps the image from being pruned, given when its content had been verified, is on other content."""
    pin = rank.rank.container.image
    if pin.kind != "digest":
        return
    tag = f":{keep_tag(pin.digest)}"
    for image in rank.facts.images:
        name = next((name for name in image.names if name.endswith(tag)), None)
        if name is not None and image.usable and not image.holds(pin):
            yield Finding(
                Kind.IDENTITY,
                where,
                f"tag {name}",
                f"content {pin.digest}",
                f"content {(image.digests or (image.id,))[0]}",
                "bring the image again when it is needed",
                evidence=f"docker image ls: {name} is image {image.id[:19]}",
                severity=Severity.NOTICE,
            )


def renamed(view: GangView, fleet: str) -> Iterator[Finding]:
    """Containers that say by their labels that they are of this gang, and have another name: nobody's, by the rules."""
    for rank in view.ranks:
        for item in rank.facts.containers:
            claim = item.claims
            if claim and (claim.fleet, claim.gang, claim.rank) == (fleet, view.gang.address, rank.rank.index):
                yield _renamed(f"{view.gang.address}/{claim.rank}@{rank.rank.node}", item, claim)


def _renamed(where: str, item: Container, claim: Owner) -> Finding:
    return Finding(
        Kind.CONFIG,
        where,
        "name",
        container_name(claim.lane, claim.rank, claim.revision),
        item.name,
        "nothing: a container with a name of its own is nobody's to stop; `docker rename` it back, or remove it",
        evidence=f"docker inspect {item.name}: its labels say that it is rank {claim.rank} of {claim.gang}",
        severity=Severity.DEGRADED if item.is_running else Severity.NOTICE,
    )
