"""`python -m bench`: every measurement as a ratio against a baseline taken in the same run, alternating with it.

Machines are noisy, so ratios of medians are what counts. Prints a table and writes `bench/results.json`.
"""

import argparse
import json
import sys
from pathlib import Path

from bench import cli_help, plan_compute, plan_noop
from bench.measure import Measured

BENCHES = (cli_help, plan_compute, plan_noop)
RESULTS = Path(__file__).with_name("results.json")


def main() -> int:
    """Run all measurements, or those named; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", help="only these (default: all)")
    wanted = parser.parse_args().names
    found = [bench.measure() for bench in BENCHES if not wanted or bench.NAME in wanted]
    print_table(found)
    if not wanted:
        rows = {item.name: {"value": round(item.ratio, 3), "goal": item.goal, "unit": "ratio"} for item in found}
        RESULTS.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 0 if all(item.ratio <= item.goal for item in found) else 1


def print_table(found: list[Measured]) -> None:
    """One line a measurement."""
    print(f"\n{'name':<34}{'ratio':>7}{'goal':>7}  {'ours':>9}{'baseline':>10}   baseline is")
    for item in found:
        mark = "" if item.ratio <= item.goal else "  MISSED"
        figures = f"{item.ratio:>7.2f}{item.goal:>7.1f}  {item.ours_s * 1000:>6.0f} ms{item.baseline_s * 1000:>7.0f} ms"
        print(f"{item.name:<34}{figures}   {item.baseline}{mark}")


if __name__ == "__main__":
    sys.exit(main())
