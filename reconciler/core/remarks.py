"""What a plan says beside its steps: what was seen, what could not be, and what is not ours."""

from reconciler.core.checks import Finding
from reconciler.core.desired import Desired
from reconciler.core.observed import NodeFacts, Observed, Unknown, facts_digest
from reconciler.core.options import PlanOptions
from reconciler.core.plan import SCHEMA, Foreign, Plan, Refusal


def nothing_to_do(desired: Desired, observed: Observed, options: PlanOptions) -> Plan:
    """A plan that says what was seen, and does nothing: what every plan is made of."""
    return Plan(
        schema=SCHEMA,
        tool=options.tool,
        fleet=desired.fleet,
        spec=desired.spec_fingerprint,
        commit=options.commit,
        observed=digests(observed),
        unknown=unknown(observed),
        refusals=(),
        deferred=(),
        outages=(),
        changes=(),
        steps=(),
        rollbacks=(),
        gangs=(),
        platforms=tuple((node.name, node.platform) for node in sorted(desired.nodes, key=lambda item: item.name)),
        foreign=(),
        unchanged=(),
    )


def digests(observed: Observed) -> tuple[tuple[str, str], ...]:
    """A digest of each known node, by name: what the plan is bound to."""
    known = ((node, observed.facts(node)) for node in sorted(observed.nodes))
    return tuple((node, facts_digest(facts)) for node, facts in known if facts is not None)


def unknown(observed: Observed) -> tuple[Unknown, ...]:
    """The nodes that could not be read, by name."""
    states = (observed.nodes[node] for node in sorted(observed.nodes))
    return tuple(state for state in states if isinstance(state, Unknown))


def foreign(desired: Desired, observed: Observed, going: frozenset[str] = frozenset()) -> tuple[Foreign, ...]:
    """Running containers that this fleet did not make and leaves alone, by node and name; `going` are the others."""
    found = []
    for node in sorted(observed.nodes):
        facts = observed.facts(node)
        for item in () if facts is None else facts.containers:
            if item.is_running and item.id not in going and not item.is_of(desired.fleet):
                ports = _ports_of(facts, item.id) or item.published_ports
                found.append(Foreign(node, item.name, ports, item.gpus))
    return tuple(sorted(found, key=lambda item: (item.node, item.name)))


def _ports_of(facts: NodeFacts | None, container_id: str) -> tuple[int, ...]:
    listeners = () if facts is None else facts.listeners
    return tuple(sorted({item.port for item in listeners if item.container_id == container_id}))


def refusal_of(found: Finding) -> Refusal:
    """A finding that keeps a gang from being done, as the plan tells it."""
    return Refusal(found.check, found.address, found.node, found.evidence, found.mend)
