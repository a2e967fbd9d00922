"""Secrets by reference, resolved on the controller at the last moment and handed only to the node that needs them."""

import os
from pathlib import Path

from reconciler.core.desired import ContainerSpec, SecretRef


class SecretError(Exception):
    """A reference that cannot be resolved. The message names the reference, never a value."""


def resolve(spec: ContainerSpec) -> dict[str, str]:
    """The value of every secret the container needs, by reference.

    Raises `SecretError` for a variable that is not set or a file that cannot be read.
    """
    return {value.secret: _value(value.secret) for _, value in spec.env if isinstance(value, SecretRef)}


def _value(reference: str) -> str:
    scheme, _, rest = reference.partition(":")
    if scheme == "env":
        if rest not in os.environ:
            raise SecretError(f"secret {reference}: the variable is not set here")
        return os.environ[rest]
    try:
        return Path(rest).read_text(encoding="utf-8").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise SecretError(f"secret {reference}: {reason}") from None
