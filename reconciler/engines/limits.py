"""Rules on what a lane asks of its model and of itself: heads that divide, contexts that fit.

They hold for every lane, placed or not. Other rules on sizes are in `specs.rules`; these need to know how engines
split a model and name their context.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import specs
from reconciler.core.arithmetic import ModelConfig, Parallel, parallel_faults, unusable

BY_LAYERS = frozenset({"llamacpp"})
"""Engines that give whole layers to their ranks, however many heads there are."""

WHOLE = frozenset({"vllm", "sglang"})
"""Engines of which each rank carries a part of the model, so that there are no more of them than parts."""

CONTEXTS = ("max-model-len", "context-length", "ctx-size", "c")
"""What vLLM, SGLang and llama.cpp call the longest context, in tokens."""


def nodes_are_used(draft: specs.Draft) -> Iterator[specs.Diagnostic]:
    """A lane is split over as many GPUs as it takes nodes, at least."""
    for name, lane in draft.lanes.items():
        if lane.engine in WHOLE and lane.node_count > lane.gpu_count:
            yield draft.at(
                ("lanes", name, "nodes"),
                f"the lane '{name}' takes {lane.node_count} nodes, and is split over {lane.gpu_count} of their GPUs",
                f"Each rank of {lane.engine} carries a part of the model.",
                f"write `parallel: {{tensor: {lane.node_count}}}`, or take fewer nodes",
            )


SPECULATION = ("speculative-config", "speculative-draft-model-path", "speculative-algorithm")
"""What turns on speculative decoding, in vLLM and in SGLang."""


@dataclass(frozen=True)
class _Alike:
    """A drafter is split by tensor alone."""

    tensor: int
    pipeline: int = 1
    expert: int = 1


def models_divide(draft: specs.Draft) -> Iterator[specs.Diagnostic]:
    """The heads, layers and experts of each lane's model can be split as the lane says, as far as they are known.

    So can those of the model that drafts for it, where the lane uses it: engines split it by the same `tensor`.
    """
    for name, lane in draft.lanes.items():
        model = draft.models.get(lane.model or "")
        if model is None or lane.engine in BY_LAYERS:
            continue
        yield from _undivided(draft, name, lane.model or "", lane.parallel)
        if model.draft is not None and (tensor := _draft_tensor(lane, model)) is not None:
            yield from _undivided(draft, name, model.draft, _Alike(tensor))


def configs_count(draft: specs.Draft) -> Iterator[specs.Diagnostic]:
    """What `config` of a model says of heads and layers is a number: from anything else nothing would follow."""
    for name, model in draft.models.items():
        for loc in unusable(model.config):
            yield draft.at(
                ("models", name, "config", *loc),
                f"models.{name}.config.{'.'.join(loc)}: wants a whole number above 0",
                "The lanes of the model are checked against it.",
                "write it as its config.json has it, or leave it out",
            )


def _undivided(draft: specs.Draft, lane: str, model: str, parallel: Parallel) -> Iterator[specs.Diagnostic]:
    spec = draft.models.get(model)
    for fault in parallel_faults(ModelConfig.of(spec.config), parallel) if spec else ():
        yield draft.at(
            ("lanes", lane, "parallel"),
            f"the lane '{lane}' cannot be split so: {fault}",
            f"So says `config` of the model '{model}' at {draft.place('models', model, 'config')}.",
            "change `parallel` of the lane",
        )


def _draft_tensor(lane: specs.Lane, model: specs.Model) -> int | None:
    """Over how many GPUs the drafter is split; None where the lane uses none."""
    args = {key.replace("_", "-"): value for key, value in {**model.args, **lane.args}.items() if value is not None}
    if not any(key in args for key in SPECULATION):
        return None
    config = args.get("speculative-config")
    own = config.get("draft_tensor_parallel_size") if isinstance(config, Mapping) else None
    return own if isinstance(own, int) and own > 0 else lane.parallel.tensor


def contexts_fit(draft: specs.Draft) -> Iterator[specs.Diagnostic]:
    """Neither a probe nor the measurement of speed asks for more tokens than the lane's longest context."""
    for name, lane in draft.lanes.items():
        found = _context(draft, lane)
        if found is None:
            continue
        key, most = found
        for loc, what, wanted in _asked(lane.health):
            if wanted > most:
                yield draft.at(
                    ("lanes", name, "health", *loc),
                    f"{what} {wanted} tokens; the lane '{name}' takes {most} at most (`{key}`)",
                    "The engine refuses such a question, so that the lane would never be healthy.",
                    f"ask for less, or raise `{key}`",
                )


