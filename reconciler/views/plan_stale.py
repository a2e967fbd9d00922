"""What of a saved plan is stale, as text."""

from collections.abc import Iterable, Iterator, Sequence

from reconciler.core.stale import Stale
from reconciler.views.words import count, one_line, shortened

SHOWN = 20
"""More lines than this are counted."""
WIDTH = 300
"""Characters of one line: names come from the nodes."""


def stale_text(found: Sequence[Stale], valid: Iterable[str]) -> str:
    """Each stale step with what it rests on, then and now. `valid`: the lanes of which no step is stale."""
    return "".join(f"{one_line(line)}\n" for line in _lines(found, sorted(valid)))


def _lines(found: Sequence[Stale], valid: Sequence[str]) -> Iterator[str]:
    steps = dict.fromkeys(item.step for item in found)
    are = "is" if len(steps) == 1 else "are"
    yield f"refused: {count(len(steps), 'step')} of the saved plan {are} stale: the nodes are not as they were"
    for item in found[:SHOWN]:
        yield f"  {item.step}: {shortened(item.told, WIDTH)}"
    if len(found) > SHOWN:
        yield f"  and {len(found) - SHOWN} more; `--json` shows all"
    yield "`fleet plan` shows what is to be done now"
    if valid:
        yield f"still valid, and applied with `--only-valid`: {', '.join(valid)}"
