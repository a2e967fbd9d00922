"""What catches mutants. Imported when the mutant is in place, since it imports the product."""

from reconciler.testing.simulation import play, scenario
from tests.simulate.controller import FleetController
from tests.simulate.lifecycles import LIFECYCLES, lifecycle

__all__ = ["LIFECYCLES", "FleetController", "lifecycle", "play", "scenario"]
