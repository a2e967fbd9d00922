"""Plays many seeds on all processors."""

import gc
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from reconciler.testing.simulation import Failed, Played, scenario, watched
from tests.simulate.controller import FleetController

AT_ONCE = 20
"""Seeds in one piece of work. Between pieces the memory is tidied up, and not while a story is played."""


@dataclass
class Tally:
    """What came of many seeds: how applies ended, what troubles struck, and what failed."""

    played: int = 0
    seconds: float = 0.0
    exits: Counter[int] = field(default_factory=Counter)
    struck: Counter[str] = field(default_factory=Counter)
    failed: list[Failed] = field(default_factory=list)

    @property
    def a_minute(self) -> float:
        """How many were played in a minute."""
        return self.played / self.seconds * 60 if self.seconds else 0.0


def play_many(
    seeds: Iterable[int], processes: int | None = None, on_progress: Callable[[Tally], None] = lambda tally: None
) -> Tally:
    """Play them all. `processes`: as many as there are processors by default."""
    tally, began_s = Tally(), time.perf_counter()
    with multiprocessing.get_context("fork").Pool(processes or os.cpu_count() or 1) as pool:
        for found in pool.imap_unordered(_piece, _pieces(seeds)):
            for played in found:
                _add(tally, played)
            tally.seconds = time.perf_counter() - began_s
            on_progress(tally)
    return tally


def _add(tally: Tally, played: Played) -> None:
    tally.played += 1
    tally.exits.update(played.exits)
    tally.struck.update(played.struck)
    if played.failed is not None:
        tally.failed.append(played.failed)


def _pieces(seeds: Iterable[int]) -> Iterator[tuple[int, ...]]:
    todo = tuple(seeds)
    for place in range(0, len(todo), AT_ONCE):
        yield todo[place : place + AT_ONCE]


def _piece(seeds: tuple[int, ...]) -> list[Played]:
    gc.disable()
    try:
        return [watched(scenario(seed), FleetController) for seed in seeds]
    finally:
        gc.enable()
        gc.collect()
