"""Which models a lane reads, where its nodes have them, and where its containers see them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import specs
from reconciler.core.desired import Desired
from reconciler.core.model_sources import everywhere
from reconciler.core.model_stock import Wanted
from reconciler.core.models import Degrees, ModelPlace, ModelWant, Shelf
from reconciler.engines.base import Job, Seat
from specs.paths import normal_path, placeholders


def models_wanted(job: Job, seat: Seat) -> tuple[ModelWant, ...]:
    """The model that the lane serves, where a mount shows it (else it may be in the image), and the one that drafts."""
    lane, model = job.lane, job.model
    found = []
    if model is not None and lane.model is not None and model.path is not None:
        want = _want(job, seat, lane.model, model, job.model_path(seat))
        found += [want] if want.is_mounted else []
    if model is not None and model.draft is not None and job.draft is not None and job.draft.path is not None:
        found.append(_want(job, seat, model.draft, job.draft, job.draft_path(seat)))
    return tuple(found)


def shelves(job: Job, others: Iterable[Seat]) -> Iterator[Shelf]:
    """Where nodes that the lane does not take would have its models; not for those without the paths that it names."""
    texts = [item.source for item in job.lane.mounts]
    texts += [model.path for model in (job.model, job.draft) if model is not None and model.path is not None]
    names = {name for text in texts for name in placeholders(text)}
    for seat in others:
        if names <= seat.node.paths.keys() and (wants := models_wanted(job, seat)):
            yield Shelf(seat.name, seat.address, wants)


def models_by_node(spec: specs.Spec, desired: Desired) -> tuple[Wanted, ...]:
    """Each model that has a path, on each node that has that path: as its lanes see it there, else as the node does."""
    found: dict[tuple[str, str], Wanted] = {}
    for gang in desired.gangs:
        for number, (node, _, wants) in enumerate(everywhere(gang)):
            lanes = (gang.lane,) if number < len(gang.ranks) else ()
            for want in (want for want in wants if want.is_mounted):
                before = found.get((want.name, node), Wanted(node, want))
                seen = before if before.lanes or not lanes else Wanted(node, want)
                found[want.name, node] = replace(seen, lanes=tuple(dict.fromkeys((*before.lanes, *lanes))))
    for name, model in spec.models.items():
        for node, declared in spec.nodes.items():
            if model.path is not None and set(placeholders(model.path)) <= declared.paths.keys():
                path = normal_path(declared.expand(model.path))
                verify = tuple(sorted(model.verify.items()))
                want = ModelWant(name, ModelPlace(path, path), revision=model.revision, verify=verify, sync=model.sync)
                found.setdefault((name, node), Wanted(node, want))
    return tuple(item for _, item in sorted(found.items()))


def _want(job: Job, seat: Seat, name: str, model: specs.Model, inside: str) -> ModelWant:
    parallel = job.lane.parallel
    place = ModelPlace(normal_path(seat.node.expand(model.path or "")), inside, _mounts(job, seat))
    is_draft = model is job.draft
    return ModelWant(
        name=name,
        place=place,
        is_draft=is_draft,
        is_mounted=any(place.path == source or place.path.startswith(f"{source}/") for source, _ in place.mounts),
        revision=model.revision,
        verify=tuple(sorted(model.verify.items())),
        sync=model.sync,
        degrees=Degrees() if is_draft else Degrees(parallel.tensor, parallel.pipeline, parallel.expert),
    )


def _mounts(job: Job, seat: Seat) -> tuple[tuple[str, str], ...]:
    return tuple((normal_path(seat.node.expand(item.source)), normal_path(item.target)) for item in job.lane.mounts)
