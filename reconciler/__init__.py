"""A declarative reconciler for fleets of GPU nodes that serve LLM engines. `Fleet` is the way in."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reconciler.applied import Applied
    from reconciler.core.events import Event
    from reconciler.core.exits import Exit
    from reconciler.core.objection import Level, Objection
    from reconciler.core.plan import Plan
    from reconciler.core.policies import Policy, PolicyContext
    from reconciler.fleet import Fleet
    from reconciler.recording import Recorder

__all__ = ["Applied", "Event", "Exit", "Fleet", "Level", "Objection", "Plan", "Policy", "PolicyContext", "Recorder"]
"""The names that stay: what is imported from elsewhere may move."""

_HOMES = {
    "Applied": "reconciler.applied",
    "Event": "reconciler.core.events",
    "Exit": "reconciler.core.exits",
    "Fleet": "reconciler.fleet",
    "Level": "reconciler.core.objection",
    "Objection": "reconciler.core.objection",
    "Plan": "reconciler.core.plan",
    "Policy": "reconciler.core.policies",
    "PolicyContext": "reconciler.core.policies",
    "Recorder": "reconciler.recording",
}


def __getattr__(name: str) -> Any:
    """Load the API when it is first asked for: `fleet --help` and completion must not pay for it."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
