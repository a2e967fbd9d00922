"""How long things took, and how long they are expected to take. History for people: no plan depends on it.

What took how long is kept by image (its digest), model and class of node: a boot on another kind of machine tells
nothing. Where nothing is kept, nothing is expected: unknown is `None`, never a guess.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Protocol

from reconciler.core.desired import Gang
from reconciler.core.machine import GOOD, Status
from reconciler.core.observed import NodeFacts, Observed
from reconciler.core.phases import ORDER
from reconciler.core.plan import Op, Phase, Plan, Step

BOOT = "boot"
"""From the first start of a gang to its passed gate."""

OF_BOOT = {phase: f"{BOOT}:{phase}" for phase in ORDER}
"""The kinds of the phases of a boot."""

KINDS: Mapping[Op, str] = {Op.PULL: "pull", Op.PREFLIGHT: "preflight", Op.STOP: "stop", Op.ROOM: "room"}
"""The steps that are kept one by one; `BOOT` is kept of a whole gang."""

MEMORY_STEP_BYTES = 8 * 2**30
"""Memory is told in steps of so many bytes: firmware and kernels take some megabytes more or less."""


class Took(Protocol):
    """How long something took once: what the recorded state has of it."""

    @property
    def kind(self) -> str:
        """ "pull", "preflight", "stop", "room", "boot", or "boot:" and a phase."""
        ...

    @property
    def gang(self) -> str:
        """The gang's address."""
        ...

    @property
    def image(self) -> str:
        """The digest of its image."""
        ...

    @property
    def model(self) -> str:
        """What it serves."""
        ...

    @property
    def node_class(self) -> str:
        """See `node_class`."""
        ...

    @property
    def seconds(self) -> float:
        """How long it took."""
        ...

    @property
    def size_bytes(self) -> int | None:
        """What was moved, of a pull."""
        ...


@dataclass(frozen=True)
class Subject:
    """What a duration is kept under."""

    kind: str
    image: str
    model: str
    node_class: str


@dataclass(frozen=True)
class Expected:
    """What is expected of what took `count` times between `low_s` and `high_s`, in seconds."""

    seconds: float
    low_s: float
    high_s: float
    count: int


@dataclass(frozen=True)
class Ended:
    """How one step ended, for the record. `began_s`, `ended_s`: seconds on one clock.

    `phases`: of a boot that was proved, the seconds of each, in order.
    """

    step: Step
    status: Status
    began_s: float
    ended_s: float
    phases: tuple[tuple[str, float], ...] = ()

    @property
    def seconds(self) -> float:
        """How long it took."""
        return max(self.ended_s - self.began_s, 0.0)


@dataclass(frozen=True)
class Duration:
    """How long something took in a run, to be recorded. See `Took`; `node` is empty for what is of a whole gang."""

    kind: str
    gang: str
    node: str
    image: str
    model: str
    node_class: str
    seconds: float
    size_bytes: int | None = None


def expected(seconds: Iterable[float]) -> Expected | None:
    """What is expected of the next time, from the last ones; None when there is none."""
    found = [item for item in seconds if item >= 0.0]
    return Expected(median(found), min(found), max(found), len(found)) if found else None


@dataclass(frozen=True)
class Known:
    """What is known of one subject: the gangs it was measured on, and how long it took, the newest time first."""

    kind: str
    image: str
    model: str
    node_class: str
    gangs: tuple[str, ...]
    expected: Expected
    last_s: float


def known(took: Iterable[Took]) -> tuple[Known, ...]:
    """What is known of every subject, by model, kind and the rest; `took` has the newest first."""
    groups: dict[Subject, list[Took]] = {}
    for item in took:
        groups.setdefault(Subject(item.kind, item.image, item.model, item.node_class), []).append(item)
    found = []
    for subject, items in groups.items():
        times = expected(item.seconds for item in items)
        gangs = tuple(sorted({item.gang for item in items}))
        if times is not None:
            names = (subject.kind, subject.image, subject.model, subject.node_class)
            found.append(Known(*names, gangs, times, items[0].seconds))
    return tuple(sorted(found, key=lambda item: (item.model, item.image, item.node_class, _place(item.kind))))


