"""Intents of steps that begin at the same moment, written down together: the disk is waited for once."""

import asyncio

import state

GATHER_S = 0.01
"""How long the first of them waits for others: hundreds of gangs begin within it, and no person notices it."""


class Journal:
    """The journal of one run. Every intent is on stable storage before whoever asked for it goes on."""

    def __init__(self, store: state.Store, run_id: str) -> None:
        self._store = store
        self._run_id = run_id
        self._waiting: list[tuple[state.Intent, asyncio.Future[int]]] = []

    async def intend(self, intent: state.Intent) -> int:
        """Record an intent together with all that are asked for within `GATHER_S`; its sequence in the run.

        Raises `state.StateError`, for each of them, and then none is recorded. Who is cancelled before that moment
        leaves no entry; later, an open one, whose effect has not begun.
        """
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_later(GATHER_S, self._write)
        recorded: asyncio.Future[int] = loop.create_future()
        self._waiting.append((intent, recorded))
        return await recorded

    def _write(self) -> None:
        waiting = [(intent, recorded) for intent, recorded in self._waiting if not recorded.cancelled()]
        self._waiting = []
        if not waiting:
            return
        try:
            sequences = self._store.intents(self._run_id, tuple(intent for intent, _ in waiting))
        except state.StateError as error:
            for _, recorded in waiting:
                recorded.set_exception(error)
            return
        for (_, recorded), sequence in zip(waiting, sequences, strict=True):
            recorded.set_result(sequence)
