"""The simulated world: one queue of what is still to happen, one history. No asyncio in here.

Time moves only when somebody looks (`sync`): then everything that was due happens, in order.
"""

import heapq
import itertools
from collections.abc import Callable
from dataclasses import replace

from reconciler.testing.history import Happening


class World:
    """Time and queue that all nodes of a simulated fleet share. `clock` gives virtual seconds and never goes back.

    `actor`: the controller whose call has its effect right now; empty for a person and for what happens by itself.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.now_s = 0.0
        self.history: list[Happening] = []
        self.actor = ""
        self.on_happening: Callable[[Happening], None] = lambda happening: None
        self._clock = clock
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._is_advancing = False

    def record(self, happening: Happening) -> None:
        """Write down what happened, and tell whoever watches. It is the doing of whoever acts now."""
        told = replace(happening, by=self.actor) if self.actor else happening
        self.history.append(told)
        self.on_happening(told)

    def after(self, delay_s: float, action: Callable[[], None]) -> None:
        """Let `action` happen `delay_s` seconds from now; those due at one time come in order."""
        heapq.heappush(self._queue, (self.now_s + delay_s, next(self._numbers), action))

    def sync(self) -> None:
        """Let everything happen that is due by now. What happens may itself look: then the rest comes in its turn."""
        if self._is_advancing:
            return
        self._is_advancing = True
        try:
            self._advance(self._clock())
        finally:
            self._is_advancing = False

    def _advance(self, now_s: float) -> None:
        while self._queue and self._queue[0][0] <= now_s:
            self.now_s, _, action = heapq.heappop(self._queue)
            self._by_itself(action)
        self.now_s = max(self.now_s, now_s)

    def _by_itself(self, action: Callable[[], None]) -> None:
        """What was due is nobody's doing, also when it is noticed within somebody's call."""
        actor, self.actor = self.actor, ""
        try:
            action()
        finally:
            self.actor = actor

    @property
    def next_s(self) -> float | None:
        """When the next thing is due; None when nothing is."""
        return self._queue[0][0] if self._queue else None
