"""`make test-mutants`: every mutant has to be caught, and the product as it is has to pass."""

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.mutants.mutants import MUTANTS

WORDS = {0: "caught", 2: "DOES NOT APPLY", 3: "NOT CAUGHT"}


def hunted(name: str) -> tuple[int, str]:
    """How the hunt for one mutant ended, and what it said last."""
    command = [sys.executable, "-m", "tests.mutants.hunt", *([name] if name else [])]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    lines = (done.stdout or done.stderr).strip().splitlines()
    return done.returncode, lines[-1] if lines else ""


def main() -> int:
    """Exit code 1 when one was not caught, or nothing is broken and something was seen."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="these alone")
    chosen = parser.parse_args().names or [mutant.name for mutant in MUTANTS]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        sound = pool.submit(hunted, "")
        ends = dict(zip(chosen, pool.map(hunted, chosen), strict=True))
    for name, (code, told) in ends.items():
        print(f"{WORDS.get(code, 'BROKE'):14} {name:28} {told[:150]}")
    is_sound = sound.result()[0] == 3
    print(f"{sum(code == 0 for code, _ in ends.values())} of {len(ends)} caught")
    if not is_sound:
        print(f"without any mutant: {sound.result()[1]}")
    return 0 if is_sound and all(code == 0 for code, _ in ends.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
