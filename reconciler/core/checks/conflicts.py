"""Who else has what a rank needs: its GPU, its ports, its name."""

from collections.abc import Iterator

from reconciler.core.checks.case import Case
from reconciler.core.checks.finding import Finding
from reconciler.core.classify import RankView
from reconciler.core.identity import proved_name, unproved_name
from reconciler.core.observed import Listener, NodeFacts


def foreign_gpu(case: Case, rank: RankView) -> Iterator[Finding]:
    """Whose it is is not known, so it is not stopped, unless the placement says so by name."""
    if rank.rank.container.gpus == 0:
        return
    for item in case.foreign(rank.facts):
        if item.gpus != 0:
            yield case.refuse(
                "foreign-gpu",
                rank,
                f"GPU of {rank.rank.node} is held by foreign container {item.name} ({item.image})",
                f"stop it yourself: ssh to {rank.rank.node} and `docker stop {item.name}`",
            )


def foreign_port(case: Case, rank: RankView) -> Iterator[Finding]:
    """What of this fleet has the port is stopped first."""
    for port in rank.rank.ports:
        listener = _foreign_listener(case, rank.facts, port)
        if listener is not None:
            holder = _holder(case, rank.facts, listener)
            yield case.refuse(
                "foreign-port",
                rank,
                f"port {port} of {rank.rank.node} is taken by {holder}",
                "stop it yourself, or give the cluster or lane another port",
            )


def _foreign_listener(case: Case, facts: NodeFacts, port: int) -> Listener | None:
    """Who listens on the port, unless it is a container of this fleet (which the plan stops first)."""
    own = [item for item in facts.containers if item.owner and item.owner.fleet == case.desired.fleet]
    going = case.going(facts)
    own_ids = {item.id for item in own} | going
    own_ports = {port for item in own if item.is_running and item.owner for port in item.owner.ports}
    for listener in sorted(facts.listeners, key=lambda item: (item.address, item.process or "")):
        if listener.port != port:
            continue
        if listener.container_id in own_ids:
            continue
        if listener.container_id is None and (port in own_ports or going):  # whose it is only root may see
            continue
        return listener
    return _published(case, facts, port)


def _published(case: Case, facts: NodeFacts, port: int) -> Listener | None:
    for item in case.foreign(facts):
        if port in item.published_ports:
            return Listener(port, container_id=item.id)
    return None


def _holder(case: Case, facts: NodeFacts, listener: Listener) -> str:
    """The listener in a person's words: the container by name where it can be known."""
    named = next((item for item in facts.containers if item.id == listener.container_id), None)
    if named is not None and named.owner is not None:
        return f"container {named.name} of fleet {named.owner.fleet}"
    if named is not None:
        return f"foreign container {named.name} ({named.image})"
    published = [item.name for item in case.foreign(facts) if listener.port in item.published_ports]
    if published:
        return f"foreign container {published[0]}"
    if listener.process:
        return f"process {listener.process}, which is not a container of this fleet"
    suspects = ", ".join(sorted(item.name for item in case.foreign(facts))) or "a process outside Docker"
    return f"something this fleet did not start (running there: {suspects})"


def name(case: Case, rank: RankView) -> Iterator[Finding]:
    """A container that is there already gets its other name (proved or not): nobody else may have that one."""
    if rank.fit is None:
        return
    proved = proved_name(rank.fit.name)
    other = proved if rank.fit.name != proved else unproved_name(proved)
    if rank.facts.container(other) is not None:
        yield case.refuse(
            "name",
            rank,
            f"another container of {rank.rank.node} has the name {other}, which {rank.fit.name} has to get",
            f"look at both with `docker ps -a` on {rank.rank.node}; rename or remove the one that is not needed",
        )


def stray_port(case: Case, rank: RankView) -> Iterator[Finding]:
    """Somebody beside the rank that runs, for example on one address of the port: a part of the callers reach that."""
    if not rank.is_up or rank.fit is None:
        return
    for listener in rank.facts.listeners:
        is_stray = listener.container_id is None and listener.process is not None
        if listener.port in rank.rank.ports and is_stray and _is_told(rank.facts, rank.fit.id):
            yield case.warn(
                "stray-port",
                rank,
                f"process {listener.process} listens on port {listener.port} of {rank.rank.node} beside the lane",
                f"end it: `ss -ltnp` on {rank.rank.node} says which process it is",
            )


def _is_told(facts: NodeFacts, container_id: str) -> bool:
    """Whether the listeners of the container are known to be its own: then what is not, is somebody else's."""
    return any(item.container_id == container_id for item in facts.listeners)
