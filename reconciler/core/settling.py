"""What an open journal entry turned out to be, by looking at its node: applied, or not done.

An intent has no outcome when its controller was killed, its step was cancelled or its reply was lost. Operation ids and
names are on the node, so nobody has to be asked.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from reconciler.core.explain import describe_end
from reconciler.core.identity import is_proved, proved_name, unproved_name
from reconciler.core.machine import Status
from reconciler.core.observed import Container, NodeFacts
from reconciler.core.plan import Op


class Intent(Protocol):
    """What the journal says of an effect that was about to happen."""

    @property
    def node(self) -> str | None:
        """Where; None for a step of a whole gang."""
        ...

    @property
    def op(self) -> str:
        """The kind of effect, a value of `Op`."""
        ...

    @property
    def target(self) -> str:
        """A container's name, an image reference or a gang's address."""
        ...

    @property
    def operation(self) -> str:
        """The id that the effect leaves on the node."""
        ...


Found = tuple[Status, str]
"""`APPLIED` or `SKIPPED` (it was not done), and a sentence for people."""

LEFT_NOTHING = frozenset({Op.ROOM, Op.READY, Op.VERIFY})
"""They wait and change nothing: what is left of one is nothing."""


def settled(intent: Intent, facts: NodeFacts | None) -> Found | None:
    """What became of the intent. `facts` are None while its node cannot be read: then it stays open, and this is None.

    The facts must be younger than the end of whoever wrote the intent.
    """
    if intent.op in LEFT_NOTHING:
        return _not_done("it waited, and was cut short")
    if facts is None:
        return None
    return _LOOKS.get(intent.op, _of_another_version)(intent, facts)


def forgotten(intent: Intent) -> Found:
    """The end of an intent whose node is not in the spec any more: nobody will ever look."""
    return _not_done(f"{intent.node} is not in the spec any more: what became of it there is not known")


def _create(intent: Intent, facts: NodeFacts) -> Found:
    mine = (item for item in facts.containers if item.owner and item.owner.operation == intent.operation)
    made = next(mine, None)
    if made is None:
        return _not_done(f"no container of this operation is on {facts.node}")
    return _done(f"{made.name} is on {facts.node}")


def _start(intent: Intent, facts: NodeFacts) -> Found:
    """One that ended again may have ended before: then it was not this start that is told of."""
    found = _named(intent, facts)
    told = f"{intent.target} on {facts.node} {_state(found)}"
    return _done(told) if found is not None and found.is_running else _not_done(told)


def _stop(intent: Intent, facts: NodeFacts) -> Found:
    found = _named(intent, facts)
    told = f"{intent.target} on {facts.node} {_state(found)}"
    return _not_done(told) if found is not None and found.is_running else _done(told)


def _renamed(intent: Intent, facts: NodeFacts) -> Found:
    """The mark of proof is in the name, so either of the two names tells."""
    wanted = unproved_name(intent.target) if intent.op == Op.UNPROVE else proved_name(intent.target)
    found = _named(intent, facts)
    if found is None:
        return _not_done(f"{intent.target} is gone from {facts.node}")
    told = f"{found.name} on {facts.node} {'is' if is_proved(found.name) else 'is not'} marked as proved"
    return _done(told) if found.name == wanted else _not_done(told)


def _remove(intent: Intent, facts: NodeFacts) -> Found:
    found = _named(intent, facts)
    if found is None:
        return _done(f"{intent.target} is gone from {facts.node}")
    return _not_done(f"{found.name} is still on {facts.node}")


def _pull(intent: Intent, facts: NodeFacts) -> Found:
    digest = intent.target.rpartition("@")[2]
    if any(image.usable and digest in {image.id, *image.digests} for image in facts.images):
        return _done(f"the image is on {facts.node}")
    return _not_done(f"the image is not whole on {facts.node}; layers that came are kept where its Docker keeps them")


def _preflight(intent: Intent, facts: NodeFacts) -> Found:
    """It changes nothing; what may be left of it goes with the next apply."""
    left = facts.container(intent.target)
    return _not_done("it was cut short" + (f", and {left.name} is left on {facts.node}" if left is not None else ""))


def _of_another_version(intent: Intent, facts: NodeFacts) -> Found:
    return _not_done(
        f"'{intent.op}' on {facts.node} is of another version of fleet, which alone knows what to look for"
    )


def _fetch(intent: Intent, facts: NodeFacts) -> Found:
    """A copy that is whole says so in the next plan; one that is not goes on from what has come."""
    return _not_done(f"what came of {intent.target} is kept beside its place on {facts.node}, and is not counted")


_LOOKS: Mapping[str, Callable[[Intent, NodeFacts], Found]] = {
    Op.PULL: _pull,
    Op.FETCH: _fetch,
    Op.PREFLIGHT: _preflight,
    Op.CREATE: _create,
    Op.START: _start,
    Op.STOP: _stop,
    Op.UNPROVE: _renamed,
    Op.CONFIRM: _renamed,
    Op.REMOVE: _remove,
}


def _named(intent: Intent, facts: NodeFacts) -> Container | None:
    """The container that the intent means, by its name with or without the mark of proof."""
    name = proved_name(intent.target)
    return facts.container(name) or facts.container(unproved_name(name))


def _state(container: Container | None) -> str:
    return "runs" if container is not None and container.state == "running" else describe_end(container)


def _done(told: str) -> Found:
    return Status.APPLIED, f"settled by looking: {told}"


def _not_done(told: str) -> Found:
    return Status.SKIPPED, f"not done: {told}"
