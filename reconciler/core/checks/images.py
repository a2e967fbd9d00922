"""Whether the image of a rank can get to its node, and run there."""

from collections.abc import Iterator

from reconciler.core.checks.case import Case
from reconciler.core.checks.finding import Finding
from reconciler.core.classify import RankView
from reconciler.core.desired import ImagePin
from reconciler.core.figures import size
from reconciler.core.lock import PUBLISHED
from reconciler.core.observed import SourceImage, SourceMissing
from reconciler.core.staging import Want


def platform(case: Case, rank: RankView) -> Iterator[Finding]:
    """As the spec says."""
    declared = case.declared(rank.rank.node).platform
    if declared != rank.facts.platform:
        yield case.refuse(
            "platform",
            rank,
            f"{rank.rank.node} is {rank.facts.platform}, the spec says {declared}",
            "correct `platform` of the node in the spec",
        )


def image_platform(case: Case, rank: RankView) -> Iterator[Finding]:
    """Told by the source's index; what is on the node already is made for it."""
    pin = rank.rank.container.image
    source = case.observed.sources.get(pin.digest)
    if not isinstance(source, SourceImage) or rank.facts.image_for(pin) is not None:
        return
    if rank.facts.platform not in source.platforms:
        there = ", ".join(source.platforms) or "no platform"
        yield case.refuse(
            "image-platform",
            rank,
            f"image {pin.short} is made for {there}; {rank.rank.node} is {rank.facts.platform}",
            "pin the digest of an image (or index) that has this platform",
        )


def image_exists(case: Case, rank: RankView) -> Iterator[Finding]:
    """A source that could not be asked is no reason: staging tells before anything stops."""
    pin = rank.rank.container.image
    source = case.observed.sources.get(pin.digest)
    if isinstance(source, SourceMissing) and rank.facts.image_for(pin) is None:
        yield case.refuse(
            "image-missing",
            rank,
            f"image {pin.reference} is not on {rank.rank.node}, and its source does not have it: {source.reason}",
            _way_back(pin),
        )


def _way_back(pin: ImagePin) -> str:
    """What a person can do about an image that its source does not have."""
    if pin.registry == PUBLISHED:
        return (
            f"`fleet pin {pin.reference} --from NODE --publish`, on a node that has it, brings it back into the vault"
        )
    return "push the image, or pin a digest that the source has"


def disk(case: Case, rank: RankView) -> Iterator[Finding]:
    """What the node gets for other lanes counts, too: images come side by side."""
    node, free = rank.rank.node, rank.facts.disk_free_bytes
    coming = case.staging.on(node)
    need = case.staging.peak_bytes(node)
    if free is not None and need > free and any(want.pin == rank.rank.container.image for want in coming):
        what = " and ".join(_taking(want) for want in coming)
        summary = f"{node} has {size(free)} free, and needs {size(need)} for {what}"
        yield case.refuse("disk", rank, summary, f"free space below {rank.facts.docker_root} on {node}")


def _taking(want: Want) -> str:
    """ "image x@sha256:c977a2d2 (14.2 GiB to fetch, 29.8 GiB unpacked)"."""
    figures = (
        f"{size(want.bytes)} to fetch, {size(want.unpacked_bytes)} unpacked" if want.missing else "of unknown size"
    )
    return f"image {want.pin.short} ({figures})"
