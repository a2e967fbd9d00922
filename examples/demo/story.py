"""The story itself: what an operator does in a day, and what has to come out of it."""

import sys
from typing import Protocol

from tests.lab.specfile import PAIR_AND_SOLO, QUAD, QUESTION

WIDTH = 100


class StoryError(Exception):
    """Something did not come out as the story says."""


class Stage(Protocol):
    """Where the story is played."""

    def open(self) -> None:
        """Have four nodes, two of each image store."""
        ...

    def write_spec(self, placements: tuple[tuple[str, str], ...]) -> None:
        """Write the spec with these placements (lane, cluster)."""
        ...

    def fleet(self, *words: str) -> int:
        """Run `fleet` with these words, showing its output; the exit code."""
        ...

    def ask(self, node: str, question: str) -> str:
        """Put a chat question to the lane whose head is on `node`; the answer."""
        ...

    def kill(self, node: str, container: str) -> None:
        """Kill a container by hand, behind the tool's back."""
        ...

    def close(self) -> None:
        """Take everything away."""
        ...


def tell(stage: Stage) -> None:
    """From nothing to a repaired four-node lane, and back to nothing."""
    say("Four nodes: node1 and node2 with Docker's classic image store, node3 and node4 with containerd's.")
    stage.open()
    _two_lanes(stage)
    _one_big_lane(stage)
    _a_rank_dies(stage)
    say("All lanes go. No container is left on the nodes.")
    expect(stage, 0, "down", "--all", "--yes")


def _two_lanes(stage: Stage) -> None:
    say("The spec wants two lanes: `pair` over node1 and node2 (cluster pair-a), `solo` on node3. Neither runs.")
    stage.write_spec(PAIR_AND_SOLO)
    expect(stage, 2, "plan", "--detailed-exitcode")
    say("Apply: images are staged by digest, ranks boot in order, and each lane has to answer a question.")
    expect(stage, 0, "apply", "--yes")
    answered(stage, "node1")
    say("Nothing is left to do.")
    expect(stage, 0, "plan", "--detailed-exitcode")


def _one_big_lane(stage: Stage) -> None:
    say("The spec is edited: `quad` over all four nodes (cluster quad) replaces both. The plan says what goes dark.")
    stage.write_spec(QUAD)
    expect(stage, 2, "plan", "--detailed-exitcode")
    say("Apply: the two lanes are stopped only when everything `quad` needs is on all four nodes.")
    expect(stage, 0, "apply", "--yes")
    answered(stage, "node1")


def _a_rank_dies(stage: Stage) -> None:
    say("Somebody kills rank 2 on node3.")
    stage.kill("node3", "fleet-quad-r2-v1")
    expect(stage, 0, "status")
    expect(stage, 2, "plan", "--detailed-exitcode")
    say("Apply repairs the gang: all ranks boot again together.")
    expect(stage, 0, "apply", "--yes")
    answered(stage, "node1")
    expect(stage, 0, "plan", "--detailed-exitcode")


def say(text: str) -> None:
    """One paragraph of narration."""
    sys.stdout.write(f"\n{'─' * WIDTH}\n{text}\n\n")
    sys.stdout.flush()


def expect(stage: Stage, code: int, *words: str) -> None:
    """Run `fleet` and insist on its exit code."""
    sys.stdout.write(f"$ fleet {' '.join(words)}\n")
    sys.stdout.flush()
    found = stage.fleet(*words)
    if found != code:
        raise StoryError(f"`fleet {' '.join(words)}` exited {found}, not {code}")


def answered(stage: Stage, node: str) -> None:
    """Ask, show, and insist on the right answer."""
    answer = stage.ask(node, QUESTION).strip()
    sys.stdout.write(f'\n  asked {node}: "{QUESTION}"\n  answer:      "{answer}"\n')
    if "Paris" not in answer:
        raise StoryError(f"the lane answers {answer!r}")
