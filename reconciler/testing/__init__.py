"""A simulated fleet for tests: nodes, daemons of both image stores, a registry, engines and faults, in virtual time.

    image = SimImage.named("ghcr.io/acme/llama")
    fleet = SimulatedFleet(sim_nodes(4), [image], seed=7)
    fleet.inject(Fault.lose_reply("n2", "start"))
    run_simulated(apply(plan, fleet), seed=7)
    assert fleet.overlaps() == ()

Everything follows from the seed: the same program makes the same calls at the same virtual times.
"""

from reconciler.testing.behaviours import (
    Behaviour,
    DiesAfterReady,
    Exits,
    Garbage,
    HangsOnGeneration,
    Listens,
    Moment,
    NeverHealthy,
    OutOfMemory,
    Serves,
    Worker,
)
from reconciler.testing.clock import (
    EPOCH,
    DeadlockError,
    LoopClock,
    VirtualLoop,
    VirtualTimeError,
    rfc3339,
    run_simulated,
)
from reconciler.testing.controllers import SimulatedController, SimulatedNode
from reconciler.testing.faults import Call, Fault, Operation
from reconciler.testing.fleet import ControllerKilled, SimulatedFleet
from reconciler.testing.history import Happening, Overlap, Span, overlaps, spans
from reconciler.testing.images import SimImage
from reconciler.testing.llamacpp import llamacpp_behaviour
from reconciler.testing.node import SimNode, SimNodeConfig, sim_nodes
from reconciler.testing.torch import engine_behaviour
from reconciler.testing.troubled import Babbles, CrashLoops, GivesUp, OnlyThinks, Tunes

__all__ = [
    "EPOCH",
    "Babbles",
    "Behaviour",
    "Call",
    "ControllerKilled",
    "CrashLoops",
    "DeadlockError",
    "DiesAfterReady",
    "Exits",
    "Fault",
    "Garbage",
    "GivesUp",
    "HangsOnGeneration",
    "Happening",
    "Listens",
    "LoopClock",
    "Moment",
    "NeverHealthy",
    "OnlyThinks",
    "Operation",
    "OutOfMemory",
    "Overlap",
    "Serves",
    "SimImage",
    "SimNode",
    "SimNodeConfig",
    "SimulatedController",
    "SimulatedFleet",
    "SimulatedNode",
    "Span",
    "Tunes",
    "VirtualLoop",
    "VirtualTimeError",
    "Worker",
    "engine_behaviour",
    "llamacpp_behaviour",
    "overlaps",
    "rfc3339",
    "run_simulated",
    "sim_nodes",
    "spans",
]
