"""`make simulate SEEDS=10000 [SEED=n] [FIRST=n]`: plays random stories; a failure prints its seed and its story."""

import argparse
import sys

from reconciler.testing.simulation import Failed, play, scenario, shrunk, story
from tests.simulate.controller import FleetController
from tests.simulate.many import Tally, play_many

MOST_STORIES = 5


def main() -> int:
    """Exit code 1 when any seed failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000, help="how many to play")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--seed", type=int, help="play this one alone")
    parser.add_argument("--whole", action="store_true", help="tell the story as it was, not the smallest that fails")
    chosen = parser.parse_args()
    if chosen.seed is not None:
        return _one(chosen.seed, is_whole=chosen.whole)
    tally = play_many(range(chosen.first, chosen.first + chosen.seeds), on_progress=_progress)
    print(f"\r{tally.played} seeds in {tally.seconds:.0f} s, simulate_runs_per_minute {tally.a_minute:.0f}")
    print("applies ended with", ", ".join(f"{code}: {count}" for code, count in sorted(tally.exits.items())))
    print("what went wrong:", ", ".join(f"{kind} {count}" for kind, count in tally.struck.most_common()))
    return _failures(tally.failed, is_whole=chosen.whole)


def _one(seed: int, *, is_whole: bool) -> int:
    failed = play(scenario(seed), FleetController)
    if failed is None:
        print(f"seed {seed}: all is well")
    return _failures([failed] if failed else [], is_whole=is_whole)


def _failures(failed: list[Failed], *, is_whole: bool) -> int:
    failed = sorted(failed, key=lambda item: item.scenario.seed)
    for one in failed[:MOST_STORIES]:
        print(f"\nseed {one.scenario.seed} FAILED (SEED={one.scenario.seed} plays it alone)")
        print(story(one if is_whole else shrunk(one, FleetController)))
    if failed:
        print(f"\n{len(failed)} seeds failed:", *(item.scenario.seed for item in failed))
    return 1 if failed else 0


def _progress(tally: Tally) -> None:
    if sys.stderr.isatty() or tally.played % 500 == 0:
        print(f"\r{tally.played} played, {len(tally.failed)} failed, {tally.a_minute:.0f} a minute", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
