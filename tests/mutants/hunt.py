"""`python -m tests.mutants.hunt [NAME]`: plays until something is seen that never may be, with the mutant in place.

Prints how it was caught and ends with 0; ends with 3 when nothing was seen, and with 2 when the mutant does not apply.
Without a name nothing is broken, and nothing may be seen.
"""

import sys
from collections.abc import Iterator

from tests.mutants.mutants import MUTANTS
from tests.mutants.patching import DoesNotApply, put_in

SEEDS = range(1, 1500)
SOUND_SEEDS = range(1, 60)


def main(name: str = "") -> int:
    try:
        for mutant in MUTANTS:
            if mutant.name == name:
                put_in(mutant)
    except DoesNotApply as error:
        print(error)
        return 2
    found = next(_caught(SEEDS if name else SOUND_SEEDS), "")
    print(found or "nothing was seen")
    return 0 if found else 3


def _caught(seeds: range) -> Iterator[str]:
    """How it is seen: first in the plain changes of a gang's life, then in random stories."""
    from tests.mutants.catching import LIFECYCLES, FleetController, lifecycle, play, scenario  # noqa: PLC0415 - now

    for name in LIFECYCLES:
        failed = play(lifecycle(name), FleetController)
        if failed is not None:
            yield f"in '{name}': {failed.why[0]}"
    for seed in seeds:
        failed = play(scenario(seed), FleetController)
        if failed is not None:
            yield f"by seed {seed}: {failed.why[0]}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
