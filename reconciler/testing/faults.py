"""Faults to inject and the log of calls. A fault is addressed by node, operation and the n-th call that fits."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from reconciler.nodes.errors import ErrorKind

if TYPE_CHECKING:
    from reconciler.testing.fleet import SimulatedFleet

Operation = Literal[
    "connect",
    "observe",
    "inspect",
    "create",
    "start",
    "stop",
    "rename",
    "remove",
    "logs",
    "run",
    "follow",
    "present",
    "stage",
    "inventory",
    "remove-image",
    "model-look",
    "model-prove",
    "model-fetch",
    "model-adopt",
    "http",
    "accepts",
    "describe",
    "lease",
    "lease-check",
    "lease-release",
    "lease-holder",
    "lease-break",
]
MUTATING = frozenset(
    {"create", "start", "stop", "rename", "remove", "stage", "remove-image", "model-fetch", "model-adopt"}
)

Mode = Literal["fail", "lose-reply", "hang", "delay", "action"]
Action = Callable[["SimulatedFleet"], None]


@dataclass(frozen=True)
class Call:
    """One call through a door of a node. `ref`: the container, image or path it was about. Times in virtual seconds.

    `by`: the controller that made it. `fence`: the number of the lease that its session had when it took effect; None
    when it had none, and in the log of calls, which is written before.
    """

    at_s: float
    node: str
    operation: Operation
    ref: str
    mutating: bool
    by: str = ""
    fence: int | None = None


@dataclass(frozen=True)
class Fault:
    """What goes wrong. `node` or `operation` None fits any; `nth` counts fitting calls from 1, None is every call."""

    mode: Mode
    node: str | None
    operation: Operation | None
    nth: int | None = 1
    when: Callable[[Call], bool] | None = None
    kind: ErrorKind = ErrorKind.REFUSED
    message: str = ""
    action: Action | None = field(default=None, compare=False)
    is_late: bool = False
    delay_s: float = 0.0

    @classmethod
    def fail(
        cls,
        node: str | None,
        operation: Operation | None,
        kind: ErrorKind = ErrorKind.REFUSED,
        nth: int | None = 1,
        when: Callable[[Call], bool] | None = None,
    ) -> "Fault":
        """The call fails with `kind`, before it has any effect."""
        return cls("fail", node, operation, nth, when, kind, f"injected: {kind}")

    @classmethod
    def lose_reply(
        cls,
        node: str | None,
        operation: Operation | None,
        nth: int | None = 1,
        when: Callable[[Call], bool] | None = None,
    ) -> "Fault":
        """The effect happens, and the call fails with LOST."""
        return cls("lose-reply", node, operation, nth, when, ErrorKind.LOST, "injected: the reply was lost")

    @classmethod
    def hang(
        cls,
        node: str | None,
        operation: Operation | None,
        nth: int | None = 1,
        when: Callable[[Call], bool] | None = None,
    ) -> "Fault":
        """The call has no effect and no answer: TIMEOUT at its deadline, for ever where it has none (stage, follow)."""
        return cls("hang", node, operation, nth, when, ErrorKind.TIMEOUT, "injected: no answer")

    @classmethod
    def delay(
        cls,
        node: str | None,
        operation: Operation | None,
        delay_s: float,
        nth: int | None = 1,
        when: Callable[[Call], bool] | None = None,
        *,
        after: bool = False,
    ) -> "Fault":
        """The call takes so many seconds longer on its way to the effect (or on its way back): others overtake it.

        Longer than the call's deadline on the way there, it has no effect; on the way back it has.
        """
        return cls("delay", node, operation, nth, when, is_late=after, delay_s=delay_s)

    @classmethod
    def do(
        cls,
        node: str | None,
        operation: Operation | None,
        action: Action,
        nth: int | None = 1,
        when: Callable[[Call], bool] | None = None,
        *,
        after: bool = True,
    ) -> "Fault":
        """`action` runs right after the effect of the call (or right before it): a reboot, a cut link, a cancel."""
        return cls("action", node, operation, nth, when, action=action, is_late=after)

    @classmethod
    def kill(
        cls,
        node: str | None,
        operation: Operation | None,
        nth: int | None = 1,
        when: Callable[[Call], bool] | None = None,
        *,
        after: bool = True,
    ) -> "Fault":
        """The controller dies right after the effect of the call (or right before it): see `kill_controller`."""
        return cls.do(node, operation, lambda fleet: fleet.kill_controller(), nth, when, after=after)

    def fits(self, call: Call) -> bool:
        """Whether it is about this call, leaving the count aside."""
        if self.node not in {None, call.node} or self.operation not in {None, call.operation}:
            return False
        return self.when is None or self.when(call)


class Faults:
    """The injected faults, and how often each has been met."""

    def __init__(self) -> None:
        self.struck: list[tuple[Fault, Call]] = []
        self._pending: list[tuple[Fault, int]] = []

    def inject(self, *faults: Fault) -> None:
        """From now on."""
        self._pending += [(fault, 0) for fault in faults]

    def clear(self) -> None:
        """None any more."""
        self._pending.clear()

    def of(self, call: Call) -> tuple[Fault, ...]:
        """The faults that strike at this call. One of an n-th call strikes once."""
        if not self._pending:
            return ()
        due: list[Fault] = []
        pending: list[tuple[Fault, int]] = []
        for fault, count in self._pending:
            met = count + fault.fits(call)
            if met > count and fault.nth in {None, met}:
                due.append(fault)
            if fault.nth is None or met < fault.nth:
                pending.append((fault, met))
        self._pending = pending
        self.struck += [(fault, call) for fault in due]
        return tuple(due)
