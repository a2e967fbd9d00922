"""`{draft}` in an engine's arguments: the folder of the model that drafts, as the rank's container sees it.

So `speculative-config: {model: "{draft}"}` needs no second spelling of a path that the model's `draft` has already.
"""

from collections.abc import Iterator, Mapping

import specs
from reconciler.engines.base import Fault, Job, Seat

DRAFT = "{draft}"

LACKING = "{draft} is of a lane whose model has a `draft`"
HINT = "set `draft` of the model"


def args_of(job: Job, seat: Seat) -> dict[str, object]:
    """The lane's arguments, over its model's, for one rank."""
    path = job.draft_path(seat)
    return {name: _filled(value, path) for name, value in job.args.items()}


def _filled(value: object, path: str) -> object:
    """The value with the path in each of its texts, however deep."""
    if isinstance(value, str):
        return value.replace(DRAFT, path)
    if isinstance(value, Mapping):
        return {key: _filled(item, path) for key, item in value.items()}
    return [_filled(item, path) for item in value] if isinstance(value, (list, tuple)) else value


def draft_faults(lane: specs.Lane, model: specs.Model | None) -> Iterator[Fault]:
    """Yield each argument that names a draft which the lane's model does not have."""
    if model is not None and model.draft is not None:
        return
    defaults = model.args if model else {}
    for name, value in {**defaults, **lane.args}.items():
        if _filled(value, "") != value:
            yield Fault(("args", name) if name in lane.args else ("model",), LACKING, hint=HINT)
