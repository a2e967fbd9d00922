"""What a plan is expected to take, beside the plan: from what was recorded of earlier times. It changes no plan.

Every figure is `None` where nothing was recorded that it could rest on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median

from reconciler.core.desired import Gang
from reconciler.core.durations import BOOT, KINDS, OF_BOOT, Expected, Subject, Took, expected, gang_of, subject_of
from reconciler.core.plan import Op, Outage, Plan, Step


@dataclass(frozen=True)
class Dark:
    """How long nothing answers for one gang: what is stopped, the memory that is waited for, the boot.

    `seconds`: all of it; None while the boot is not known. Stops and waits that are not known count as none.
    """

    gang: str
    stop: Expected | None
    room: Expected | None
    boot: Expected | None
    seconds: float | None


@dataclass(frozen=True)
class Estimates:
    """What is expected of each step, by its id, and of each gang that boots. What is not in here is not known.

    `moved_bytes`: what all pulls together bring to nodes, as far as it is known. `disk_after`: by node, what is free
    in the end, as far as it is known.
    """

    steps: Mapping[str, Expected] = field(default_factory=dict)
    boots: Mapping[str, Expected] = field(default_factory=dict)
    dark: tuple[Dark, ...] = ()
    moved_bytes: int = 0
    disk_after: Mapping[str, int] = field(default_factory=dict)

    def dark_of(self, gang: str) -> Dark | None:
        """Of a gang for which something goes dark."""
        return next((item for item in self.dark if item.gang == gang), None)


NOTHING = Estimates()
"""Nothing is known."""


@dataclass(frozen=True)
class History:
    """What was recorded, by what it is kept under; the newest first."""

    took: tuple[Took, ...]

    @cached_property
    def _by_subject(self) -> Mapping[Subject, tuple[Took, ...]]:
        found: dict[Subject, list[Took]] = {}
        for item in self.took:
            found.setdefault(Subject(item.kind, item.image, item.model, item.node_class), []).append(item)
        return {subject: tuple(items) for subject, items in found.items()}

    @cached_property
    def _rates(self) -> Mapping[str, float]:
        """Bytes a second that pulls brought to nodes of a class, whatever the image."""
        found: dict[str, list[float]] = {}
        for item in self.took:
            if item.kind == KINDS[Op.PULL] and item.size_bytes and item.seconds > 0.0:
                found.setdefault(item.node_class, []).append(item.size_bytes / item.seconds)
        return {name: median(rates) for name, rates in found.items()}

    def expected(self, subject: Subject | None, gang: str) -> Expected | None:
        """From the last times of just this: of the gang's own, where there are some, since its size counts, too."""
        found = self._by_subject.get(subject, ()) if subject is not None else ()
        own = [item for item in found if item.gang == gang]
        return expected(item.seconds for item in own or found)

    def boot(self, gang: Gang, classes: Mapping[str, str]) -> Expected | None:
        """How long the gang takes to boot: its head's node tells the class."""
        return self.expected(subject_of(BOOT, gang, gang.nodes[0], classes), gang.address)

    def phases(self, gang: Gang, classes: Mapping[str, str]) -> dict[str, float]:
        """The seconds that each phase of the gang's boot usually takes, as far as it is known."""
        found = {
            phase: self.expected(subject_of(kind, gang, gang.nodes[0], classes), gang.address)
            for phase, kind in OF_BOOT.items()
        }
        return {phase: item.seconds for phase, item in found.items() if item is not None}

    def pull(self, size_bytes: int | None, node_class: str | None) -> Expected | None:
        """How long so many bytes take to a node of this class."""
        rate = self._rates.get(node_class or "")
        if rate is None or not size_bytes:
            return None
        seconds = size_bytes / rate
        return Expected(seconds, seconds, seconds, 1)


def estimates(plan: Plan, classes: Mapping[str, str], took: Iterable[Took]) -> Estimates:
    """What the plan is expected to take. `classes`: of each node that is known (`durations.node_classes`)."""
    history = History(tuple(took))
    steps = {step.id: found for step in plan.steps if (found := _step(plan, step, classes, history)) is not None}
    boots = {gang.address: found for gang in plan.gangs if (found := history.boot(gang, classes)) is not None}
    dark = tuple(_dark(plan, outage, steps, boots.get(outage.gang)) for outage in plan.outages)
    moved = sum(item.missing_bytes or 0 for item in plan.transfers)
    return Estimates(steps, boots, dark, moved, _disk_after(plan))


def _disk_after(plan: Plan) -> dict[str, int]:
    found: dict[str, int] = {}
    for item in plan.transfers:
        if item.disk_free_after_bytes is not None:
            found[item.node] = min(item.disk_free_after_bytes, found.get(item.node, item.disk_free_after_bytes))
    return found


def _step(plan: Plan, step: Step, classes: Mapping[str, str], history: History) -> Expected | None:
    gang = gang_of(plan, step)
    if gang is None:
        return None
    if step.op is Op.VERIFY:
        return history.boot(gang, classes)
    if step.op is Op.PULL:
        return history.pull(step.estimate_bytes, classes.get(step.node or ""))
    kind = KINDS.get(step.op)
    if kind is None:
        return None
    return history.expected(subject_of(kind, gang, step.node or "", classes), gang.address)


def _dark(plan: Plan, outage: Outage, steps: Mapping[str, Expected], boot: Expected | None) -> Dark:
    """Ranks stop side by side, so the slowest counts."""
    stopped = {*outage.stops, outage.gang}
    stops = [item for item in plan.steps if item.op is Op.STOP and item.gang in stopped]
    rooms = [item for item in plan.steps if item.op is Op.ROOM and item.gang == outage.gang]
    stop, room = _slowest(stops, steps), _slowest(rooms, steps)
    known = sum(item.seconds for item in (stop, room) if item is not None)
    return Dark(outage.gang, stop, room, boot, boot.seconds + known if boot is not None else None)


def _slowest(found: Iterable[Step], steps: Mapping[str, Expected]) -> Expected | None:
    known = (steps[step.id] for step in found if step.id in steps)
    return max(known, key=lambda item: item.seconds, default=None)
