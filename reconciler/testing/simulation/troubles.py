"""What goes wrong, and when: values that say it in a sentence and can be carried out."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from reconciler.core.observed import UnknownKind
from reconciler.nodes.errors import ErrorKind
from reconciler.testing.faults import Call, Fault
from reconciler.testing.fleet import SimulatedFleet
from reconciler.testing.node import SimNode
from reconciler.testing.simulation.cast import FLEET, IMAGES

Kind = Literal[
    "kill",
    "interrupt",
    "lose the reply",
    "refuse",
    "no space",
    "time out",
    "delay",
    "power off",
    "reboot",
    "restart docker",
    "crash docker",
    "cut the link",
    "drop sessions",
    "isolate the controller",
    "change the host key",
    "fill the disk",
    "corrupt an image",
    "registry down",
    "kill a container",
    "stop a container",
    "start a container",
    "delete a container",
]
OF_A_CALL = frozenset({"lose the reply", "refuse", "no space", "time out", "delay"})
OF_A_PERSON = frozenset({"kill a container", "stop a container", "start a container", "delete a container"})
OF_THE_CONTROLLER = frozenset({"kill", "interrupt", "isolate the controller"})
MISSES: dict[str, ErrorKind] = {
    "refuse": ErrorKind.REFUSED,
    "no space": ErrorKind.NO_SPACE,
    "time out": ErrorKind.TIMEOUT,
}


@dataclass(frozen=True)
class Trouble:
    """At the `nth` call of a turn, or the `nth` that changes something: before its effect or `after` it.

    `node`: which machine, for what happens to machines. `lasts_s`: until it mends itself. `pick`: which container.
    """

    kind: Kind
    nth: int
    changes_only: bool = False
    after: bool = False
    node: str = ""
    lasts_s: float = 0.0
    pick: int = 0

    @property
    def told(self) -> str:
        """For people."""
        what = f"{self.kind}{f' on {self.node}' if self.node else ''}"
        lasting = f" for {self.lasts_s:g} s" if self.lasts_s else ""
        when = f"{'after' if self.after else 'before'} {'change' if self.changes_only else 'call'} {self.nth}"
        return f"{what}{lasting}, {when}"

    def fault(self, carry_out: Callable[["Trouble"], None]) -> Fault:
        """As a fault of the simulated fleet; what is not the failure of a call is carried out by `carry_out`."""
        when = _is_change if self.changes_only else None
        if self.kind == "lose the reply":
            return Fault.lose_reply(None, None, self.nth, when)
        if self.kind == "delay":
            return Fault.delay(None, None, self.lasts_s, self.nth, when, after=self.after)
        if self.kind in MISSES:
            return Fault.fail(None, None, MISSES[self.kind], self.nth, when)
        return Fault.do(None, None, lambda fleet: carry_out(self), self.nth, when, after=self.after)


def _is_change(call: Call) -> bool:
    return call.mutating


def carry_out(trouble: Trouble, fleet: SimulatedFleet, stop: asyncio.Event) -> None:
    """Let it happen now. What ends with the controller is the end of this call, too."""
    if trouble.kind == "kill":
        fleet.kill_controller()
    elif trouble.kind == "interrupt":
        stop.set()
    elif trouble.kind == "isolate the controller":
        fleet.first.is_cut = True
        fleet.after(trouble.lasts_s, _reconnect)
    elif trouble.kind == "registry down":
        fleet.registry.is_up = False
    elif trouble.kind in OF_A_PERSON:
        _meddle(trouble, fleet.node(trouble.node))
    else:
        _to_machine(trouble, fleet, fleet.node(trouble.node))


def _reconnect(fleet: SimulatedFleet) -> None:
    fleet.first.is_cut = False


def _to_machine(trouble: Trouble, fleet: SimulatedFleet, node: SimNode) -> None:
    mends: dict[str, Callable[[SimulatedFleet], None]] = {
        "power off": lambda fleet: node.power_on(),
        "crash docker": lambda fleet: node.start_docker(),
        "cut the link": lambda fleet: node.mend_link(),
    }
    does: dict[str, Callable[[], object]] = {
        "power off": node.power_off,
        "reboot": node.reboot,
        "restart docker": lambda: node.restart_docker(trouble.lasts_s),
        "crash docker": node.stop_docker,
        "cut the link": node.cut_link,
        "drop sessions": node.drop_sessions,
        "change the host key": lambda: node.deny(UnknownKind.HOST_KEY_CHANGED),
        "fill the disk": node.fill_disk,
        "corrupt an image": lambda: node.delete_layer(IMAGES[trouble.pick % len(IMAGES)].digest),
    }
    does[trouble.kind]()
    if trouble.kind in mends and trouble.lasts_s:
        fleet.after(trouble.lasts_s, mends[trouble.kind])


def _meddle(trouble: Trouble, node: SimNode) -> None:
    """A person's hand on one of the containers that are there."""
    if not node.is_on or not node.has_docker:
        return
    found = list(node.runtime.containers.values())
    if trouble.kind == "start a container":
        found = [item for item in found if not item.is_running]
    elif trouble.kind != "delete a container":
        found = [item for item in found if item.is_running]
    if not found:
        return
    ref = found[trouble.pick % len(found)].id
    does = {
        "kill a container": node.kill,
        "stop a container": node.stop_container,
        "start a container": node.start_container,
        "delete a container": node.delete_container,
    }
    does[trouble.kind](ref)


async def calm(fleet: SimulatedFleet, seconds: float) -> None:
    """Let so much virtual time pass: what mends itself does, what was leased lapses."""
    fleet.world.sync()  # the clock of a new loop runs from its first reading on
    await asyncio.sleep(seconds)
    fleet.world.sync()


def heal(fleet: SimulatedFleet) -> None:
    """Everything that was broken from outside is whole again; what runs and what lies about stays as it is."""
    fleet.heal()
    fleet.registry.is_up = True
    fleet.first.is_cut = False
    for node in fleet.nodes:
        node.power_on()
        node.mend_link()
        node.start_docker()
        node.admit()
        node.free_bytes = max(node.free_bytes, node.config.disk_bytes)
        for item in node.runtime.containers.values():
            if item.is_running and (item.owner is None or item.owner.fleet != FLEET):
                node.stop_container(item.id)
