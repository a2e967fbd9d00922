"""Arguments as the spec has them (YAML values) to command-line words."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Style:
    """Where an engine's parser differs from the usual. Names are with dashes.

    `json_lists`: flags that want a list as one JSON text. `repeated`: flags that are written once for each item.
    `negates`: whether false is said as `--no-flag`; else a flag that is false is left out.
    """

    json_lists: frozenset[str] = frozenset()
    repeated: frozenset[str] = frozenset()
    negates: bool = True


USUAL = Style()


def flags(args: Mapping[str, object], style: Style = USUAL) -> tuple[str, ...]:
    """`{"ctx-size": 512, "jinja": True}` to ("--ctx-size", "512", "--jinja"), in the order of the names.

    True is the bare flag, False is `--no-flag`, a list is the flag with several words, a mapping is JSON, a name of
    one letter gets one dash.
    """
    return tuple(word for name in sorted(args) for word in _flag(name, args[name], style))


def _flag(name: str, value: object, style: Style) -> Iterator[str]:
    dashes = "-" if len(name) == 1 else "--"
    plain = name.replace("_", "-")
    if value is False:
        yield from (f"{dashes}no-{name}",) if style.negates else ()
    elif value is True:
        yield f"{dashes}{name}"
    elif not isinstance(value, (list, tuple)) or plain in style.json_lists:
        yield from (f"{dashes}{name}", _word(value))
    elif plain in style.repeated:
        yield from (word for item in value for word in (f"{dashes}{name}", _word(item)))
    else:
        yield from (f"{dashes}{name}", *map(_word, value))


def _word(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