def _asked(health: specs.Health) -> Iterator[tuple[tuple[str | int, ...], str, int]]:
    """Yield where a question stands, what it is, and the tokens it takes at least."""
    for index, probe in enumerate(health.probes):
        if probe.chat is not None or probe.completion is not None:
            yield ("probes", index, "max_tokens"), "the probe wants", probe.max_tokens
    speed = health.performance
    if speed is not None:
        what = f"measured with a context of {speed.context} and {speed.tokens} more, a stream is"
        yield ("performance", "context"), what, speed.context + speed.tokens


def _context(draft: specs.Draft, lane: specs.Lane) -> tuple[str, int] | None:
    """The argument that limits the context, and its tokens; None where it is left to the engine."""
    model = draft.models.get(lane.model or "")
    args = {key.replace("_", "-"): value for key, value in {**(model.args if model else {}), **lane.args}.items()}
    known = ((key, tokens(args.get(key))) for key in CONTEXTS)
    return next(((key, value) for key, value in known if value is not None), None)


SHARES = {"vllm": ("gpu-memory-utilization",), "sglang": ("mem-fraction-static",)}
"""Arguments that are a share of a GPU's memory, more than 0 and not more than 1, as the engines' own documentation has
them. A percentage is refused by an engine only when its boot is under way.
"""


def shares_are_shares(draft: specs.Draft) -> Iterator[specs.Diagnostic]:
    """A share of the memory is no percentage."""
    for name, lane in draft.lanes.items():
        for loc, value in _arguments(draft, name, lane).items():
            share = loc[-1].replace("_", "-")
            number = _number(value) if share in SHARES.get(lane.engine, ()) else None
            if number is not None and not 0 < number <= 1:
                told = f"`{share}` is a share of the GPU's memory, more than 0 and at most 1"
                yield draft.at(loc, told, hint=f"write {number / 100:g}" if 1 < number <= 100 else "")


def _arguments(draft: specs.Draft, name: str, lane: specs.Lane) -> dict[tuple[str, ...], object]:
    """Every argument of a lane and of its model, by its place."""
    model = draft.models.get(lane.model or "")
    found: dict[tuple[str, ...], object] = {("lanes", name, "args", key): value for key, value in lane.args.items()}
    for key, value in (model.args if model else {}).items():
        found["models", lane.model or "", "args", key] = value
    return found


def _number(value: object) -> float | None:
    try:
        return None if isinstance(value, bool) or not isinstance(value, int | float | str) else float(value)
    except ValueError:
        return None


def tokens(value: object) -> int | None:
    """`163840`, "160k" (thousands) and "160K" (of 1024), as vLLM reads them; None for what says no number."""
    if isinstance(value, int):
        return value if value > 0 and not isinstance(value, bool) else None
    text = value if isinstance(value, str) else ""
    factor = {"k": 10**3, "m": 10**6, "K": 2**10, "M": 2**20}.get(text[-1:], 1)
    digits = text[:-1] if factor > 1 else text
    return int(digits) * factor if digits.isascii() and digits.isdigit() and int(digits) else None


LIMITS: tuple[specs.Rule, ...] = (configs_count, models_divide, nodes_are_used, contexts_fit, shares_are_shares)
