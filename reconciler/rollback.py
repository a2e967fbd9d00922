"""Going back to an earlier version of one placement, as a person asks for it: a new revision, by the same pipeline.

What a version was is told by the containers that the nodes still have (`retain`), and for older ones by what was
recorded. The spec is not changed: the version that was gone back from is put aside, so that nothing brings it back
until the spec changes or somebody insists.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import state
from reconciler import person
from reconciler.core.classify import by_gang, ours
from reconciler.core.decode import DecodeError, decoded
from reconciler.core.desired import Gang
from reconciler.core.observed import Observed
from reconciler.core.previous import Generation, generations
from reconciler.fleet import Fleet

RECORDED = 50
"""So many recorded revisions are looked at."""


class RollbackError(Exception):
    """There is nothing to go back to. `hint`: what a person can do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Version:
    """A version of a placement that can be gone back to. `origin`: what tells of it, for people."""

    number: int
    gang: Gang
    origin: str


def placement(fleet: Fleet, name: str) -> Gang:
    """The placed gang of an address ("cluster/lane") or of a lane that is placed once. Raises `RollbackError`."""
    found = [gang for gang in fleet.desired.gangs if name in {gang.address, gang.lane}]
    if len(found) == 1:
        return found[0]
    known = ", ".join(sorted(gang.address for gang in (found or fleet.desired.gangs))) or "none"
    if found:
        raise RollbackError(f"{name} is placed more than once", f"say which: {known}")
    raise RollbackError(f"no placement named '{name}'", f"placed are: {known}")


def version(fleet: Fleet, wanted: Gang, observed: Observed, number: int | None) -> Version:
    """The version of this number, or else the newest proved one that is another than what runs now.

    Raises `RollbackError` when there is none, or it needs nodes that the spec does not have; and `state.StateError`.
    """
    there = generations(by_gang(ours(fleet.desired, observed)).get(wanted.address, ()))
    current = next((item.fingerprints for item in there if item.runs), _fingerprints(wanted))
    known = [*_on_nodes(there), *_recorded(fleet, wanted.address)]
    usable = [item for item in known if _fingerprints(item.gang) != current] if number is None else known
    found = next((item for item in usable if number in {None, item.number}), None)
    if found is None:
        numbers = ", ".join(dict.fromkeys(str(item.number) for item in known)) or "none"
        what = (
            f"no revision {number} of {wanted.address} is known"
            if number
            else f"{wanted.address} has no earlier version"
        )
        another = "" if number else "; for another lane in its place, change `placements` and `fleet apply`"
        raise RollbackError(what, f"known revisions: {numbers}{another}")
    missing = sorted(set(found.gang.nodes) - {node.name for node in fleet.desired.nodes})
    if missing:
        raise RollbackError(f"revision {found.number} of {wanted.address} ran on {', '.join(missing)}, not in the spec")
    return found


def _on_nodes(there: tuple[Generation, ...]) -> Iterator[Version]:
    for item in sorted(there, key=lambda found: found.revision, reverse=True):
        if item.is_proved and item.gang is not None:
            yield Version(item.revision, item.gang, "its containers are there")


def _recorded(fleet: Fleet, address: str) -> Iterator[Version]:
    store = fleet.open_state()
    try:
        revisions = store.revisions(address, RECORDED)
    finally:
        store.close()
    for revision in revisions:
        try:
            yield Version(revision.number, decoded(Gang, revision.spec), f"recorded by run {revision.run_id}")
        except DecodeError:
            continue  # recorded by an earlier release, which did not write down what ran


def _fingerprints(gang: Gang) -> tuple[str, ...]:
    return tuple(rank.fingerprint for rank in gang.ranks)


def put_aside(fleet: Fleet, wanted: Gang, back_to: Version, run_id: str, reason: str) -> None:
    """Let nothing bring back what was gone back from, by itself. Raises `state.StateError`."""
    if wanted.fingerprint == back_to.gang.fingerprint:
        return
    why = f": {reason}" if reason else ""
    cause = f"{person.name()} went back to revision {back_to.number}{why}"
    store = fleet.open_state()
    try:
        store.quarantine(state.Quarantine(wanted.address, wanted.fingerprint, cause, run_id, time.time()))
    finally:
        store.close()
