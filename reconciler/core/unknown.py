"""Nodes of which nothing is known, and why: a fact like any other, and never empty."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class UnknownKind(StrEnum):
    """Why a node could not be read. Values are stable: they are in JSON outputs."""

    UNRESOLVED = "unresolved"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    HOST_KEY_UNKNOWN = "host-key-unknown"
    HOST_KEY_CHANGED = "host-key-changed"
    AUTH = "auth"
    DOCKER_DENIED = "docker-denied"
    DOCKER_DOWN = "docker-down"
    LOST = "lost"
    BAD_REPLY = "bad-reply"
    OFF = "off"  # the spec says that it is powered off: nobody asked it


@dataclass(frozen=True)
class Unknown:
    """A node of which nothing is known now: what happened, and what a person can do about it."""

    node: str
    kind: UnknownKind
    reason: str
    hint: str = ""

    @property
    def is_declared(self) -> bool:
        """Whether the spec says that the node is off: then nobody waits for it, and nothing is done there."""
        return self.kind is UnknownKind.OFF


def unreachable(states: Iterable[object]) -> tuple[Unknown, ...]:
    """Of what nodes came to, those that should have answered and did not; not those declared off."""
    return tuple(state for state in states if isinstance(state, Unknown) and not state.is_declared)


def not_read(states: Iterable[Unknown]) -> str:
    """Why nothing is done that needs these nodes, for people: "n1, n2 cannot be read; n3 is declared powered off"."""
    found = tuple(states)
    lost = ", ".join(state.node for state in found if not state.is_declared)
    off = ", ".join(state.node for state in found if state.is_declared)
    are = "are" if "," in off else "is"
    return "; ".join(filter(None, (lost and f"{lost} cannot be read", off and f"{off} {are} declared powered off")))
