"""A signal that comes while a command imports or loads what it needs ends it in one line, and the next one at once."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from reconciler.cli.interrupts import StoppedError, raised

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

SLOW_IMPORT = """
    import sys, time
    class Slow:
        def find_spec(self, name, *rest):
            if name == "{module}":
                print("importing", flush=True)
                time.sleep(60)
    sys.meta_path.insert(0, Slow())
    from reconciler.cli import main
    main(["validate"])
"""

SLOW_END = """
    import time
    from reconciler.cli.interrupts import raised
    with raised():
        try:
            print("works", flush=True)
            time.sleep(60)
        finally:
            print("tidies", flush=True)
            time.sleep(60)
"""


@contextmanager
def running(args: Sequence[str], folder: Path) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, *args], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def script(text: str) -> list[str]:
    return ["-c", textwrap.dedent(text)]


def line_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def end_of(process: "subprocess.Popen[str]") -> tuple[int, str]:
    err = process.communicate(timeout=30)[1]
    return process.returncode, err


@pytest.mark.parametrize("number", STOPPING)
@pytest.mark.parametrize("module", ["typer", "specs"], ids=["before the command", "in the command"])
def test_a_signal_during_the_imports_ends_it_in_one_line(module: str, number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").touch()
    with running(script(SLOW_IMPORT.format(module=module)), tmp_path) as process:
        assert "importing\n" == line_of(process)
        process.send_signal(number)
        assert (130, "fleet: interrupted\n") == end_of(process)


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_does_not_wait_for_what_tidies_up(second: signal.Signals, tmp_path: Path) -> None:
    with running(script(SLOW_END), tmp_path) as process:
        assert "works\n" == line_of(process)
        process.send_signal(signal.SIGTERM)
        assert "tidies\n" == line_of(process)
        process.send_signal(signal.SIGHUP)  # never taken for "at once"
        process.send_signal(second)
        assert (130, "fleet: left at once\n") == end_of(process)


@pytest.mark.parametrize("number", STOPPING)
def test_what_was_set_before_is_set_again_afterwards(number: signal.Signals) -> None:
    before = [signal.getsignal(each) for each in STOPPING]
    with pytest.raises(StoppedError), raised():
        signal.raise_signal(number)
    assert before == [signal.getsignal(each) for each in STOPPING]


def test_a_hangup_that_the_caller_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with raised():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
