"""Which secrets plans look at, and what is said of those of which it is not known whether they changed."""

from collections.abc import Iterator, Mapping

from reconciler.core.desired import Desired, RankSpec, SecretRef
from reconciler.core.observed import Container, NodeFacts, Observed, Unknown
from reconciler.core.secret_marks import is_compared, references


def marked_references(desired: Desired, states: Mapping[str, NodeFacts | Unknown], key: str) -> frozenset[str]:
    """The references of which some container of ours has a mark under the key of this id: what is worth resolving."""
    return frozenset(
        reference
        for container, name, reference in _made(desired, states)
        if container.owner and container.owner.secrets.key == key and container.owner.secrets.of(name)
    )


def secret_notes(desired: Desired, observed: Observed) -> tuple[str, ...]:
    """A sentence for each secret that could not be compared with the one a running container was made with, and why."""
    found = (
        (container.owner.gang, name, _why_not(container, name, reference, observed))
        for container, name, reference in _made(desired, observed.nodes)
        if container.owner and container.is_running
    )
    notes = (f"{gang}: whether env.{name} changed is not known: {why}" for gang, name, why in found if why)
    return tuple(dict.fromkeys(notes))


def _why_not(container: Container, name: str, reference: str, observed: Observed) -> str:
    made, seen = container.owner.secrets if container.owner else None, observed.secrets
    if made is None or not made.of(name):
        return "the running container was made without a key to mark it with"
    if not seen.marks.key:
        return seen.no_key or "the secrets were not looked at"
    if made.key != seen.marks.key:
        return f"it was marked with another key, {made.key} (the one here is {seen.marks.key})"
    return seen.why_not(reference)


def _made(desired: Desired, states: Mapping[str, NodeFacts | Unknown]) -> Iterator[tuple[Container, str, str]]:
    """Each container of each wanted rank with each of its compared secrets: env key and reference."""
    for gang in sorted(desired.gangs, key=lambda item: item.address):
        for rank in gang.ranks:
            wanted = [(name, reference) for name, reference in references(rank.container) if is_compared(reference)]
            for container in _of(rank, gang.address, desired.fleet, states.get(rank.node)) if wanted else ():
                live = dict(container.env)
                same = (pair for pair in wanted if live.get(pair[0]) == SecretRef(pair[1]))
                yield from ((container, name, reference) for name, reference in same)


def _of(rank: RankSpec, gang: str, fleet: str, state: NodeFacts | Unknown | None) -> Iterator[Container]:
    for item in state.containers if isinstance(state, NodeFacts) else ():
        owner = item.owner
        if owner is not None and (owner.fleet, owner.gang, owner.rank) == (fleet, gang, rank.index):
            yield item
