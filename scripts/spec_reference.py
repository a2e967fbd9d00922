"""Writes docs/spec.md, the reference of every key of a spec, from the spec's JSON Schema: `make spec-reference`."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import specs

PAGE = Path(__file__).parents[1] / "docs/spec.md"

Schema = Mapping[str, Any]

HEAD = """\
# Reference of the spec

Made from the JSON Schema by `make spec-reference`; do not edit. `fleet schema` prints that schema, for completion and
checks in editors. [README](../README.md#the-spec) has an example and the rules between objects, [engines](engines.md)
what each engine makes of a lane.

| type | what to write |
|---|---|
| name | 1 to 63 of a-z, 0-9, `.`, `_` and `-`; starts with a letter or a digit |
| text | kept as written: `yes`, `010` and `1e3` need no quotes where a key takes any text |
| duration | seconds, or numbers with the units d, h, m, s, ms: `40m`, `1h30m`, `2.5s`, `300ms` |
| size | bytes, or a number with a unit: `128GiB`, `1.5TiB` (powers of 1024), `512MB` (powers of 1000) |
| day | year, month and day: `2026-12-24` |
| mapping of names | keys that you choose, each with a value of the type said |
| any YAML | text, number, true or false, list or mapping |

Unknown keys are errors. A path on the node may hold `{paths.NAME}`, which is that path of the node.
"""


def reference() -> str:
    """The whole page."""
    schema = specs.json_schema()
    definitions = schema["$defs"]
    sections = [HEAD, *_section("The file", schema, "", definitions)]
    for name, path in _paths(schema, definitions).items():
        sections += _section(name, definitions[name], path, definitions)
    return "\n".join(sections)


def _paths(schema: Schema, definitions: Mapping[str, Schema]) -> dict[str, str]:
    """Each object with the place where it is first written, in the order of the file, what is below it behind it."""
    found: dict[str, str] = {}

    def walk(item: Schema, path: str) -> None:
        for key, value in item.get("properties", {}).items():
            for name, steps in _references(value):
                place = f"{path}{key}{steps}"
                if name not in found and definitions[name].get("properties"):
                    found[name] = place
                    walk(definitions[name], f"{place}.")
                elif name in found and place.count(".") < found[name].count("."):
                    found[name] = place  # a secret is of a lane's `env` before it is of a role's

    walk(schema, "")
    return found


def _references(value: Schema) -> Iterator[tuple[str, str]]:
    """The objects a value can hold, each with the steps from the value to it."""
    if "$ref" in value:
        yield value["$ref"].rpartition("/")[2], ""
    for part in (*value.get("anyOf", ()), *value.get("oneOf", ())):
        yield from _references(part)
    if "items" in value:
        yield from ((name, f"[]{steps}") for name, steps in _references(value["items"]))
    for part in value.get("patternProperties", {}).values():
        yield from ((name, f".NAME{steps}") for name, steps in _references(part))


def _section(name: str, schema: Schema, path: str, definitions: Mapping[str, Schema]) -> list[str]:
    required = set(schema.get("required", ()))
    rows = [
        f"| `{key}` | {_type(value)} | {_default(key in required, value, definitions)} | {_meaning(value)} |"
        for key, value in schema["properties"].items()
    ]
    place = f"`{path}`: " if path else ""
    table = ["| key | type | default | meaning |", "|---|---|---|---|", *rows]
    return [f"## {name}", "", f"{place}{schema['description']}", "", *table, ""]


def _type(value: Schema) -> str:
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return "any YAML" if name == "JsonValue" else f"[{name}](#{name.lower()})"
    if value.get("title") in TITLES:
        return TITLES[value["title"]]
    if {"format": "ipv4"} in value.get("anyOf", ()):
        return "IP address"
    if value.get("format") == "date":
        return "day"
    parts = [part for part in (*value.get("anyOf", ()), *value.get("oneOf", ())) if part.get("type") != "null"]
    return " or ".join(dict.fromkeys(map(_type, parts))) or _plain_type(value)


TITLES = {"Duration": "duration", "Size": "size"}


def _plain_type(value: Schema) -> str:
    kind = value["type"]
    if kind == "array":
        return f"list of {_type(value['items'])}"
    if kind == "object":
        named = value.get("patternProperties", {}).values() or [value.get("additionalProperties", {})]
        return f"mapping of names: {' or '.join(map(_type, named))}"
    if kind == "number":
        return f"number, {_bounds(value)}"
    if kind == "integer":
        return _range(value)
    if kind == "boolean":
        return "`true` or `false`"
    return "name" if str(value.get("description", "")).startswith("A name is") else "text"


def _bounds(value: Schema) -> str:
    if "maximum" in value:
        return f"{value['minimum']:g} to {value['maximum']:g}"
    return f"more than {value['exclusiveMinimum']:g}"


def _range(value: Schema) -> str:
    low, high = value["minimum"], value["maximum"]
    return f"integer, at least {low}" if high >= 2**62 else f"integer, {low} to {high}"


def _default(required: bool, value: Schema, definitions: Mapping[str, Schema]) -> str:
    if required:
        return "**required**"
    if "default" not in value:
        empty = {"array": "`[]`", "object": "`{}`"}
        return empty.get(value.get("type", ""), "**required** in the main file")
    default = value["default"]
    if default is None:
        return ""
    if value.get("title") in UNITS:
        return f"`{UNITS[value['title']](default)}`"
    if "$ref" in value:
        return "its defaults"
    if isinstance(default, list):
        (item,) = _references(value) if value["items"].get("$ref") else [("", "")]
        default = [_said(entry, definitions[item[0]]) if item[0] else entry for entry in default]
    return f"`{json.dumps(default) if not isinstance(default, str) else default}`"


def _said(entry: Mapping[str, object], definition: Schema) -> dict[str, object]:
    """What an object says beyond its defaults."""
    known = {key: value.get("default") for key, value in definition["properties"].items()}
    return {key: value for key, value in entry.items() if known[key] != value}


def _duration(seconds: float) -> str:
    hours, rest = divmod(seconds, 3600)
    if hours > 1 and not rest:
        return f"{hours:g}h"
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:g}m" if minutes and not rest and minutes > 1 else f"{seconds:g}s"


def _size(count: int) -> str:
    """In the largest unit of which it is a whole number."""
    for unit, factor in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count and count % factor == 0:
            return f"{count // factor}{unit}"
    return str(count)


UNITS = {"Duration": _duration, "Size": _size}


def _meaning(value: Schema) -> str:
    return str(value["description"]).replace("|", r"\|").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
