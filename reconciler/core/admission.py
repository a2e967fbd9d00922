"""What can be known to fail is refused before anything is touched.

Each check is a function of one gang that has to boot and of the facts of its nodes; it yields refusals. The list
`CHECKS` is the whole of it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from reconciler.core.classify import GangView, RankView
from reconciler.core.desired import Desired, ImagePin, NodeDeclaration
from reconciler.core.figures import size
from reconciler.core.identity import proved_name, unproved_name
from reconciler.core.lock import PUBLISHED
from reconciler.core.model_checks import MODEL_CHECKS
from reconciler.core.models import ModelWant
from reconciler.core.observed import Container, Listener, NodeFacts, Observed, SourceImage, SourceMissing
from reconciler.core.plan import Refusal
from reconciler.core.remarks import is_of
from reconciler.core.staging import Staging, Want


@dataclass(frozen=True)
class Case:
    """One gang that is about to boot, with what its checks may look at."""

    desired: Desired
    observed: Observed
    view: GangView
    staging: Staging

    def declared(self, node: str) -> NodeDeclaration:
        """What the spec says of the node."""
        return next(item for item in self.desired.nodes if item.name == node)

    def refuse(self, code: str, rank: RankView, summary: str, hint: str = "") -> Refusal:
        """A refusal of this gang at one of its nodes."""
        return Refusal(code, self.view.gang.address, rank.rank.node, summary, hint)

    def foreign(self, facts: NodeFacts) -> Iterator[Container]:
        """Running containers of the node that this fleet did not make and may not stop, by name."""
        going = self.going(facts)
        for item in sorted(facts.containers, key=lambda found: found.name):
            if item.is_running and not is_of(item, self.desired.fleet) and item.id not in going:
                yield item

    def is_fetched(self, rank: RankView, want: ModelWant) -> bool:
        """Whether the plan brings this model to the rank's node."""
        return False

    def going(self, facts: NodeFacts) -> frozenset[str]:
        """Foreign containers of the node that are stopped for the gang."""
        return frozenset(item.container.id for item in self.view.displaced if item.node == facts.node)


def _platform(case: Case, rank: RankView) -> Iterator[Refusal]:
    declared = case.declared(rank.rank.node).platform
    if declared != rank.facts.platform:
        yield case.refuse(
            "platform",
            rank,
            f"{rank.rank.node} is {rank.facts.platform}, the spec says {declared}",
            "correct `platform` of the node in the spec",
        )


def _image_platform(case: Case, rank: RankView) -> Iterator[Refusal]:
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


def _image_exists(case: Case, rank: RankView) -> Iterator[Refusal]:
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


def _disk(case: Case, rank: RankView) -> Iterator[Refusal]:
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


def _memory(case: Case, rank: RankView) -> Iterator[Refusal]:
    need, total = rank.rank.memory_bytes, rank.facts.memory_total_bytes
    if need is not None and total is not None and need > total:
        yield case.refuse(
            "memory",
            rank,
            f"the lane needs {need / 2**30:.1f} GiB a rank; {rank.rank.node} has {total / 2**30:.1f} GiB in all",
        )


def _gpus(case: Case, rank: RankView) -> Iterator[Refusal]:
    need, there = rank.rank.container.gpus, len(rank.facts.gpus)
    if need > there:
        yield case.refuse(
            "gpus",
            rank,
            f"the lane needs {need} GPU{'s' * (need > 1)} a rank; {rank.rank.node} shows {there or 'none'}",
            "`nvidia-smi` there has to list them; a lane or node without GPUs says `gpus: 0`",
        )


def _paths(case: Case, rank: RankView) -> Iterator[Refusal]:
    told = {want.place.path for want in rank.rank.models}
    for path in rank.rank.paths:
        if path not in told and path in rank.facts.missing_paths:
            yield case.refuse(
                "path",
                rank,
                f"{path} is not there on {rank.rank.node}, or is a link that leads nowhere",
                "bring it there, or correct `path` of the model or `mounts` of the lane",
            )


