"""The rule on what models ask of the lanes that serve them."""

import json
from collections.abc import Iterator, Mapping

from specs.diagnostics import Diagnostic
from specs.draft import Draft
from specs.environment import Secret
from specs.lanes import Lane, Model
from specs.requirements import Requirement
from specs.tree import Loc

NOT_SET = object()


def requirements_are_met(draft: Draft) -> Iterator[Diagnostic]:
    """Every lane, placed or not, has what its model requires of lanes of its engine."""
    for name, lane in draft.lanes.items():
        model = draft.models.get(lane.model or "")
        for index, requirement in enumerate(model.requires if model else ()):
            if model is None or requirement.engine not in (None, lane.engine):
                continue
            place = draft.place("models", lane.model or "", "requires", index)
            why = f"{requirement.reason}\nThe model '{lane.model}' requires it at {place}."
            for loc, summary, hint in (*_env(name, lane, requirement), *_args(name, lane, model, requirement)):
                yield draft.at(loc, summary, why, hint)


Unmet = tuple[Loc, str, str]


def _env(name: str, lane: Lane, requirement: Requirement) -> Iterator[Unmet]:
    for key, wanted in requirement.env.items():
        found = lane.env.get(key)
        if found == wanted:
            continue
        has = "a secret" if isinstance(found, Secret) else "not set" if found is None else f"'{found}'"
        loc: Loc = ("lanes", name, "model") if found is None else ("lanes", name, "env", key)
        summary = f"the lane '{name}' needs {key}={wanted} in `env`; it is {has}"
        yield loc, summary, f"write `{key}: {wanted}` into `env` of the lane"


def _args(name: str, lane: Lane, model: Model, requirement: Requirement) -> Iterator[Unmet]:
    if lane.argv:  # words that only their program can read
        return
    args = {_flag(key): value for key, value in {**model.args, **lane.args}.items() if value is not None}
    for key, wanted in requirement.args.items():
        found = args.get(_flag(key), NOT_SET)
        if (found is NOT_SET) if wanted is None else _holds(found, wanted):
            continue
        loc: Loc = ("lanes", name, "args", key) if key in lane.args else ("lanes", name, "model")
        has = "not set" if found is NOT_SET else json.dumps(found)
        must = "may not have" if wanted is None else "needs"
        value = "" if wanted is None else f": {json.dumps(wanted)}"
        do = f"set `{key}: null`" if wanted is None else f"write `{key}{value}`"
        yield loc, f"the lane '{name}' {must} `{key}{value}` in `args`; it is {has}", f"{do} in `args` of the lane"


def _holds(found: object, wanted: object) -> bool:
    """Whether a value is the wanted one; a mapping may have further keys."""
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(_holds(found.get(key, NOT_SET), wanted[key]) for key in wanted)
    return type(found) is type(wanted) and found == wanted


def _flag(name: str) -> str:
    return name.replace("_", "-")
