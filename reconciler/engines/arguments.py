"""Rules on an engine's arguments that a lane can break: flags of other keys, flags that exclude or need each other.

What an engine knows is data (`ArgumentRules`); here is how a lane, with the defaults of its model, is held against it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import specs
from reconciler.engines.base import Fault
from reconciler.engines.limits import tokens

_JSON = re.compile(r"\s*(\{\s*\"|\[\s*[\[{\"])")


@dataclass(frozen=True)
class Pair:
    """Two arguments, one of them maybe inside the JSON of another (`kernel-config.backend`), and what the engine says.

    In an exclusive pair at most one may be set, be it to false; in a needed pair the first is nothing without the
    second.
    """

    first: str
    second: str
    why: str


@dataclass(frozen=True)
class ArgumentRules:
    """What one engine asks of its arguments. Names are with dashes throughout.

    `aliases`: other spellings of a name. `owned`: made from that key of the lane or cluster, beside those that the
    cluster owns whatever the engine (`specs.rules.fabric`). `refused`: with them the lane could not be reached or
    proved; the text says why.
    """

    aliases: Mapping[str, str] = field(default_factory=dict)
    owned: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    exclusive: tuple[Pair, ...] = ()
    needed: tuple[Pair, ...] = ()


@dataclass(frozen=True)
class Given:
    """An argument as it is set: where, under which spelling, and to what."""

    loc: tuple[str | int, ...]
    spelling: str
    value: object
    of_model: bool = False


def given(lane: specs.Lane, model: specs.Model | None, aliases: Mapping[str, str]) -> dict[str, Given]:
    """Every argument of a lane by its full name with dashes; what is inside a mapping, as `name.key`, too.

    `no-x: true` counts as `x: false`. What a null takes away is not there.
    """
    own = {_name(key, aliases): Given(("args", key), key, value) for key, value in lane.args.items()}
    defaults = model.args if model else {}
    found = {_name(key, aliases): Given(("model",), key, value, of_model=True) for key, value in defaults.items()}
    items = {name: item for name, item in {**found, **own}.items() if item.value is not None}
    return {key: value for name, item in items.items() for key, value in _spread(name, item)}


def argument_faults(lane: specs.Lane, model: specs.Model | None, rules: ArgumentRules) -> Iterator[Fault]:
    """What of a lane's arguments breaks the rules."""
    args = given(lane, model, rules.aliases)
    for name, item in args.items():
        where = _where(item)
        if (key := rules.owned.get(name)) is not None:
            yield Fault(item.loc, f"`{item.spelling}` is made from {key}", hint=f"take it out of {where}")
        elif (why := rules.refused.get(name)) is not None and item.value is not False:
            yield Fault(item.loc, f"`{item.spelling}` cannot be used here", why, f"take it out of {where}")
        elif (broken := _broken_json(item.value)) is not None:
            hint = "write it as YAML, without quotes around it: it is handed on as JSON"
            yield Fault(item.loc, f"`{item.spelling}` begins like JSON, and is none", broken, hint)
    yield from _spelled_twice(lane, model, rules)
    yield from _pair_faults(args, rules)


def _spelled_twice(lane: specs.Lane, model: specs.Model | None, rules: ArgumentRules) -> Iterator[Fault]:
    """Yield what the lane says under another spelling: both would reach the engine."""
    first: dict[str, str] = {}
    for key in (*(model.args if model else {}), *lane.args):
        seen = first.setdefault(_name(key, rules.aliases), key)
        if seen != key:
            loc = ("args", key) if key in lane.args else ("model",)
            yield Fault(loc, f"`{key}` and `{seen}` are the same argument", hint=f"write `{seen}`, as there")


def _pair_faults(args: Mapping[str, Given], rules: ArgumentRules) -> Iterator[Fault]:
    for pair in rules.exclusive:
        first, second = args.get(pair.first), args.get(pair.second)
        if first is not None and second is not None:
            summary = f"`{first.spelling}` and `{second.spelling}` exclude each other"
            yield Fault(first.loc, summary, pair.why, f"keep one; the other is in {_where(second)}")
    for pair in rules.needed:
        wanting = args.get(pair.first)
        if wanting is not None and wanting.value is not False and not _is_set(args.get(pair.second)):
            summary = f"`{wanting.spelling}` needs `{pair.second}`"
            yield Fault(wanting.loc, summary, pair.why, f"set `{pair.second}`, or take `{wanting.spelling}` out")


def number(args: Mapping[str, Given], name: str) -> int | None:
    """The argument's value as a number of tokens or the like; None for one that is not set, or says no number."""
    item = args.get(name)
    return tokens(item.value) if item else None


def _name(key: str, aliases: Mapping[str, str]) -> str:
    top, dot, below = key.replace("_", "-").partition(".")
    return f"{aliases.get(top, top)}{dot}{below}"


def _spread(name: str, item: Given) -> Iterator[tuple[str, Given]]:
    """Yield the argument and, of a mapping, what is inside it."""
    if name.startswith("no-") and item.value is True:
        yield name.removeprefix("no-"), Given(item.loc, item.spelling, value=False, of_model=item.of_model)
        return
    yield name, item
    for key, value in _mapping(item.value).items():
        if value is not None:
            inside = Given(item.loc, f"{item.spelling}.{key}", value, item.of_model)
            yield f"{name}.{str(key).replace('_', '-')}", inside


def _mapping(value: object) -> Mapping[object, object]:
    """A value that is a mapping, or the JSON text of one."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, Mapping) else {}


def _broken_json(value: object) -> str | None:
    """What is wrong with a text that begins as JSON does; None for any other."""
    if isinstance(value, str) and _JSON.match(value):
        try:
            json.loads(value)
        except ValueError as error:
            return f"{error}."
    return None


def _is_set(item: Given | None) -> bool:
    return item is not None and item.value is not False


def _where(item: Given) -> str:
    return "the model's `args`" if item.of_model else "`args`"
