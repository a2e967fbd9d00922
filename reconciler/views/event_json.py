"""Events as NDJSON: one line each."""

from reconciler.core.envelope import Envelope, line


def event_line(envelope: Envelope) -> str:
    """The event as one line of JSON, without its line end."""
    return line(envelope)
