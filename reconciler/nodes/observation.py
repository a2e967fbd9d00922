"""Reads many nodes at once. A node that cannot be read is a fact, not an exception."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from reconciler.core.observed import NodeFacts, Unknown, UnknownKind
from reconciler.nodes.errors import NodeError
from reconciler.nodes.protocols import Fleet

DEADLINE_S = 10.0


async def observe_all(
    fleet: Fleet,
    nodes: Iterable[str],
    deadline_s: float = DEADLINE_S,
    paths: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> dict[str, NodeFacts | Unknown]:
    """The facts of every node, in the order given, after `deadline_s` at the latest.

    `paths`: what is looked for on a node, by its name; the facts say what of it is not there.
    """
    names = list(dict.fromkeys(nodes))
    found = await asyncio.gather(*(observe_one(fleet, name, deadline_s, paths.get(name, ())) for name in names))
    return dict(zip(names, found, strict=True))


async def observe_one(
    fleet: Fleet, name: str, deadline_s: float = DEADLINE_S, paths: Collection[str] = ()
) -> NodeFacts | Unknown:
    """The facts of one node, or why there are none."""
    until_s = asyncio.get_running_loop().time() + deadline_s
    try:
        node = await fleet.connect(name, deadline_s)  # keeps the deadline itself, and knows best why it failed
        async with asyncio.timeout_at(until_s):
            return await node.observer.observe(paths)
    except TimeoutError:
        return Unknown(name, UnknownKind.TIMEOUT, f"no answer within {deadline_s:g} s", "is it on, and not overloaded?")
    except NodeError as error:
        return error.as_unknown(name)
    except Exception as error:  # noqa: BLE001 - an answer nobody foresaw is a fact of this node, not the end of the fleet
        reason = f"its answer cannot be understood ({type(error).__name__}: {error})"
        return Unknown(name, UnknownKind.BAD_REPLY, reason, "is its Docker Engine a version that fleet knows?")
