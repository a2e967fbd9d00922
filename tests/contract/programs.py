"""What the contract's containers run: a command line for real nodes, and what it comes to in the simulation."""

from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.core.desired import ContainerSpec
from reconciler.testing import Behaviour, Exits, HangsOnGeneration, Listens, Moment, llamacpp_behaviour

Argv = tuple[str, ...]

WEB_PORT, HANGING_PORT, CLOSED_PORT, ENGINE_PORT = 8123, 8124, 8125, 8126


def shell(script: str) -> Argv:
    return ("sh", "-c", script)


SLEEPER = shell("trap 'exit 0' TERM; while :; do sleep 0.1; done")
"""Ends by itself, with 0, when it is asked to."""

STUBBORN = shell("trap '' TERM; while :; do sleep 0.1; done")
"""Ends only when it is killed."""

CRASHER = shell("echo one; echo two; echo boom; exit 3")

TALKER = shell("echo first; sleep 1; echo second; sleep 1; echo last")

TELLER = shell('echo "TOKEN=$TOKEN"')
"""Tells what it was given."""

AGER = shell("echo life again; sleep 2")
"""Says a line in each of its lives."""

GREETING, FAILING, LASTING, NOT_LASTING, NOWHERE_TO_BE_FOUND = (
    ("sh", "-c", "echo hello; echo there >&2"),
    ("sh", "-c", "exit 3"),
    ("sh", "-c", "sleep 61; true"),
    ("sh", "-c", "! grep -qs '^sleep.61' /proc/[0-9]*/cmdline"),
    ("no-such-program",),
)
"""What is run in a container that runs. NOT_LASTING: ends with 0 where nothing is left of LASTING."""

WEB = shell(f"mkdir /w && cd /w && exec busybox httpd -f -p 127.0.0.1:{WEB_PORT}")
"""Answers 404 to everything."""

HANGER = shell(f"sleep 100 | busybox nc -l -p {HANGING_PORT}")
"""Takes a connection, and never answers."""

ENGINE = (
    "llama-server",
    *("--model", "/models/good.gguf", "--alias", "tiny", "--host", "0.0.0.0", "--port", str(ENGINE_PORT)),
)


@dataclass(frozen=True)
class Ages(Behaviour):
    """The simulated AGER: a line in each life."""

    def moments(self) -> Iterator[Moment]:
        yield Moment(0.0, "log", "life again")
        yield Moment(2.0, "exit")


@dataclass(frozen=True)
class Sleeps(Behaviour):
    """The simulated SLEEPER, in which programs can be run."""

    def run(self, words: Argv) -> tuple[int, bytes] | None:
        ends: dict[Argv, tuple[int, bytes] | None] = {
            GREETING: (0, b"hello\nthere\n"),
            FAILING: (3, b""),
            LASTING: None,
            NOT_LASTING: (0, b""),
            NOWHERE_TO_BE_FOUND: (127, b"executable file not found in $PATH"),
        }
        return ends[words]


@dataclass(frozen=True)
class Talks(Behaviour):
    """The simulated TALKER."""

    def moments(self) -> Iterator[Moment]:
        for second, text in enumerate(("first", "second", "last")):
            yield Moment(second, "log", text)
        yield Moment(2.0, "exit")


SIMULATED: dict[Argv, Behaviour] = {
    SLEEPER: Sleeps(stop_s=0.1),
    AGER: Ages(),
    STUBBORN: Behaviour(stop_s=None),
    CRASHER: Exits(after_s=0.0, code=3, lines=("one", "two", "boom")),
    TALKER: Talks(),
    TELLER: Exits(after_s=0.0, code=0, lines=("TOKEN=s3cret-value",)),
    WEB: Listens((WEB_PORT,)),
    HANGER: HangsOnGeneration("hanger", HANGING_PORT, boot_s=0.0),
}


def behave(spec: ContainerSpec) -> Behaviour:
    """What the simulation makes of a container of the contract."""
    return SIMULATED.get(spec.command) or llamacpp_behaviour(spec)
