"""Sizes in bytes and durations in seconds, as people write them."""

import math
import re
from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from specs.diagnostics import refuse, wanted

SIZE_UNITS = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
SECONDS = {"d": Decimal(86400), "h": Decimal(3600), "m": Decimal(60), "s": Decimal(1), "ms": Decimal("0.001")}

MAX_BYTES = 2**63 - 1  # Docker keeps sizes in a signed 64-bit number
MAX_SECONDS = 365 * 86400

_NUMBER = r"[0-9]{1,20}(?:\.[0-9]{1,20})?"
_SIZE = rf"({_NUMBER}) ?({'|'.join(SIZE_UNITS)})"
_DURATION = "".join(rf"(?:({_NUMBER}){unit})?" for unit in SECONDS)
_SIZE_RE = re.compile(_SIZE, re.ASCII)
_DURATION_RE = re.compile(_DURATION, re.ASCII)


def parse_size(text: str) -> int:
    """Return the bytes of a size such as "128GiB" or "1.5TB".

    Raises PydanticCustomError (a ValueError) for anything else.
    """
    match = _SIZE_RE.fullmatch(text)
    if match is None:
        raise refuse(
            f"'{text[:40]}' is not a size",
            "A size is a number and a unit: B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024).",
            "write for example 128GiB or 512MB",
        )
    size = Decimal(match[1]) * SIZE_UNITS[match[2]]
    if size != int(size):
        raise refuse(f"'{text[:40]}' is not a whole number of bytes", hint="use a smaller unit")
    return int(size)


def parse_duration(text: str) -> float:
    """Return the seconds of a duration such as "40m", "1h30m", "2.5s" or "300ms".

    Raises PydanticCustomError (a ValueError) for anything else.
    """
    match = _DURATION_RE.fullmatch(text)
    if match is None or not text:
        raise refuse(
            f"'{text[:40]}' is not a duration",
            "A duration is a number of seconds, or numbers with the units d, h, m, s, ms, the largest first.",
            "write for example 40m, 1h30m, 2.5s or 300ms",
        )
    parts = zip(match.groups(), SECONDS.values(), strict=True)
    return float(sum(Decimal(number) * unit for number, unit in parts if number))


def _to_bytes(value: object) -> object:
    size = parse_size(value) if isinstance(value, str) else value
    if not isinstance(size, int) or isinstance(size, bool):
        raise wanted("a size such as 128GiB")
    if not 0 <= size <= MAX_BYTES:
        raise refuse("a size is between 0 bytes and 8 EiB")
    return size


def _to_seconds(value: object) -> object:
    seconds = parse_duration(value) if isinstance(value, str) else value
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        raise wanted("a duration such as 40m or 2.5s")
    if not (math.isfinite(seconds) and 0 <= seconds <= MAX_SECONDS):
        raise refuse("a duration is between 0 seconds and 365 days")
    return seconds


def _size_schema(least: int) -> WithJsonSchema:
    return WithJsonSchema(
        {
            "title": "Size",
            "description": "bytes, or a number with a unit: 512MB, 128GiB, 1.5TiB",
            "anyOf": [{"type": "integer", "minimum": least}, {"type": "string", "pattern": f"^{_SIZE}$"}],
        }
    )


ByteSize = Annotated[int, BeforeValidator(_to_bytes), _size_schema(0)]
"""Bytes, as an int; written as 128GiB, 512MB or a whole number of bytes."""

PositiveSize = Annotated[int, BeforeValidator(_to_bytes), Field(gt=0), _size_schema(1)]
"""A ByteSize of more than zero bytes."""

_DURATION_SCHEMA = {
    "title": "Duration",
    "description": "seconds, or numbers with units: 40m, 1h30m, 2.5s, 300ms",
    "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": f"^(?=.){_DURATION}$"}],
}
Duration = Annotated[float, BeforeValidator(_to_seconds), WithJsonSchema(_DURATION_SCHEMA)]
"""Seconds, as a float; written as 40m, 1h30m, 2.5s, 300ms or a number of seconds. Zero is allowed."""

PositiveDuration = Annotated[float, BeforeValidator(_to_seconds), Field(gt=0), WithJsonSchema(_DURATION_SCHEMA)]
"""A Duration of more than zero seconds."""
