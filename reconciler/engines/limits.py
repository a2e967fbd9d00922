"""Rules on what a lane asks of its model and of itself: heads that divide, contexts that fit.

They hold for every lane, placed or not. Other rules on sizes are in `specs.rules`; these need to know how engines
split a model and name their context.
"""

from collections.abc import Iterator

import specs
from reconciler.core.arithmetic import ModelConfig, parallel_faults

BY_LAYERS = frozenset({"llamacpp"})
"""Engines that give whole layers to their ranks, however many heads there are."""

CONTEXTS = ("max-model-len", "context-length", "ctx-size", "c")
"""What vLLM, SGLang and llama.cpp call the longest context, in tokens."""


def models_divide(draft: specs.Draft) -> Iterator[specs.Diagnostic]:
    """The heads, layers and experts of each lane's model can be split as the lane says, as far as they are known."""
    for name, lane in draft.lanes.items():
        model = draft.models.get(lane.model or "")
        if model is None or lane.engine in BY_LAYERS:
            continue
        for fault in parallel_faults(ModelConfig.of(model.config), lane.parallel):
            yield draft.at(
                ("lanes", name, "parallel"),
                f"the lane '{name}' cannot be split so: {fault}",
                f"So says `config` of the model '{lane.model}' at {draft.place('models', lane.model or '', 'config')}.",
                "change `parallel` of the lane",
            )


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
    args = {**(model.args if model else {}), **lane.args}
    known = ((key, tokens(args.get(key))) for key in CONTEXTS)
    return next(((key, value) for key, value in known if value is not None), None)


def tokens(value: object) -> int | None:
    """`163840`, "160k" (thousands) and "160K" (of 1024), as vLLM reads them; None for what says no number."""
    if isinstance(value, int):
        return value if value > 0 and not isinstance(value, bool) else None
    text = value if isinstance(value, str) else ""
    factor = {"k": 10**3, "m": 10**6, "K": 2**10, "M": 2**20}.get(text[-1:], 1)
    digits = text[:-1] if factor > 1 else text
    return int(digits) * factor if digits.isascii() and digits.isdigit() and int(digits) else None


LIMITS: tuple[specs.Rule, ...] = (models_divide, contexts_fit)
