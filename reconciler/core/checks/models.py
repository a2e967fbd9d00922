"""What can be known of a model before a boot reads it.

A model that the login may not look at, or that was not looked at, is not refused: nothing is known of it.
"""

import json
from collections.abc import Iterator, Mapping

from reconciler.core.arithmetic import ModelConfig, parallel_faults
from reconciler.core.checks.case import Case
from reconciler.core.checks.finding import Finding
from reconciler.core.classify import RankView
from reconciler.core.fetching import can_give, fetches_of
from reconciler.core.figures import size
from reconciler.core.model_sources import Source, has_revision, lacking, sources, wrong_sums
from reconciler.core.models import ModelFacts, ModelWant

SHOWN = 3


def model_missing(case: Case, rank: RankView) -> Iterator[Finding]:
    """The folder or file of the model is there, and the container sees it."""
    for want, found in _served(rank):
        if found.there == "absent" and not case.is_fetched(rank, want):
            summary = f"model {want.name} is not on {rank.rank.node}: there is no {want.place.path}"
            yield case.refuse("model-missing", rank, summary, _way(case, rank, want))


def model_partial(case: Case, rank: RankView) -> Iterator[Finding]:
    """All weight files are there that its index names."""
    for want, found in _served(rank):
        if found.missing and not case.is_fetched(rank, want):
            yield case.refuse("model-partial", rank, _not_whole(want, found, rank), _way(case, rank, want))


def model_links(case: Case, rank: RankView) -> Iterator[Finding]:
    """Every link leads somewhere inside the container."""
    for want, found in _looked_at(rank):
        if found.bad_links:
            yield case.refuse(
                "model-links",
                rank,
                f"model {want.name} on {rank.rank.node} breaks in the container: {_links(want, found)}",
                "make the links relative and within one mounted folder, or mount the folder that they lead to, too",
            )


def model_revision(case: Case, rank: RankView) -> Iterator[Finding]:
    """The snapshot is the pinned one, where it says which one it is."""
    for want, found in _looked_at(rank):
        if found.is_there and not has_revision(want, found):
            yield case.refuse(
                "model-revision",
                rank,
                f"model {want.name} on {rank.rank.node} is revision {found.revision[:12]}, "
                f"the spec says {(want.revision or '')[:12]}",
                "correct `path` or `revision` of the model in the spec, or bring the pinned revision",
            )


def model_verify(case: Case, rank: RankView) -> Iterator[Finding]:
    """The checksums of `verify` are right, as far as they were told: of small files in each plan."""
    for want, found in _looked_at(rank):
        wrong = list(wrong_sums(want, found)) if found.is_there and not found.missing else []
        if wrong:
            told = ", ".join(f"{path} {what}" for path, what in wrong[:SHOWN])
            yield case.refuse(
                "model-verify",
                rank,
                f"model {want.name} on {rank.rank.node} is not the one of `verify`: {told}{_more(len(wrong))}",
                f"bring the right files there, or correct `verify`; `fleet models verify {want.name}` hashes them all",
            )


def model_draft(case: Case, rank: RankView) -> Iterator[Finding]:
    """The model that drafts is mounted, there, and whole."""
    for want in (item for item in rank.rank.models if item.is_draft):
        if not want.is_mounted:
            summary = f"no mount of the lane shows draft model {want.name} at {want.place.path}"
            yield case.refuse("model-draft", rank, summary, "add a mount with its folder to the lane")
            continue
        found = rank.facts.model_at(want.place)
        if found is None or not lacking(want, rank.facts) or case.is_fetched(rank, want):
            continue
        summary = f"draft model {want.name} is not on {rank.rank.node}: there is no {want.place.path}"
        if found.there != "absent":
            summary = _not_whole(want, found, rank)
        yield case.refuse("model-draft", rank, summary, _way(case, rank, want))


