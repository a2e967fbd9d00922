"""What a plan saw, step by step, and what of it is not so any more.

A saved plan is applied as it is or not at all, so each step is held against the nodes as they are now. Only what the
step rests on counts: free disk, an image that arrived meanwhile or a foreign container that takes neither a GPU nor a
port of the lane make nothing stale.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from reconciler.core.identity import proved_name, unproved_name
from reconciler.core.observed import RUNNING_STATES, Container, NodeFacts, Observed, Unknown
from reconciler.core.plan import Op, Plan, Step


@dataclass(frozen=True)
class ContainerSeen:
    """One container as it was. `fingerprint` is empty for a foreign one."""

    id: str
    name: str
    state: str
    fingerprint: str = ""


@dataclass(frozen=True)
class NodeSeen:
    """What the steps on one node rest on: its boot, the containers of this fleet, the running foreign ones, and the
    digests of the plan's images that were there.
    """

    node: str
    boot_id: str
    containers: tuple[ContainerSeen, ...] = ()
    foreign: tuple[ContainerSeen, ...] = ()
    images: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stale:
    """One thing a step rests on that is not so any more: what it was then, and what it is now."""

    step: str
    gang: str
    node: str
    field: str
    then: str
    now: str

    @property
    def told(self) -> str:
        """ "container fleet-lane-r0-v1 state: running -> exited"."""
        return f"{self.field}: {self.then} -> {self.now}"


def sight(plan: Plan, observed: Observed) -> tuple[NodeSeen, ...]:
    """What the plan's steps rest on, of each node that has one; `observed` is what the plan was made from."""
    nodes = sorted({step.node for step in plan.steps if step.node})
    known = ((node, observed.facts(node)) for node in nodes)
    return tuple(_node(plan, facts) for _, facts in known if facts is not None)


def _node(plan: Plan, facts: NodeFacts) -> NodeSeen:
    ours = tuple(sorted((_seen(item) for item in facts.containers if _is_ours(plan, item)), key=_by_id))
    foreign = (item for item in facts.containers if item.is_running and not _is_ours(plan, item))
    pins = {rank.container.image for gang in plan.gangs for rank in gang.ranks if rank.node == facts.node}
    images = tuple(sorted({pin.digest for pin in pins if facts.image_for(pin) is not None}))
    return NodeSeen(facts.node, facts.boot_id, ours, tuple(sorted(map(_seen, foreign), key=_by_id)), images)


def _seen(item: Container) -> ContainerSeen:
    return ContainerSeen(item.id, item.name, item.state, item.owner.fingerprint if item.owner else "")


def _by_id(item: ContainerSeen) -> str:
    return item.id


def _is_ours(plan: Plan, item: Container) -> bool:
    return item.owner is not None and item.owner.fleet == plan.fleet


def stale_steps(plan: Plan, saw: Iterable[NodeSeen], observed: Observed) -> tuple[Stale, ...]:
    """What each step rests on that is not so any more, in the plan's order; empty when the plan still holds."""
    then = {item.node: item for item in saw}
    return tuple(
        Stale(step.id, step.gang, step.node, change.field, change.then, change.now)
        for step in plan.steps
        if step.node is not None
        for change in _changes(plan, step, then.get(step.node), observed.nodes.get(step.node))
    )


@dataclass(frozen=True)
class _Change:
    field: str
    then: str
    now: str


@dataclass(frozen=True)
class _Case:
    """One step on one node, then and now."""

    plan: Plan
    step: Step
    then: NodeSeen
    now: NodeFacts


def _changes(plan: Plan, step: Step, then: NodeSeen | None, now: NodeFacts | Unknown | None) -> Iterable[_Change]:
    """By the first rule that finds anything: what follows from it is not told again."""
    if not isinstance(now, NodeFacts):
        why = now.reason if now is not None else "not a node of this fleet"
        return (_Change(f"node {step.node}", "answers", why),)
    if then is None:
        return (_Change(f"node {step.node}", "not recorded", "answers"),)
    case = _Case(plan, step, then, now)
    return next((found for rule in RULES if (found := tuple(rule(case)))), ())


def _boot(case: _Case) -> Iterator[_Change]:
    if case.then.boot_id != case.now.boot_id:
        yield _Change(f"boot id ({case.now.node} was rebooted)", case.then.boot_id, case.now.boot_id)


def _container(case: _Case) -> Iterator[_Change]:
    """The container of the step is the one that was there, with the same name and in the same state."""
    then = next((item for item in case.then.containers if item.id == case.step.container_id), None)
    if then is None:
        return
    now = next((item for item in case.now.containers if item.id == then.id), None)
    if now is None:
        yield _Change(f"container {then.name} state", then.state, "gone")
    elif now.name != then.name:
        yield _Change(f"container {then.name} name", then.name, now.name)
    elif now.state != then.state:
        yield _Change(f"container {then.name} state", then.state, now.state)


def _name(case: _Case) -> Iterator[_Change]:
    """Nobody has taken the name of what is to be created, marked as proved or not."""
    names = (unproved_name(case.step.target), proved_name(case.step.target))
    for item in case.now.containers if case.step.op is Op.CREATE else ():
        if item.name in names:
            yield _Change(f"container {item.name}", "not there", item.state)


def _image(case: _Case) -> Iterator[_Change]:
    """An image that was there, and so is not pulled, is there still."""
    if case.step.op in {Op.CREATE, Op.PREFLIGHT}:
        pin = case.plan.gang(case.step.gang).ranks[case.step.rank or 0].container.image
        if pin.digest in case.then.images and case.now.image_for(pin) is None:
            yield _Change(f"image {pin.short}", "there", "gone")


def _others(case: _Case) -> Iterator[_Change]:
    """Nobody new holds what a start takes: no lane of this fleet, no foreign GPU, no port."""
    if case.step.op is not Op.START:
        return
    ran = {item.id: item.state for item in (*case.then.containers, *case.then.foreign)}
    for item in sorted(case.now.containers, key=lambda found: found.name):
        if item.is_running and ran.get(item.id) not in RUNNING_STATES and _is_in_the_way(case, item):
            yield _Change(f"container {item.name}", ran.get(item.id, "not there"), item.state)


def _is_in_the_way(case: _Case, item: Container) -> bool:
    if _is_ours(case.plan, item):
        return True
    rank = case.plan.gang(case.step.gang).ranks[case.step.rank or 0]
    listening = {found.port for found in case.now.listeners if found.container_id == item.id}
    return bool(item.gpus and rank.container.gpus) or bool({*item.published_ports, *listening} & {*rank.ports})


RULES: tuple[Callable[[_Case], Iterator[_Change]], ...] = (_boot, _container, _name, _image, _others)
