"""What starting the command line costs: `fleet --help` against importing its two libraries."""

import subprocess
import sys
from pathlib import Path

from bench.measure import Measured, compare

NAMES = ("cli_help_vs_import",)


def measure() -> list[Measured]:
    """Whole processes, output thrown away."""
    fleet = str(Path(sys.executable).with_name("fleet"))
    found = compare(
        NAMES[0],
        1.3,
        'python -c "import typer, rich"',
        lambda: _run(fleet, "--help"),
        lambda: _run(sys.executable, "-c", "import typer, rich"),
        rounds=15,
    )
    return [found]


def _run(*words: str) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
