"""A declarative reconciler for fleets of GPU nodes that serve LLM engines. `Fleet` is the way in."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reconciler.fleet import Applied, Fleet

__all__ = ["Applied", "Fleet"]


def __getattr__(name: str) -> Any:
    """Load the API when it is first asked for: `fleet --help` and completion must not pay for it."""
    if name in __all__:
        from reconciler import fleet

        return getattr(fleet, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
