"""The engine of simulated lanes: its command line says how it behaves.

`serve MOOD GIB PORT NAME [ADDRESS:PORT ...]` is a head with its workers, `work MOOD GIB PORT` a worker, `check MOOD` a
preflight.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from reconciler.core.desired import ContainerSpec
from reconciler.testing.behaviours import (
    GIB,
    Behaviour,
    DiesAfterReady,
    Exits,
    Garbage,
    HangsOnGeneration,
    Moment,
    NeverHealthy,
    OutOfMemory,
    Serves,
    Worker,
)

BOOT_S = 1.5
"""Of a head; a worker takes half a second."""

QUESTION, ANSWER = "What is the capital of France?", "It is Paris."
BIG_GIB, SMALL_GIB = 70, 8
"""Memory of a rank: two big ones do not fit on a simulated node."""

MOODS = ("good", "stubborn", "crashes", "dies", "out of memory", "silent", "loops", "hangs", "garbles", "no worker")
"""How an engine can be. The first two serve; a stubborn one has to be killed to stop."""

SERVING = MOODS[:2]


@dataclass(frozen=True)
class Loops(NeverHealthy):
    """Never healthy, and says so again and again, for longer than any boot budget of a simulated lane."""

    def _end(self) -> Iterator[Moment]:
        yield from (Moment(self.boot_s + 2.0 * number, "log", f"retrying ({number})") for number in range(1, 60))


KINDS: dict[str, type[Serves]] = {
    "silent": NeverHealthy,
    "loops": Loops,
    "hangs": HangsOnGeneration,
    "garbles": Garbage,
}


def engine(spec: ContainerSpec) -> Behaviour:
    """What a container with this command line does."""
    return _behaviour(spec.command)


def preflight(spec: ContainerSpec) -> Behaviour:
    """What `check MOOD` does: it sees what is wrong with an engine that would exit at once, and nothing else."""
    if spec.command[1] == "crashes":
        return Exits(0.5, 2, ("error: unsupported architecture",))
    return Exits(0.5, 0)


@lru_cache(maxsize=4096)
def _behaviour(command: tuple[str, ...]) -> Behaviour:
    program, mood, gib, port = command[:4]
    stop_s = None if mood == "stubborn" else 0.5
    if program == "work" and mood == "no worker":
        return Exits(0.2, 1, ("no usable device",))
    if program == "work":
        return Worker(int(port), 0.5, memory_bytes=int(gib) * GIB, stop_s=stop_s)
    return _head(mood, int(gib) * GIB, int(port), command[4], _peers(command[5:]), stop_s)


def _head(
    mood: str, memory_bytes: int, port: int, name: str, ranks: tuple[tuple[str, int], ...], stop_s: float | None
) -> Behaviour:
    answers = {QUESTION: ANSWER}
    if mood == "crashes":
        return Exits(1.0, 1, ("fatal: unsupported architecture",))
    if mood == "out of memory":
        return OutOfMemory(1.5)
    if mood == "dies":
        return DiesAfterReady(name, port, BOOT_S, answers, ranks=ranks, memory_bytes=memory_bytes, after_s=0.3)
    kind = KINDS.get(mood, Serves)
    return kind(name, port, BOOT_S, answers, ranks=ranks, memory_bytes=memory_bytes, stop_s=stop_s)


def _peers(words: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    return tuple((address, int(number)) for address, _, number in (word.rpartition(":") for word in words))
