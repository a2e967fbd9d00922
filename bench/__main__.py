"""`python -m bench`: every measurement as a ratio against a baseline taken in the same run, alternating with it.

Machines are noisy, so ratios of medians are what counts. Prints a table and writes `bench/results.json`.
"""

import argparse
import compileall
import json
import sys
import sysconfig
from pathlib import Path

from bench import (
    cli_help,
    dead_worker,
    drift_looks,
    gitops_commit,
    image_single,
    images,
    journal,
    log_flood,
    observe,
    plan_compute,
    plan_noop,
    render,
    report_html,
    simulate,
)
from bench.measure import Measured

BENCHES = (
    cli_help,
    render,
    report_html,
    plan_compute,
    journal,
    simulate,
    observe,
    plan_noop,
    drift_looks,
    log_flood,
    dead_worker,
    gitops_commit,
    images,
    image_single,
)
SCALES = {"s": 1.0, "ms": 1e3, "MB": 1e-6, "kB": 1e-3, "B": 1.0, "runs": 1.0}
RESULTS = Path(__file__).with_name("results.json")
ROOT = Path(__file__).parents[1]
SHIPPED = ("specs", "state", "reconciler")


def main() -> int:
    """Run all measurements, or those named; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", help="only these (default: all)")
    wanted = parser.parse_args().names
    compile_as_installed()
    chosen = [bench for bench in BENCHES if not wanted or set(bench.NAMES) & set(wanted)]
    found = [item for bench in chosen for item in bench.measure()]
    print_table(found)
    record(found)
    return 0 if all(item.ratio <= item.goal for item in found) else 1


def compile_as_installed() -> None:
    """Write byte code of the tool and its libraries, as pip does when it installs them.

    A checkout has none of it where PYTHONDONTWRITEBYTECODE is set: each command would compile 260 modules anew, which
    takes half a second that nobody who installed the tool ever waits for.
    """
    for folder in (*(ROOT / name for name in SHIPPED), Path(sysconfig.get_path("purelib"))):
        compileall.compile_dir(folder, quiet=2)


def record(found: list[Measured]) -> None:
    """Write what was measured; the other rows stay as they were."""
    rows = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    rows |= {item.name: {"value": round(item.ratio, 3), "goal": item.goal, "unit": "ratio"} for item in found}
    RESULTS.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


def print_table(found: list[Measured]) -> None:
    """One line a measurement."""
    print(f"\n{'name':<34}{'ratio':>7}{'goal':>7}{'ours':>12}{'baseline':>12}   baseline is")
    for item in found:
        mark = "" if item.ratio <= item.goal else "  MISSED"
        figures = f"{item.ratio:>7.2f}{item.goal:>7.2f}{_figure(item.ours, item.unit)}{_figure(item.other, item.unit)}"
        print(f"{item.name:<34}{figures}   {item.baseline}{mark}")


def _figure(value: float, unit: str) -> str:
    return f"{value * SCALES[unit]:>9.0f} {unit:<2}"


if __name__ == "__main__":
    sys.exit(main())