def _foreign_gpu(case: Case, rank: RankView) -> Iterator[Refusal]:
    if rank.rank.container.gpus == 0:
        return
    for item in case.foreign(rank.facts):
        if item.gpus != 0:
            yield case.refuse(
                "foreign-gpu",
                rank,
                f"GPU of {rank.rank.node} is held by foreign container {item.name} ({item.image})",
                f"stop it yourself: ssh to {rank.rank.node} and `docker stop {item.name}`",
            )


def _port(case: Case, rank: RankView) -> Iterator[Refusal]:
    for port in rank.rank.ports:
        listener = _foreign_listener(case, rank.facts, port)
        if listener is not None:
            holder = _holder(case, rank.facts, listener)
            yield case.refuse(
                "foreign-port",
                rank,
                f"port {port} of {rank.rank.node} is taken by {holder}",
                "stop it yourself, or give the cluster or lane another port",
            )


def _foreign_listener(case: Case, facts: NodeFacts, port: int) -> Listener | None:
    """Who listens on the port, unless it is a container of this fleet (which the plan stops first)."""
    own = [item for item in facts.containers if item.owner and item.owner.fleet == case.desired.fleet]
    going = case.going(facts)
    own_ids = {item.id for item in own} | going
    own_ports = {port for item in own if item.is_running and item.owner for port in item.owner.ports}
    for listener in sorted(facts.listeners, key=lambda item: (item.address, item.process or "")):
        if listener.port != port:
            continue
        if listener.container_id in own_ids:
            continue
        if listener.container_id is None and (port in own_ports or going):  # whose it is only root may see
            continue
        return listener
    return _published(case, facts, port)


def _published(case: Case, facts: NodeFacts, port: int) -> Listener | None:
    for item in case.foreign(facts):
        if port in item.published_ports:
            return Listener(port, container_id=item.id)
    return None


def _holder(case: Case, facts: NodeFacts, listener: Listener) -> str:
    """The listener in a person's words: the container by name where it can be known."""
    named = next((item for item in facts.containers if item.id == listener.container_id), None)
    if named is not None and named.owner is not None:
        return f"container {named.name} of fleet {named.owner.fleet}"
    if named is not None:
        return f"foreign container {named.name} ({named.image})"
    published = [item.name for item in case.foreign(facts) if listener.port in item.published_ports]
    if published:
        return f"foreign container {published[0]}"
    if listener.process:
        return f"process {listener.process}, which is not a container of this fleet"
    suspects = ", ".join(sorted(item.name for item in case.foreign(facts))) or "a process outside Docker"
    return f"something this fleet did not start (running there: {suspects})"


def _name(case: Case, rank: RankView) -> Iterator[Refusal]:
    """A container that is there already gets its other name (proved or not): nobody else may have that one."""
    if rank.fit is None:
        return
    proved = proved_name(rank.fit.name)
    other = proved if rank.fit.name != proved else unproved_name(proved)
    if rank.facts.container(other) is not None:
        yield case.refuse(
            "name",
            rank,
            f"another container of {rank.rank.node} has the name {other}, which {rank.fit.name} has to get",
            f"look at both with `docker ps -a` on {rank.rank.node}; rename or remove the one that is not needed",
        )


Check = Callable[[Case, RankView], Iterable[Refusal]]

CHECKS: tuple[Check, ...] = (
    _platform,
    _image_exists,
    _image_platform,
    _disk,
    _memory,
    _gpus,
    _paths,
    *MODEL_CHECKS,
    _foreign_gpu,
    _port,
    _name,
)

IMAGE_CHECKS: tuple[Check, ...] = (_platform, _image_exists, _image_platform, _disk)
"""For a gang whose image is brought, and nothing else."""

PROOF_CHECKS: tuple[Check, ...] = (_name,)
"""For a gang that runs as wanted and has only to be proved."""


def refusals(case: Case, checks: tuple[Check, ...]) -> tuple[Refusal, ...]:
    """Every reason not to boot (or prove) this gang now, in the order of the checks and ranks."""
    return tuple(found for check in checks for rank in case.view.ranks for found in check(case, rank))