def _place(kind: str) -> tuple[str, int]:
    """Where a kind stands among others: by its name, and the phases of a boot as they follow each other."""
    name, _, phase = kind.partition(":")
    return name, ORDER.index(phase) + 1 if phase in ORDER else 0


def node_class(facts: NodeFacts) -> str:
    """What matters of a node for how long things take: "linux/arm64, 1 x NVIDIA GB10, 120 GiB"."""
    names = sorted({gpu.name for gpu in facts.gpus})
    gpus = f"{len(facts.gpus)} x {' + '.join(names)}" if names else "no GPU"
    total = facts.memory_total_bytes
    memory = "memory unknown" if total is None else f"{_rounded(total) // 2**30} GiB"
    return f"{facts.platform}, {gpus}, {memory}"


def _rounded(total_bytes: int) -> int:
    return round(total_bytes / MEMORY_STEP_BYTES) * MEMORY_STEP_BYTES


def node_classes(observed: Observed) -> dict[str, str]:
    """The class of each node that is known."""
    known = ((name, observed.facts(name)) for name in observed.nodes)
    return {name: node_class(facts) for name, facts in known if facts is not None}


def subject_of(kind: str, gang: Gang, node: str, classes: Mapping[str, str]) -> Subject | None:
    """What a duration of a gang is kept under; None where nothing is known of the node."""
    found = classes.get(node)
    image = gang.ranks[0].container.image.digest
    return Subject(kind, image, gang.gate.served_name or gang.lane, found) if found is not None else None


def gang_of(plan: Plan, step: Step) -> Gang | None:
    """Whose duration a step has: of a stop, the version that runs now, as far as its labels tell."""
    if step.op is not Op.STOP:
        return plan.gang_of(step)
    running = (gang for way in plan.rollbacks for gang in way.returns if gang.address == step.gang)
    return next(running, None) or plan.gang_of(step)


def measured(plan: Plan, ended: Iterable[Ended], classes: Mapping[str, str]) -> Iterator[Duration]:
    """What a run has to tell the next one: of steps that had something to do and did it, and of boots that were proved.

    A boot's class is that of its head's node; where nodes differ, the slowest makes the boot.
    """
    ended = tuple(ended)
    for item in ended:
        gang = gang_of(plan, item.step)
        kind = KINDS.get(item.step.op)
        if gang is None or kind is None or not _counts(item):
            continue
        subject = subject_of(kind, gang, item.step.node or "", classes)
        if subject is not None:
            yield _duration(subject, gang, item.step.node or "", item.seconds, item.step.estimate_bytes)
    yield from _boots(plan, ended, classes)


def _counts(item: Ended) -> bool:
    """A wait for room that found it is a no-op, and took what it took; other no-ops tell nothing."""
    return item.status is Status.APPLIED or (item.step.op is Op.ROOM and item.status is Status.NOOP)


def _boots(plan: Plan, ended: tuple[Ended, ...], classes: Mapping[str, str]) -> Iterator[Duration]:
    for verify in ended:
        gang = plan.gang_of(verify.step)
        if verify.step.op is not Op.VERIFY or verify.status not in GOOD or gang is None:
            continue
        way_back = verify.step.phase is Phase.ROLLBACK
        of_gang = (item for item in ended if item.step.gang == gang.address and item.step.op is Op.START)
        starts = [item.began_s for item in of_gang if (item.step.phase is Phase.ROLLBACK) == way_back]
        subject = subject_of(BOOT, gang, gang.nodes[0], classes)
        if starts and subject is not None:
            yield _duration(subject, gang, "", verify.ended_s - min(starts), None)
            for phase, seconds in verify.phases:
                yield _duration(replace(subject, kind=OF_BOOT[phase]), gang, "", seconds, None)


def _duration(subject: Subject, gang: Gang, node: str, seconds: float, size_bytes: int | None) -> Duration:
    names = (subject.kind, gang.address, node, subject.image, subject.model, subject.node_class)
    return Duration(*names, seconds, size_bytes)