def model_heads(case: Case, rank: RankView) -> Iterator[Finding]:
    """Its heads, layers and experts can be divided as the lane says, by the `config.json` that was read there."""
    for want, found in _served(rank):
        config = _config(found)
        for fault in parallel_faults(ModelConfig.of(config), want.degrees) if config else ():
            summary = f"model {want.name} cannot be split so, by its config.json on {rank.rank.node}: {fault}"
            yield case.refuse("model-heads", rank, summary, "correct `parallel` of the lane")


def model_disk(case: Case, rank: RankView) -> Iterator[Finding]:
    """What is copied fits on the disk that it is copied to."""
    coming = [item for item in fetches_of(case.view, case.observed) if item.node == rank.rank.node]
    need = sum(item.bytes for item in coming)
    free = min((item.free_bytes for item in coming if item.free_bytes is not None), default=None)
    if free is not None and need > free:
        what = " and ".join(f"model {item.want.name}" for item in coming)
        summary = f"{rank.rank.node} has {size(free)} free, and needs {size(need)} for {what}"
        yield case.refuse("model-disk", rank, summary, f"free space at {coming[0].want.place.path} there")


def _looked_at(rank: RankView) -> Iterator[tuple[ModelWant, ModelFacts]]:
    for want in rank.rank.models:
        found = rank.facts.model_at(want.place) if want.is_mounted else None
        if found is not None:
            yield want, found


def _served(rank: RankView) -> Iterator[tuple[ModelWant, ModelFacts]]:
    return ((want, found) for want, found in _looked_at(rank) if not want.is_draft)


def _not_whole(want: ModelWant, found: ModelFacts, rank: RankView) -> str:
    """ "model x on dgx3 is not whole: it lacks a.safetensors and 3 more; 2 downloads did not end"."""
    left = f"; {found.incomplete} download{'s' * (found.incomplete > 1)} did not end" if found.incomplete else ""
    what = "draft model" if want.is_draft else "model"
    lacks = f"{', '.join(found.missing[:SHOWN])}{_more(len(found.missing))}"
    return f"{what} {want.name} on {rank.rank.node} is not whole: {want.place.path} lacks {lacks}{left}"


def _links(want: ModelWant, found: ModelFacts) -> str:
    first = found.bad_links[0]
    name = f"{want.place.inside}/{first.path}".removesuffix("/")
    why = "where nothing is mounted" if first.is_outside else "which is not there"
    return f"{name} leads to {first.end}, {why}{_more(len(found.bad_links), shown=1, noun='link')}"


def _more(count: int, shown: int = SHOWN, noun: str = "") -> str:
    more = count - shown
    return f" and {more} more{f' {noun}' if noun else ''}{'s' * (bool(noun) and more > 1)}" if more > 0 else ""


def _way(case: Case, rank: RankView, want: ModelWant) -> str:
    """What a person can do about a model that a node lacks."""
    holders = _holders(case, rank, want)
    if holders:
        have = "has" if len(holders) == 1 else "have"
        return f"{' '.join(item.node for item in holders)} {have} it: {_copied(rank, want, holders)}"
    return "bring it there (is its storage mounted?), or correct `path` of the model in the spec"


def _copied(rank: RankView, want: ModelWant, holders: list[Source]) -> str:
    """By which command, or why it cannot be."""
    found = rank.facts.model_at(want.place)
    bare = [] if found is not None and found.has_rsync else [rank.rank.node]
    if bare or not any(item.facts.has_rsync for item in holders):
        return f"install rsync on {' '.join(bare or [item.node for item in holders])}, then `fleet models sync`"
    if not any(can_give(item, want) for item in holders):
        return "it cannot be copied, since its links lead out of the mounted folder, or lie elsewhere here"
    return f"`fleet models sync {want.name}` copies it"


def _holders(case: Case, rank: RankView, want: ModelWant) -> list[Source]:
    found = sources(case.view.gang, case.observed, want.name)
    return [item for item in found if item.node != rank.rank.node]


def _config(found: ModelFacts) -> Mapping[str, object]:
    """What `config.json` says; nothing where it is not there, was cut off, or makes no sense."""
    try:
        read = json.loads(found.config)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}
