"""The stock of models: what each node has of which, judged as a lane's containers would see it; and what was proved."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from reconciler.core.model_sources import has_revision, wrong_sums
from reconciler.core.models import ModelFacts, ModelWant
from reconciler.core.observed import Unknown


class Standing(StrEnum):
    """What a node has of a model. Values are stable: they are in JSON outputs."""

    WHOLE = "whole"  # all files that can be known to belong to it, and every link leads somewhere
    PARTIAL = "partial"  # files that its index names are not there
    BROKEN = "broken"  # it is on the node, and links break inside the container
    OTHER = "other"  # another revision, or other checksums, than the spec says
    ABSENT = "absent"  # nothing is there
    UNKNOWN = "unknown"  # the login may not look


@dataclass(frozen=True)
class Wanted:
    """A model, and a node that may have it. `lanes`: those that are placed on the node and read it."""

    node: str
    want: ModelWant
    lanes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModelHolding:
    """What a node has of a model."""

    node: str
    want: ModelWant
    facts: ModelFacts
    lanes: tuple[str, ...] = ()

    @property
    def standing(self) -> Standing:
        """The first that holds."""
        facts = self.facts
        rules = (
            (facts.there == "unknown", Standing.UNKNOWN),
            (facts.there == "absent", Standing.ABSENT),
            (bool(facts.bad_links), Standing.BROKEN),
            (bool(facts.missing), Standing.PARTIAL),
            (not has_revision(self.want, facts) or bool(list(wrong_sums(self.want, facts))), Standing.OTHER),
        )
        return next((standing for holds, standing in rules if holds), Standing.WHOLE)

    @property
    def why(self) -> str:
        """What there is to say of the standing, for people."""
        facts = self.facts
        if self.standing is Standing.PARTIAL:
            return f"lacks {facts.missing[0]}{_more(len(facts.missing))}"
        if self.standing is Standing.BROKEN:
            link = facts.bad_links[0]
            return f"{link.path or facts.place.path} leads to {link.end}{_more(len(facts.bad_links))}"
        if self.standing is Standing.OTHER:
            wrong = [f"{path} {what}" for path, what in wrong_sums(self.want, facts)]
            return wrong[0] if wrong else f"revision {facts.revision[:12]}, not {(self.want.revision or '')[:12]}"
        return f"for {', '.join(self.lanes)}" if self.lanes else ""


@dataclass(frozen=True)
class ModelStock:
    """The models of the spec on all nodes that were read. `unknown`: those that were not."""

    fleet: str
    holdings: tuple[ModelHolding, ...]
    unknown: tuple[Unknown, ...] = ()

    @property
    def expected(self) -> tuple[ModelHolding, ...]:
        """What is there, and what has to be: a node that no lane is placed on may lack a model."""
        return tuple(item for item in self.holdings if item.lanes or item.standing is not Standing.ABSENT)


@dataclass(frozen=True)
class FileProof:
    """What reading a file told. `needs_bytes`: how long it says that it is (safetensors); None where it does not.

    `digest`: "" where it was not hashed. `is_sound`: whether it begins as its kind of file does.
    """

    bytes: int
    digest: str = ""
    needs_bytes: int | None = None
    is_sound: bool = True


@dataclass(frozen=True)
class FileFault:
    """A file that is not what it has to be."""

    path: str
    why: str


@dataclass(frozen=True)
class Proof:
    """What reading a model on a node came to. `files`, `bytes`: what was hashed, and found right."""

    node: str
    model: str
    files: int
    bytes: int
    faults: tuple[FileFault, ...] = ()


def sums_to_prove(want: ModelWant, facts: ModelFacts) -> dict[str, str]:
    """Checksum by file: what `verify` names, and what the Hugging Face cache names its big files by."""
    named = {item.path: item.named_digest for item in facts.files if item.named_digest}
    return {**named, **dict(want.verify)}


def proved(holding: ModelHolding, told: dict[str, FileProof]) -> Proof:
    """The judgement of what was read: `told` by file."""
    wanted = sums_to_prove(holding.want, holding.facts)
    faults = (*_lacking(holding), *_wrong(wanted, told))
    right = [item for path, item in told.items() if item.digest and wanted.get(path) == item.digest]
    return Proof(holding.node, holding.want.name, len(right), sum(item.bytes for item in right), faults)


def _lacking(holding: ModelHolding) -> Iterator[FileFault]:
    if holding.standing in {Standing.ABSENT, Standing.UNKNOWN}:
        yield FileFault("", f"is {holding.standing}: {holding.want.place.path}")
        return
    yield from (FileFault(path, "is not there") for path in holding.facts.missing)
    yield from (FileFault(link.path, f"leads to {link.end}, which is not there") for link in holding.facts.bad_links)
    if not has_revision(holding.want, holding.facts):
        yield FileFault("", f"is revision {holding.facts.revision[:12]}, not {(holding.want.revision or '')[:12]}")


def _wrong(wanted: dict[str, str], told: dict[str, FileProof]) -> Iterator[FileFault]:
    for path in sorted({*wanted, *told}):
        item = told.get(path)
        if item is None:
            yield FileFault(path, "cannot be read")
        elif not item.is_sound:
            yield FileFault(path, "does not begin as a safetensors file does: it is damaged, or never came whole")
        elif item.needs_bytes is not None and item.needs_bytes != item.bytes:
            yield FileFault(path, f"has {item.bytes} bytes, and says that it has {item.needs_bytes}")
        elif path in wanted and item.digest != wanted[path]:
            yield FileFault(path, f"has {item.digest[:19] or 'no checksum'}, not {wanted[path][:19]}")


def _more(count: int) -> str:
    return f" and {count - 1} more" if count > 1 else ""
