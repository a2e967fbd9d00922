"""What the secrets of running containers are now: told by marks, where the key that marked them is here."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from reconciler.core.observed import NodeFacts, Observed, Placed
from reconciler.core.secret_marks import SecretMarks
from reconciler.execution.secret_key import SecretKey, SecretKeyError, read_key
from reconciler.nodes.errors import NodeError
from reconciler.nodes.protocols import Fleet

Marks = Mapping[tuple[str, str], SecretMarks]
"""By node and id of the container."""


async def live_secrets(nodes: Fleet, observed: Observed, fleet: str, deadline_s: float) -> Marks:
    """Of each running container of this fleet that was marked with the key that is here. One that does not tell in time
    is left out: nothing is known of it.
    """
    marked = _marked(observed, fleet)
    if not marked:
        return {}
    try:
        key = read_key()
    except SecretKeyError:
        return {}
    asked = [item for item in marked if item.container.owner and item.container.owner.secrets.key == key.id]
    told = await asyncio.gather(*(_told(nodes, item, key, deadline_s) for item in asked))
    return {(item.node, item.container.id): marks for item, marks in zip(asked, told, strict=True) if marks}


def with_live_secrets(observed: Observed, marks: Marks) -> Observed:
    """What was observed, with these."""
    if not marks:
        return observed
    nodes = {
        name: _with(state, name, marks) if isinstance(state, NodeFacts) else state
        for name, state in observed.nodes.items()
    }
    return replace(observed, nodes=nodes)


def _marked(observed: Observed, fleet: str) -> list[Placed]:
    known = ((name, state) for name, state in observed.nodes.items() if isinstance(state, NodeFacts))
    return [
        Placed(name, item)
        for name, state in known
        for item in state.containers
        if item.is_running and item.owner and item.owner.fleet == fleet and item.owner.secrets.marks
    ]


async def _told(nodes: Fleet, item: Placed, key: SecretKey, deadline_s: float) -> SecretMarks | None:
    try:
        async with asyncio.timeout(deadline_s):
            node = await nodes.connect(item.node, deadline_s)
            found = await node.containers.live_marks(item.container.id, key.mark)
    except (TimeoutError, NodeError):
        return None
    return SecretMarks(key.id, tuple(sorted(found.items())))


def _with(state: NodeFacts, name: str, marks: Marks) -> NodeFacts:
    containers = (
        replace(item, live_secrets=found) if (found := marks.get((name, item.id))) else item
        for item in state.containers
    )
    return replace(state, containers=tuple(containers))
