"""Secrets by reference, resolved on the controller at the last moment and handed only to the node that needs them."""

import functools
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from reconciler.core.desired import ContainerSpec, SecretRef

SHORTEST_HIDDEN = 6


class SecretError(Exception):
    """A reference that cannot be resolved. The message names the reference, never a value."""


def resolve(spec: ContainerSpec) -> dict[str, str]:
    """The value of every secret the container needs, by reference.

    Raises `SecretError` for a variable that is not set or a file that cannot be read.
    """
    return {value.secret: _value(value.secret) for _, value in spec.env if isinstance(value, SecretRef)}


def hider(specs: Iterable[ContainerSpec]) -> Callable[[str], str]:
    """A function that takes the values of these containers' secrets out of a text.

    An engine may print its environment, and the last lines of a failed one are shown. Values of fewer than
    `SHORTEST_HIDDEN` characters stay: hiding them would only tear words apart.
    """
    references = {value.secret for spec in specs for _, value in spec.env if isinstance(value, SecretRef)}
    values = sorted({value for value in map(_value_or_none, references) if value}, key=len, reverse=True)
    hidden = [value for value in values if len(value) >= SHORTEST_HIDDEN]
    return lambda text: functools.reduce(lambda told, value: told.replace(value, "[redacted]"), hidden, text)


def _value_or_none(reference: str) -> str | None:
    try:
        return _value(reference)
    except SecretError:
        return None


def _value(reference: str) -> str:
    scheme, _, rest = reference.partition(":")
    try:
        value = _variable(reference, rest) if scheme == "env" else Path(rest).read_bytes().decode().removesuffix("\n")
        value.encode()  # a variable that is no UTF-8 is read with stand-ins, which Docker would make other bytes of
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise SecretError(f"secret {reference}: {reason}") from None
    if "\0" in value:
        raise SecretError(f"secret {reference}: holds a NUL character, which no variable of a container can")
    return value


def _variable(reference: str, name: str) -> str:
    if name not in os.environ:
        raise SecretError(f"secret {reference}: the variable is not set here")
    return os.environ[name]
