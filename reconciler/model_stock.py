"""The stock of models: what is on the nodes, and reading it to the last byte.

found = await stock(fleet)
proofs = await prove(fleet, found.holdings)
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from functools import partial

from reconciler.core.model_stock import ModelHolding, ModelStock, Proof, Standing, Wanted, proved, sums_to_prove
from reconciler.core.models import ModelFacts, ModelPlace
from reconciler.core.observed import Unknown, UnknownKind
from reconciler.engines.models import models_by_node
from reconciler.fleet import OBSERVE_S, Fleet
from reconciler.nodes.errors import NodeError
from reconciler.nodes.protocols import Progress

Look = Callable[[ModelPlace, Collection[str]], Awaitable[ModelFacts]]
OnProof = Callable[[str, str, Progress], None]
"""Told of the node, the model, and what is being read."""


async def stock(
    fleet: Fleet, models: Collection[str] = (), nodes: Collection[str] = (), deadline_s: float = OBSERVE_S
) -> ModelStock:
    """The models of the spec (or these) on all nodes (or these), asked for all at once. Changes nothing.

    A node that does not answer within `deadline_s` is unknown.
    """
    by_node: dict[str, list[Wanted]] = {}
    for item in models_by_node(fleet.spec, fleet.desired):
        if (not models or item.want.name in models) and (not nodes or item.node in nodes):
            by_node.setdefault(item.node, []).append(item)
    told = await asyncio.gather(*(_looked_at(fleet, node, found, deadline_s) for node, found in by_node.items()))
    holdings = [item for found in told if isinstance(found, list) for item in found]
    unknown = tuple(found for found in told if isinstance(found, Unknown))
    ordered = sorted(holdings, key=lambda item: (item.want.name, item.node))
    return ModelStock(fleet.desired.fleet, tuple(ordered), unknown)


async def _looked_at(
    fleet: Fleet, node: str, wanted: Iterable[Wanted], deadline_s: float
) -> list[ModelHolding] | Unknown:
    try:
        async with asyncio.timeout(deadline_s):
            session = await fleet.nodes.connect(node, deadline_s)
            return list(await asyncio.gather(*(_holding(session.models.look, item) for item in wanted)))
    except TimeoutError:
        return Unknown(node, UnknownKind.TIMEOUT, f"its models were not told within {deadline_s:g} s")
    except NodeError as error:
        return error.as_unknown(node)


async def _holding(look: Look, wanted: Wanted) -> ModelHolding:
    facts = await look(wanted.want.place, [path for path, _ in wanted.want.verify])
    return ModelHolding(wanted.node, wanted.want, facts, wanted.lanes)


async def prove(
    fleet: Fleet,
    holdings: Iterable[ModelHolding],
    on_progress: OnProof = lambda node, model, news: None,
    on_proof: Callable[[Proof | Unknown], None] = lambda proof: None,
) -> tuple[Proof | Unknown, ...]:
    """Read what each holding is made of: all nodes at once, the models of one node one after the other.

    A node that goes away meanwhile is unknown.
    """
    by_node: dict[str, list[ModelHolding]] = {}
    for item in holdings:
        by_node.setdefault(item.node, []).append(item)
    told = await asyncio.gather(*(_proved(fleet, found, on_progress, on_proof) for found in by_node.values()))
    return tuple(item for found in told for item in found)


async def _proved(
    fleet: Fleet,
    holdings: Iterable[ModelHolding],
    on_progress: OnProof,
    on_proof: Callable[[Proof | Unknown], None],
) -> list[Proof | Unknown]:
    found: list[Proof | Unknown] = []
    for item in holdings:
        try:
            found.append(await _prove(fleet, item, partial(on_progress, item.node, item.want.name)))
        except NodeError as error:
            found.append(error.as_unknown(item.node))
        on_proof(found[-1])
    return found


async def _prove(fleet: Fleet, item: ModelHolding, on_progress: Callable[[Progress], None]) -> Proof:
    if item.standing in {Standing.ABSENT, Standing.UNKNOWN} or not item.facts.files:
        return proved(item, {})
    node = await fleet.nodes.connect(item.node, OBSERVE_S)
    hashes = sums_to_prove(item.want, item.facts)
    sized = {file.path for file in item.facts.files if file.path.endswith(".safetensors")}
    folder = item.facts.real or item.facts.place.path
    return proved(item, dict(await node.models.prove(folder, {*hashes, *sized}, hashes.keys(), on_progress)))
