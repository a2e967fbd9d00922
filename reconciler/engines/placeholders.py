"""Placeholders that stand for nothing: found while the spec is read, not by the program that is handed the braces."""

import difflib
from collections.abc import Iterator

import specs
from reconciler.engines.base import Fault
from reconciler.engines.drafts import HINT, LACKING
from reconciler.engines.templates import NAMES, named


def placeholder_faults(
    lane: specs.Lane, model: specs.Model | None, loc: tuple[str | int, ...], text: str
) -> Iterator[Fault]:
    """Yield a fault for each placeholder of the text at `loc` that this lane has nothing for."""
    for name in named(text):
        if name == "model" and lane.model is None:
            yield Fault(loc, "{model} is of a lane with a model", hint="set `model` of the lane")
        elif name == "draft" and (model is None or model.draft is None):
            yield Fault(loc, LACKING, hint=HINT)
        elif not _is_known(lane, name):
            close = difflib.get_close_matches(name, [*NAMES, *(f"ports.{port}" for port in lane.ports)], 1)
            hint = f"did you mean {{{close[0]}}}?" if close else f"known are {', '.join(NAMES)}, ports.*, paths.*"
            yield Fault(loc, f"unknown placeholder {{{name}}}", hint=hint)


def preflight_faults(lane: specs.Lane, model: specs.Model | None) -> Iterator[Fault]:
    """Yield those in the command of the lane's own preflight."""
    if isinstance(lane.preflight, specs.Preflight):
        for index, word in enumerate(lane.preflight.command or ()):
            yield from placeholder_faults(lane, model, ("preflight", "command", index), word)


def _is_known(lane: specs.Lane, name: str) -> bool:
    if name.startswith("ports."):
        return name.removeprefix("ports.") in lane.ports
    return name in NAMES or name.startswith("paths.")
