"""A failed scenario as a story for people."""

from collections.abc import Iterator

from reconciler.testing.simulation.playing import Failed
from reconciler.testing.simulation.scenario import Scenario


def story(failed: Failed) -> str:
    """The seed, what was there, what was wanted and what went wrong, what came about, and what never may happen."""
    lines = [f"seed {failed.scenario.seed}", *_before(failed.scenario), *_turns(failed.scenario), "what came about:"]
    lines += (f"  {event}" for event in failed.events)
    lines += ("what never may happen:", *(f"  {why}" for why in failed.why))
    return "\n".join(lines)


def _before(scenario: Scenario) -> Iterator[str]:
    yield f"{len(scenario.cast.nodes)} nodes; in the beginning:"
    yield from (f"  {left.how}: {left.part.told}" for left in scenario.left)


def _turns(scenario: Scenario) -> Iterator[str]:
    for number, turn in enumerate(scenario.turns, 1):
        wants = "; ".join(part.told for part in turn.wants) or "nothing"
        yield f"turn {number}{' with an empty record' if turn.forgets else ''} wants {wants}"
        yield from (f"  {trouble.told}" for trouble in turn.troubles)
        if turn.rival is not None:
            other = "; ".join(part.told for part in turn.rival) or "nothing"
            yield f"  {turn.rival_after_s:g} s later a rival wants {other}"
