"""Writes down what happens, as NDJSON: numbers events, says when, and keeps repeated news of one step few."""

import time
import uuid
from collections.abc import Callable

from reconciler.core.envelope import Told, enveloped
from reconciler.core.events import RunEnded, RunStarted, StepProgress
from reconciler.views.event_json import event_line

NEWS_S = 5.0
"""News of one step are written at most so often: a transfer tells of its bytes many times a second."""


class Recorder:
    """One stream of events. `write` is given each line, with its end; `run`: the id of what belongs to no run.

    A `write` that raises `OSError` is told to `on_lost` once, and nothing is written from then on: what cannot be
    written down is no reason to leave a lane half booted.
    """

    def __init__(
        self,
        write: Callable[[str], object],
        run: str | None = None,
        now: Callable[[], float] = time.time,
        on_lost: Callable[[OSError], object] = lambda error: None,
    ) -> None:
        self.id = run or uuid.uuid4().hex[:12]
        self._write = write
        self._now = now
        self._on_lost = on_lost
        self._run = self.id
        self._sequence = 0
        self._told_s: dict[str, float] = {}
        self._is_lost = False

    def take(self, event: Told) -> None:
        """Write the event down."""
        now_s = self._now()
        if self._is_lost or self._is_old_news(event, now_s):
            return
        if isinstance(event, RunStarted):
            self._run = event.run_id
        self._sequence += 1
        try:
            self._write(event_line(enveloped(event, self._run, self._sequence, now_s)) + "\n")
        except OSError as error:
            self._is_lost = True
            self._on_lost(error)
        if isinstance(event, RunEnded):
            self._run = self.id

    def _is_old_news(self, event: Told, now_s: float) -> bool:
        if not isinstance(event, StepProgress):
            return False
        told_s = self._told_s.get(event.step.id)
        if told_s is not None and now_s - told_s < NEWS_S:
            return True
        self._told_s[event.step.id] = now_s
        return False
