"""What a simulated engine does once its container has started: values, without a clock or a state.

A behaviour is a list of moments in seconds after the start, and the text it generates. Subclass it for your own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

GIB = 2**30
NONSENSE = "of of! France? the is is not"
PHASES = ((0.3, "loading weights"), (0.6, "allocating the KV cache"), (0.9, "capturing graphs"))
"""Log lines of a boot, by the share of it that has passed."""

Kind = Literal["log", "listen", "join", "allocate", "grow", "ready", "exit", "restart"]


@dataclass(frozen=True)
class Moment:
    """Something that happens `after_s` seconds after the start.

    "listen": open the ports, or end with 1 when one is taken. "join": reach the peers, or end with 1. "allocate":
    take the memory, or be killed for lack of it. "grow": take `memory_bytes` more, likewise. "ready": answer from now
    on. "exit": end with `code`. "restart": the same, and start again at once.
    """

    after_s: float
    kind: Kind
    text: str = ""
    code: int = 0
    oom: bool = False
    memory_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """Runs until it is stopped, and does nothing.

    `stop_s`: how long it takes to end after SIGTERM, None when it ignores it. `memory_bytes` is held from the
    "allocate" moment on. `tokens_s`: how fast it writes what it is asked to write to the last token, 0: at once.
    """

    memory_bytes: int = 8 * GIB
    stop_s: float | None = 0.5
    stop_code: int = 0
    tokens_s: float = 0.0

    def moments(self) -> Iterator[Moment]:
        """What happens, in order."""
        yield from ()

    @property
    def ports(self) -> tuple[tuple[str, int], ...]:
        """Addresses and ports it listens on."""
        return ()

    @property
    def peers(self) -> tuple[tuple[str, int], ...]:
        """Addresses and ports of the other ranks it needs."""
        return ()

    @property
    def model(self) -> str | None:
        """The name of the model it serves; None when it speaks no HTTP."""
        return None

    def generate(self, prompt: str) -> str | None:
        """The text that follows `prompt`; None when it never comes."""
        return prompt

    def think(self, prompt: str) -> str:
        """What it thinks before it answers `prompt`; most think nothing."""
        return ""

    def run(self, words: tuple[str, ...]) -> tuple[int, bytes] | None:
        """Exit code and output of a program that is run in its container; None when it never ends."""
        return 0, b""


@dataclass(frozen=True)
class Serves(Behaviour):
    """A good engine: listens at once, answers 503 while it loads, serves after `boot_s` seconds.

    `answers` maps a prompt to its text; other prompts come back as they are. With `ranks` (addresses and ports of
    workers) it ends with 1 when one of them is not there at the start, and answers 500 when one died later. `phases`:
    what it logs at which share of its boot.
    """

    served_name: str
    port: int
    boot_s: float = 60.0
    answers: Mapping[str, str] = field(default_factory=dict)
    host: str = "0.0.0.0"  # noqa: S104 - nothing is bound, this is a simulation
    ranks: tuple[tuple[str, int], ...] = ()
    phases: tuple[tuple[float, str], ...] = PHASES

    def moments(self) -> Iterator[Moment]:
        """Boot, phase by phase."""
        yield Moment(0.0, "log", f"engine starting, model {self.served_name}")
        yield Moment(0.0, "listen")
        yield Moment(self.boot_s * 0.1, "join")
        yield Moment(self.boot_s * 0.2, "allocate")
        for share, text in self.phases:
            yield Moment(self.boot_s * share, "log", text)
        yield from self._end()

    def _end(self) -> Iterator[Moment]:
        yield Moment(self.boot_s, "log", f"listening on {self.host}:{self.port}")
        yield Moment(self.boot_s, "ready")

    @property
    def ports(self) -> tuple[tuple[str, int], ...]:
        """Its HTTP port."""
        return ((self.host, self.port),)

    @property
    def peers(self) -> tuple[tuple[str, int], ...]:
        """Its workers."""
        return self.ranks

    @property
    def model(self) -> str | None:
        """The served name."""
        return self.served_name

    def generate(self, prompt: str) -> str | None:
        """The known answer, or the prompt again."""
        return self.answers.get(prompt, prompt)


@dataclass(frozen=True)
class Garbage(Serves):
    """Healthy on every page, and answers nonsense."""

    def generate(self, prompt: str) -> str | None:
        """Nonsense."""
        return NONSENSE


@dataclass(frozen=True)
class HangsOnGeneration(Serves):
    """Healthy on every page, and never answers a question."""

    def generate(self, prompt: str) -> str | None:
        """Nothing, ever."""
        return None


@dataclass(frozen=True)
class DiesAfterReady(Serves):
    """Serves, and ends with `code` `after_s` seconds later."""

    after_s: float = 10.0
    code: int = 1

    def _end(self) -> Iterator[Moment]:
        yield from super()._end()
        yield Moment(self.boot_s + self.after_s, "log", "fatal: illegal memory access")
        yield Moment(self.boot_s + self.after_s, "exit", code=self.code)


@dataclass(frozen=True)
class NeverHealthy(Serves):
    """Answers 503 for ever. Logs a line every `chatter_s` seconds for four hours, or falls silent (None)."""

    chatter_s: float | None = None

    def _end(self) -> Iterator[Moment]:
        step_s = self.chatter_s
        count = int(4 * 3600 / step_s) if step_s else 0
        for number in range(1, count + 1):
            yield Moment(self.boot_s + number * (step_s or 0.0), "log", f"still waiting ({number})")


@dataclass(frozen=True)
class Exits(Behaviour):
    """Ends by itself after `after_s` seconds, having said `lines`."""

    after_s: float = 1.0
    code: int = 1
    lines: tuple[str, ...] = ()

    def moments(self) -> Iterator[Moment]:
        """The lines, the end."""
        yield from (Moment(self.after_s, "log", line) for line in self.lines)
        yield Moment(self.after_s, "exit", code=self.code)


@dataclass(frozen=True)
class OutOfMemory(Behaviour):
    """Killed by the kernel after `after_s` seconds for lack of memory."""

    after_s: float = 5.0

    def moments(self) -> Iterator[Moment]:
        """The end."""
        yield Moment(0.0, "log", "loading weights")
        yield Moment(self.after_s, "exit", code=137, oom=True)


@dataclass(frozen=True)
class Worker(Behaviour):
    """A rank that serves its head: listens on `port` after `boot_s` seconds."""

    port: int
    boot_s: float = 1.0
    host: str = "0.0.0.0"  # noqa: S104 - as above

    def moments(self) -> Iterator[Moment]:
        """A short boot."""
        yield Moment(self.boot_s, "allocate")
        yield Moment(self.boot_s, "listen")
        yield Moment(self.boot_s, "log", f"worker listening on {self.host}:{self.port}")
        yield Moment(self.boot_s, "ready")

    @property
    def ports(self) -> tuple[tuple[str, int], ...]:
        """The port its head connects to."""
        return ((self.host, self.port),)


@dataclass(frozen=True)
class Listens(Behaviour):
    """Some other program: opens its ports at once."""

    numbers: tuple[int, ...] = ()

    def moments(self) -> Iterator[Moment]:
        """Open the ports."""
        yield Moment(0.0, "allocate")
        yield Moment(0.0, "listen")
        yield Moment(0.0, "ready")

    @property
    def ports(self) -> tuple[tuple[str, int], ...]:
        """Its ports, on every address."""
        return tuple(("0.0.0.0", port) for port in self.numbers)  # noqa: S104 - as above
