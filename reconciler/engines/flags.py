"""Arguments as the spec has them (YAML values) to command-line words."""

import json
from collections.abc import Iterator, Mapping


def flags(args: Mapping[str, object]) -> tuple[str, ...]:
    """`{"ctx-size": 512, "jinja": True}` to ("--ctx-size", "512", "--jinja"), in the order of the names.

    True is the bare flag, False is `--no-flag`, a list is the flag with several words, a mapping is JSON, a name of
    one letter gets one dash.
    """
    return tuple(word for name in sorted(args) for word in _flag(name, args[name]))


def _flag(name: str, value: object) -> Iterator[str]:
    dashes = "-" if len(name) == 1 else "--"
    if value is False:
        yield f"{dashes}no-{name}"
        return
    yield f"{dashes}{name}"
    if value is True:
        return
    if isinstance(value, (list, tuple)):
        yield from (_word(item) for item in value)
    else:
        yield _word(value)


def _word(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
