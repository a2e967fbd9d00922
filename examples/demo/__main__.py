"""`python -m examples.demo`: the main job, told step by step, on the lab's real nodes or on simulated ones."""

import argparse
import sys
import tempfile
from pathlib import Path

from examples.demo.real import RealStage
from examples.demo.simulated import SimulatedStage
from examples.demo.story import Stage, StoryError, tell
from tests.lab import packages


def main() -> int:
    """Choose the stage, tell the story; 0 when everything went as told."""
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    parser.add_argument("--simulated", action="store_true", help="use simulated nodes, even where the lab could run")
    parser.add_argument("--keep", action="store_true", help="leave the lab up afterwards")
    wanted = parser.parse_args()
    reason = "asked for" if wanted.simulated else packages.unsupported()
    with tempfile.TemporaryDirectory(prefix="fleet-demo-") as folder:
        stage: Stage = SimulatedStage(Path(folder), reason) if reason else RealStage(Path(folder), keep=wanted.keep)
        try:
            tell(stage)
        except StoryError as error:
            sys.stderr.write(f"\nthe demo went wrong: {error}\n")
            return 1
        finally:
            stage.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
