"""Carries out a FETCH: a model comes from another node, is proved, and gets its name only then."""

from dataclasses import dataclass

from reconciler.core.desired import Gang
from reconciler.core.fetching import can_give, copy_of
from reconciler.core.machine import Status
from reconciler.core.model_sources import Source, everywhere, has_revision, has_sums
from reconciler.core.model_stock import FileProof, ModelHolding, proved
from reconciler.core.models import ModelCopy, ModelFacts, ModelWant
from reconciler.core.plan import Plan, Step
from reconciler.execution.attempts import CONNECT_S
from reconciler.execution.fencing import FencedNode
from reconciler.execution.moved import Moved, OnProgress
from reconciler.execution.outcomes import NOOP, Outcome, failed, stale
from reconciler.nodes.protocols import Fleet, Node


@dataclass(frozen=True)
class Fetching:
    """The copies of one run."""

    plan: Plan
    fleet: Fleet

    async def fetch(self, step: Step, node: FencedNode, on_progress: OnProgress) -> Outcome:
        """Look at both sides, copy what is missing, hash what the spec names, give it its name, look once more."""
        gang = self.plan.gang(step.gang)
        want = _want(gang, node.name, step.target)
        found = await node.models.look(want.place, [path for path, _ in want.verify])
        if found.is_whole and has_revision(want, found) and has_sums(want, found):
            return NOOP
        giver = await self.fleet.connect(step.seed or "", CONNECT_S)
        source = await _source(gang, giver, want)
        if source is None:
            return stale(f"model {want.name} is not whole on {giver.name} any more")
        copy = copy_of(source, want, found, _address(gang, node.name))
        if found.disk_free_bytes is not None and copy.bytes > found.disk_free_bytes:
            return failed(f"no room for model {want.name} on {node.name} any more")
        moved = Moved(on_progress)
        await node.models.fetch(copy, moved)
        wrong = await _wrong(node, want, source.facts, copy, moved)
        if wrong:
            return failed(f"model {want.name} came to {node.name} from {giver.name}, and is not right: {wrong}")
        await node.models.adopt(copy)
        return await self._proved(node, want, source.facts, moved)

    async def _proved(self, node: FencedNode, want: ModelWant, given: ModelFacts, moved: Moved) -> Outcome:
        """What the containers will see is what the other node has."""
        there = await node.models.look(want.place)
        lengths = {item.path: item.bytes for item in there.files}
        short = [item.path for item in given.files if lengths.get(item.path) != item.bytes]
        if short or not there.is_whole:
            return failed(
                f"model {want.name} on {node.name} is not what {moved.told()} should be: {', '.join(short[:3])}"
            )
        return Outcome(Status.APPLIED, moved.told())


async def _wrong(node: FencedNode, want: ModelWant, given: ModelFacts, copy: ModelCopy, moved: Moved) -> str:
    """What of the spec's checksums does not hold of what came, before it is counted; "" when all do."""
    sums = dict(want.verify)
    if not sums:
        return ""
    told = dict(await node.models.prove(copy.arrives, sums.keys(), sums.keys(), moved))
    holding = ModelHolding(node.name, want, given)
    return ", ".join(f"{item.path} {item.why}" for item in proved(holding, _with_links(given, told)).faults[:3])


def _with_links(given: ModelFacts, told: dict[str, FileProof]) -> dict[str, FileProof]:
    """Blobs of the Hugging Face cache carry their checksum as a name, and are hashed by `fleet models verify` alone."""
    named = {item.path: FileProof(item.bytes, item.named_digest) for item in given.files if item.named_digest}
    return {**named, **told}


async def _source(gang: Gang, giver: Node, want: ModelWant) -> Source | None:
    """What the giving node has now; None when it cannot give it any more."""
    for name, address, wants in everywhere(gang):
        theirs = next((item for item in wants if item.name == want.name), None)
        if name == giver.name and theirs is not None:
            facts = await giver.models.look(theirs.place)
            source = Source(name, address, theirs, facts)
            return source if facts.is_whole and can_give(source, want) else None
    return None


def _want(gang: Gang, node: str, name: str) -> ModelWant:
    return next(want for rank in gang.ranks if rank.node == node for want in rank.models if want.name == name)


def _address(gang: Gang, node: str) -> str:
    return next(rank.address for rank in gang.ranks if rank.node == node)
