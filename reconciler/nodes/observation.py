"""Reads many nodes at once. A node that cannot be read is a fact, not an exception."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from reconciler.core.models import ModelFacts, ModelPlace
from reconciler.core.observed import LocalImage, NodeFacts, Unknown, UnknownKind
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


async def with_inventory(
    fleet: Fleet, states: Mapping[str, NodeFacts | Unknown], names: Collection[str], deadline_s: float = DEADLINE_S
) -> dict[str, NodeFacts | Unknown]:
    """The facts of `names` again, their images with layers and sizes: to say what of another image is there already."""
    asked = sorted(name for name in names if isinstance(states[name], NodeFacts))
    told = await asyncio.gather(*(_inventory(fleet, name, deadline_s) for name in asked))
    return {
        name: replace(facts, images=found) if isinstance(found, tuple) else found
        for name, found in zip(asked, told, strict=True)
        if isinstance(facts := states[name], NodeFacts)
    }


async def with_models(
    fleet: Fleet,
    states: Mapping[str, NodeFacts | Unknown],
    wanted: Mapping[str, Mapping[ModelPlace, Collection[str]]],
    deadline_s: float = DEADLINE_S,
) -> dict[str, NodeFacts | Unknown]:
    """The facts of nodes again, with what is at these places, too. A storage that does not answer makes a node unknown:
    what would boot from it would hang.
    """
    asked = sorted(name for name in wanted if isinstance(states[name], NodeFacts))
    told = await asyncio.gather(*(_models(fleet, name, wanted[name], deadline_s) for name in asked))
    return {
        name: replace(facts, models=facts.models + found) if isinstance(found, tuple) else found
        for name, found in zip(asked, told, strict=True)
        if isinstance(facts := states[name], NodeFacts)
    }


async def _models(
    fleet: Fleet, name: str, places: Mapping[ModelPlace, Collection[str]], deadline_s: float
) -> tuple[ModelFacts, ...] | Unknown:
    try:
        async with asyncio.timeout(deadline_s):
            node = await fleet.connect(name, deadline_s)
            return tuple(await asyncio.gather(*(node.models.look(place, files) for place, files in places.items())))
    except TimeoutError:
        hint = "does its storage hang? Try `ls` on the folder of the model there"
        return Unknown(name, UnknownKind.TIMEOUT, f"its models were not told within {deadline_s:g} s", hint)
    except NodeError as error:
        return error.as_unknown(name)


async def _inventory(fleet: Fleet, name: str, deadline_s: float) -> tuple[LocalImage, ...] | Unknown:
    try:
        async with asyncio.timeout(deadline_s):
            node = await fleet.connect(name, deadline_s)
            return await node.images.inventory()
    except TimeoutError:
        return Unknown(name, UnknownKind.TIMEOUT, f"its images were not told within {deadline_s:g} s")
    except NodeError as error:
        return error.as_unknown(name)
