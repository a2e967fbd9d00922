"""Reads the command lines of vLLM and SGLang lanes and behaves accordingly."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reconciler.core.desired import ContainerSpec
from reconciler.testing.behaviours import GIB, Behaviour, Exits, Moment, Serves
from reconciler.testing.llamacpp import ANSWERS, llamacpp_behaviour

BOOT_S = 210.0
MEMORY_BYTES = 100 * GIB
JOIN_SHARE = 0.1
"""After this share of its boot a rank wants to have met the others."""


@dataclass(frozen=True)
class Head(Serves):
    """Rank 0: serves, and lets the others meet at a port of its own."""

    meeting: int | None = None

    @property
    def ports(self) -> tuple[tuple[str, int], ...]:
        """HTTP, and where the ranks meet."""
        return (*super().ports, *(((self.host, self.meeting),) if self.meeting else ()))


@dataclass(frozen=True)
class Headless(Behaviour):
    """A worker without HTTP: meets the head, takes its memory, and goes on when the head has died."""

    meets: tuple[tuple[str, int], ...]
    boot_s: float = BOOT_S

    def moments(self) -> Iterator[Moment]:
        """Meet, load, be up."""
        yield Moment(0.0, "log", "engine starting, headless")
        yield Moment(self.boot_s * JOIN_SHARE, "join")
        yield Moment(self.boot_s * 0.2, "allocate")
        yield Moment(self.boot_s, "ready")

    @property
    def peers(self) -> tuple[tuple[str, int], ...]:
        """The head."""
        return self.meets


def engine_behaviour(spec: ContainerSpec) -> Behaviour:
    """A rank of vLLM, SGLang (by their arguments, whatever wraps them) or llama.cpp; anything else ends with 0."""
    argv = (*(spec.entrypoint or ()), *spec.command)
    if "-c" in argv:  # a preflight: a program of its own reads the arguments, and finds nothing to say
        return Exits(after_s=5.0, code=0)
    if "--served-model-name" in argv:
        return _rank(argv)
    return llamacpp_behaviour(spec)


def _rank(argv: Sequence[str]) -> Behaviour:
    meets, is_head = _meeting(argv), _option(argv, "--node-rank", "0") == "0"
    if "--headless" in argv:
        return Headless(meets=meets, memory_bytes=MEMORY_BYTES)
    return Head(
        served_name=_option(argv, "--served-model-name"),
        port=int(_option(argv, "--port", "30000")),
        boot_s=BOOT_S,
        answers=ANSWERS,
        ranks=() if is_head else meets,
        meeting=meets[0][1] if meets and is_head else None,
        memory_bytes=MEMORY_BYTES,
    )


def _meeting(argv: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """The head's address and port, as the engine is told; empty for one rank."""
    address, port = _option(argv, "--master-addr"), _option(argv, "--master-port")
    if not address:
        address, _, port = _option(argv, "--dist-init-addr").rpartition(":")
    return ((address.strip("[]"), int(port)),) if address else ()


def _option(argv: Sequence[str], name: str, default: str = "") -> str:
    """The value after the last `name` in `argv`."""
    places = [place for place, word in enumerate(argv[:-1]) if word == name]
    return argv[places[-1] + 1] if places else default
