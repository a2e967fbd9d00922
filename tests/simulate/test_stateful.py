"""Hypothesis plays operator, people and nodes: whatever they do in whatever order, the invariants hold after each."""

import asyncio
import os

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from reconciler.core.exits import Exit
from reconciler.testing import ControllerKilled, SimulatedFleet, run_simulated
from reconciler.testing.fleet import FIRST
from reconciler.testing.simulation import Monitor, Part, Trouble, cast_of, desired_of
from reconciler.testing.simulation.cast import FLEET, IMAGES
from reconciler.testing.simulation.troubles import calm, carry_out, heal
from tests.simulate.controller import FleetController

CAST = cast_of(3)
EXAMPLES = int(os.environ.get("FLEET_EXAMPLES", "25"))
NODES = st.sampled_from([node.name for node in CAST.nodes])
SPECS = st.sampled_from(
    [
        (),
        (Part("a", "left", 1),),
        (Part("a", "left", 2),),
        (Part("a", "left", 2, mood="crashes"),),
        (Part("a", "left", 1), Part("b", "right", 2)),
        (Part("c", "all", 1),),
        (Part("c", "all", 1, mood="garbles"),),
        (Part("b", "only-n2", 2), Part("a", "right", 1, 1)),
    ]
)
CALLS = st.builds(
    Trouble,
    st.sampled_from(["kill", "lose the reply", "refuse", "time out", "drop sessions", "reboot", "restart docker"]),
    st.integers(1, 30),
    st.just(True),
    st.booleans(),
    NODES,
    st.just(5.0),
)
MEDDLING = st.sampled_from(["kill a container", "stop a container", "start a container", "delete a container"])


class Fleets(RuleBasedStateMachine):
    """Three nodes and an operator with a spec."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes = SimulatedFleet(CAST.nodes, IMAGES, 1)
        self.controller = FleetController()
        self.monitor = Monitor(self.nodes)
        self.spec: tuple[Part, ...] = ()

    @rule(spec=SPECS)
    def edits_the_spec(self, spec: tuple[Part, ...]) -> None:
        self.spec = spec

    @rule()
    def applies(self) -> None:
        self._apply()

    @rule(trouble=CALLS)
    def applies_in_bad_weather(self, trouble: Trouble) -> None:
        stop = asyncio.Event()
        self.nodes.inject(trouble.fault(lambda what: carry_out(what, self.nodes, stop)))
        try:
            self._apply()
        except ControllerKilled:
            pass
        finally:
            self.nodes.heal()

    @rule(node=NODES, kind=MEDDLING, pick=st.integers(0, 5))
    def somebody_meddles(self, node: str, kind: str, pick: int) -> None:
        carry_out(Trouble(kind, 1, node=node, pick=pick), self.nodes, asyncio.Event())  # type: ignore[arg-type]

    @rule(node=NODES)
    def a_node_reboots(self, node: str) -> None:
        self.nodes.node(node).reboot()

    @rule(node=NODES)
    def a_node_goes_off(self, node: str) -> None:
        self.nodes.node(node).power_off()

    @rule()
    def the_record_is_lost(self) -> None:
        self.controller.forget()

    @rule()
    def all_is_healed_and_one_apply_brings_what_is_wanted(self) -> None:
        heal(self.nodes)
        self.controller.forgive()
        self.spec = tuple(Part(part.lane, part.cluster, part.version, part.image) for part in self.spec)
        run_simulated(calm(self.nodes, 120.0))
        assert Exit.OK == self._apply()
        assert run_simulated(self.controller.plan(self.nodes, desired_of(CAST, self.spec))).is_settled

    def _apply(self) -> int:
        wants = desired_of(CAST, self.spec)
        self.monitor.begins(FIRST, wants, FLEET, self.controller.is_announced)
        told = self.controller.apply(self.nodes, wants, lambda plan: self.monitor.planned(FIRST, plan), asyncio.Event())
        return run_simulated(told).exit

    @invariant()
    def nothing_happened_that_never_may(self) -> None:
        assert [] == self.monitor.violations


TestFleets = Fleets.TestCase
TestFleets.settings = settings(max_examples=EXAMPLES, stateful_step_count=12, deadline=None)
