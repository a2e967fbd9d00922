"""What a plan says of the images it brings: nodes for which the same holds share a line."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from reconciler.core.plan import Step
from reconciler.core.transfer import Transfer
from reconciler.views.words import duration, size

GIB = 2**30

Figures = tuple[object, ...]


def short(reference: str) -> str:
    """An image reference with twelve digits of its digest."""
    name, at, digest = reference.rpartition("@")
    return f"{name}{at}{digest[:19]}"


class Told(NamedTuple):
    """What is missing where; and the figures, "" where nothing is known."""

    what: str
    figures: str

    def __str__(self) -> str:
        return f"{self.what}: {self.figures}" if self.figures else self.what


def transfer_lines(transfers: Sequence[Transfer]) -> Iterator[Told]:
    """ "x@sha256:c977 missing on dgx2 dgx3: 14.2 GiB each (12 of 40 layers are there), relayed by dgx1"."""
    groups: dict[Figures, list[Transfer]] = {}
    for item in transfers:
        groups.setdefault(_figures(item), []).append(item)
    for group in groups.values():
        yield _line(group)


def fetch_lines(steps: Iterable[Step]) -> Iterator[str]:
    """ "model   x missing on dgx3 dgx4: 87.0 GiB each, copied from dgx1"."""
    groups: dict[Figures, list[Step]] = {}
    for step in steps:
        groups.setdefault((step.target, step.estimate_bytes, step.seed), []).append(step)
    for group in groups.values():
        one, each = group[0], " each" if len(group) > 1 else ""
        nodes = " ".join(step.node or "" for step in group)
        told = f"{size(one.estimate_bytes or 0)}{each}, copied from {one.seed}"
        yield f"      model   {one.target} missing on {nodes}: {told}"


def _figures(item: Transfer) -> Figures:
    """What has to be the same for one line. Free disk is not: it is told by node."""
    shared = (item.layers_shared, item.layers)
    return (item.image, item.origin, item.missing_bytes, shared, item.seconds, item.seed, item.seed_holds)


def _line(group: Sequence[Transfer]) -> Told:
    one = group[0]
    nodes = " ".join(item.node for item in group)
    if one.missing_bytes is None:
        return Told(f"{short(one.image)} missing on {nodes}", "")
    if one.is_naming:
        return Told(f"{short(one.image)} is on {nodes} under another name", "named only, no layer moves")
    each = " each" if len(group) > 1 else ""
    parts = [f"{size(one.missing_bytes)}{each}{_layers(one)}{_origin(one)}"]
    if one.seconds:
        parts.append(f"about {duration(_rounded(one.seconds))}")
    if one.seed is not None and not one.seed_holds:
        parts.append(f"relayed by {one.seed}")
    return Told(f"{short(one.image)} missing on {nodes}", f"{', '.join(parts)}{_disk(group)}")


def _rounded(seconds: int) -> int:
    """No estimate is good to the second."""
    return seconds if seconds < 60 else round(seconds, -1)


def _layers(one: Transfer) -> str:
    if not one.layers_shared:
        return ""
    are = "is" if one.layers_shared == 1 else "are"
    return f" ({one.layers_shared} of {one.layers} layers {are} there)"


def _origin(one: Transfer) -> str:
    """Where the bytes come from: a neighbour that has them is asked first."""
    if one.seed_holds:
        return f" from {one.seed}, which has it"
    if not one.origin:
        return ""
    return " from the vault" if one.origin == "vault" else f" from {one.origin}"


def _disk(group: Sequence[Transfer]) -> str:
    """Free disk afterwards: once when it looks the same everywhere, else by node."""
    after = {item.node: _free(item.disk_free_after_bytes) for item in group if item.disk_free_after_bytes is not None}
    if not after:
        return ""
    if len(set(after.values())) == 1:
        return f"; disk {next(iter(after.values()))} free after"
    return f"; disk free after: {', '.join(f'{node} {free}' for node, free in after.items())}"


def _free(count: int) -> str:
    """Whole GiB where there are some."""
    return f"{count / GIB:.0f} GiB" if 10 * GIB <= count < 1024 * GIB else size(count)
