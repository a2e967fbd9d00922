"""Any sequence of calls, right or wrong, has the same answers from the SQLite store and the one in memory."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from state import MemoryStore, MisuseError, Store, open_store
from tests.unit.state.samples import a_revision, a_run, intend

RUNS = st.sampled_from(["r1", "r2", "r3"])
GANGS = st.sampled_from(["pair/tiny", "pair/other"])
NUMBERS = st.integers(min_value=1, max_value=4)
SECONDS = st.floats(min_value=0, max_value=1e10)


class Twins(RuleBasedStateMachine):
    """Both stores are told the same."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.model = MemoryStore()
        self.real: Store = open_store(self.folder)

    def teardown(self) -> None:
        self.real.close()
        shutil.rmtree(self.folder)

    def both(self, call: Callable[[Store], object]) -> None:
        expected, found = self.answer(self.model, call), self.answer(self.real, call)
        assert expected == found

    def answer(self, store: Store, call: Callable[[Store], object]) -> object:
        try:
            return call(store)
        except MisuseError:
            return MisuseError

    @rule(name=RUNS, at=SECONDS)
    def begin(self, name: str, at: float) -> None:
        self.both(lambda store: store.begin_run(a_run(name, at)))

    @rule(name=RUNS, at=SECONDS)
    def intend(self, name: str, at: float) -> None:
        self.both(lambda store: intend(store, name, at=at))

    @rule(name=RUNS, sequence=NUMBERS, detail=st.text(st.characters(exclude_categories=["Cs"])), at=SECONDS)
    def settle(self, name: str, sequence: int, detail: str, at: float) -> None:
        self.both(lambda store: store.outcome(name, sequence, "applied", detail, at))

    @rule(name=RUNS, code=st.integers(0, 255), at=SECONDS)
    def end(self, name: str, code: int, at: float) -> None:
        self.both(lambda store: store.end_run(name, code, at))

    @rule(name=RUNS, gang=GANGS, number=NUMBERS, boot_s=SECONDS)
    def confirm(self, name: str, gang: str, number: int, boot_s: float) -> None:
        self.both(lambda store: store.confirm(a_revision(number, name, gang, boot_s)))

    @rule(at=SECONDS, text=st.text(max_size=9))
    def report(self, at: float, text: str) -> None:
        self.both(lambda store: store.add_report(at, text))

    @rule(name=st.sampled_from(["agent", "notes"]), text=st.none() | st.text(max_size=9))
    def remember(self, name: str, text: str | None) -> None:
        self.both(lambda store: store.remember(name, text))

    @rule()
    def reopen(self) -> None:
        self.real.close()
        self.real = open_store(self.folder)

    @invariant()
    def reads_alike(self) -> None:
        self.both(lambda store: (store.reports(3), store.recall("agent"), store.recall("notes")))
        self.both(lambda store: (store.runs(2), store.open_entries(), store.verify()))
        self.both(lambda store: tuple(store.entries(name) for name in ("r1", "r2", "r3")))
        self.both(lambda store: tuple(store.boots(gang, 3) for gang in ("pair/tiny", "pair/other")))


TestTwins = Twins.TestCase
TestTwins.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
