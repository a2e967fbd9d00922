"""The journal under kill -9 and under two writers at once."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from state import open_store, read_store

PROGRAM = """
import sys
from pathlib import Path
from state import open_store
from tests.unit.state.samples import a_run, intend
folder, name, count, fatal = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
store = open_store(folder, busy_s=60.0)  # on a machine with much to do a waiting writer is not served in turn
store.begin_run(a_run(name))
print("begun", flush=True)
for number in range(1, count + 1):
    sequence = intend(store, name, step=f"step-{number}")
    print("intent", sequence, flush=True)
    if number == fatal:
        sys.stdin.readline()
    store.outcome(name, sequence, "applied", "", 1.0)
    print("outcome", sequence, flush=True)
store.end_run(name, 0, 2.0)
"""


def child(folder: Path, name: str, count: int, fatal: int = 0) -> "subprocess.Popen[str]":
    arguments = [sys.executable, "-c", PROGRAM, str(folder), name, str(count), str(fatal)]
    return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def killed(process: "subprocess.Popen[str]") -> list[str]:
    """What it said that nobody has read: also what a reader of lines has taken ahead."""
    with process:
        process.send_signal(signal.SIGKILL)
        assert process.stdout is not None
        return process.stdout.read().splitlines()


@pytest.mark.parametrize("seed", range(5))
def test_killed_between_intent_and_outcome_exactly_that_entry_is_open(tmp_path: Path, seed: int) -> None:
    fatal = random.Random(seed).randint(1, 30)
    process = child(tmp_path, "dead", 30, fatal)
    assert process.stdout is not None
    while process.stdout.readline() != f"intent {fatal}\n":
        pass
    killed(process)
    store = open_store(tmp_path)
    assert [(entry.run_id, entry.step_id) for entry in store.open_entries()] == [("dead", f"step-{fatal}")]
    assert len(store.entries("dead")) == fatal
    assert store.runs(1)[0].exit_code is None
    assert store.verify() == ()
    store.close()


@pytest.mark.parametrize("seed", range(8))
def test_killed_anywhere_nothing_acknowledged_is_lost(tmp_path: Path, seed: int) -> None:
    process = child(tmp_path, "dead", 100_000)
    assert process.stdout is not None
    first = process.stdout.readline().rstrip()  # it was acknowledged, too
    time.sleep(random.Random(seed).uniform(0.0, 0.15))
    lines = [first, *killed(process)]
    store = open_store(tmp_path)
    intents, outcomes = ([line for line in lines if line.startswith(kind)] for kind in ("intent", "outcome"))
    entries = store.entries("dead")
    settled = [entry for entry in entries if not entry.is_open]
    assert len(intents) <= len(entries) <= len(intents) + 1
    assert len(outcomes) <= len(settled) <= len(outcomes) + 1
    assert len(store.open_entries()) <= 1
    assert store.verify() == ()
    store.close()


def test_a_dead_writers_log_can_be_read_without_opening_for_writing(tmp_path: Path) -> None:
    process = child(tmp_path, "dead", 3, fatal=2)
    assert process.stdout is not None
    while process.stdout.readline() != "intent 2\n":
        pass
    killed(process)
    before = {item.name for item in tmp_path.iterdir()}
    reader = read_store(tmp_path)
    assert reader is not None
    assert [entry.sequence for entry in reader.open_entries()] == [2]
    assert {item.name for item in tmp_path.iterdir()} == before


@pytest.mark.parametrize("attempt", range(3))
def test_processes_that_make_and_write_one_state_at_once_lose_nothing(tmp_path: Path, attempt: int) -> None:
    folder = tmp_path / ".fleet"
    processes = [child(folder, f"run-{number}", 40) for number in range(4)]
    assert [process.wait() for process in processes] == [0, 0, 0, 0]
    for process in processes:
        process.communicate()
    store = open_store(folder)
    assert [len(store.entries(f"run-{number}")) for number in range(4)] == [40] * 4
    assert len(store.runs(9)) == 4
    assert store.open_entries() == ()
    assert store.verify() == ()
    store.close()
