"""What the recorded state says to people: how long boots took, and why the last one failed. No plan depends on it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import state
from reconciler.core.machine import BAD, GOOD
from reconciler.core.plan import Op

BOOTS = 5
"""So many of the last boots speak for the next one."""

RUNS_LOOKED_AT = 10
"""How far back it is looked for what became of a lane."""


def boots(folder: Path, gang: str) -> tuple[float, ...]:
    """How long the last boots of the gang took, in seconds, newest first. Raises `state.StateError`."""
    with _read(folder) as store:
        return () if store is None else store.boots(gang, BOOTS)


def failures(folder: Path) -> dict[str, str]:
    """By gang: what went wrong in the newest run that booted or proved it, if something did. Raises `StateError`."""
    with _read(folder) as store:
        return {} if store is None else _failures(store)


@contextmanager
def _read(folder: Path) -> Iterator[state.Store | None]:
    store = state.read_store(folder)
    try:
        yield store
    finally:
        if store is not None:
            store.close()


def _failures(store: state.Store) -> dict[str, str]:
    """By gang: what went wrong in the newest run that booted or proved it, if something did."""
    found: dict[str, str | None] = {}
    for run in store.runs(RUNS_LOOKED_AT):
        for entry in store.entries(run.id):
            if entry.gang in found or entry.op not in {Op.READY, Op.START, Op.VERIFY}:
                continue
            if entry.result in BAD:
                found[entry.gang] = entry.detail
            elif entry.op == Op.VERIFY and entry.result in GOOD:
                found[entry.gang] = None
    return {gang: why for gang, why in found.items() if why is not None}


def boot_spans(store: state.Store, run_id: str) -> dict[str, tuple[float, float]]:
    """For each gang of a run: when its first rank was started and when its gate passed (epoch seconds)."""
    began: dict[str, float] = {}
    spans: dict[str, tuple[float, float]] = {}
    for entry in store.entries(run_id):
        if entry.op == Op.START:
            began.setdefault(entry.gang, entry.intent_at)
        if entry.op == Op.VERIFY and entry.ended_at is not None and entry.gang in began:
            spans[entry.gang] = (began[entry.gang], entry.ended_at)
    return spans
