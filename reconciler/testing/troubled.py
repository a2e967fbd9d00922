"""Engines that look well and are not, or look hung and are well: what a health gate is for.

Values like those of `behaviours`, from which they are made.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.testing.behaviours import Moment, Serves

MULTILINGUAL = "的 capital 法国首都是 ваш 巴黎在的人 の ह的 parler 我们不能 של 可以"
STEP_BYTES = 2**29


@dataclass(frozen=True)
class Babbles(Serves):
    """Healthy on every page; what it writes, and with `thinks` what it thinks, is junk of many tongues."""

    thinks: bool = False

    def generate(self, prompt: str) -> str | None:
        """Junk, or the right answer after thoughts of junk."""
        return super().generate(prompt) if self.thinks else MULTILINGUAL

    def think(self, prompt: str) -> str:
        """Junk, where it thinks."""
        return MULTILINGUAL if self.thinks else ""


@dataclass(frozen=True)
class OnlyThinks(Serves):
    """Puts its whole answer into the reasoning, as a model does whose tokens are spent before it has thought enough."""

    def generate(self, prompt: str) -> str | None:
        """Nothing that is said."""
        return ""

    def think(self, prompt: str) -> str:
        """The known answer, or the prompt again."""
        return self.answers.get(prompt, prompt)


@dataclass(frozen=True)
class CrashLoops(Serves):
    """Ends `after_s` seconds after each start, and is started again by its own node."""

    after_s: float = 8.0

    def moments(self) -> Iterator[Moment]:
        """The beginning of a boot, and a new one."""
        yield from (moment for moment in super().moments() if moment.after_s < self.after_s)
        yield Moment(self.after_s, "log", "Segmentation fault (core dumped)")
        yield Moment(self.after_s, "restart", code=139)


@dataclass(frozen=True)
class GivesUp(Serves):
    """Says `line` after `after_s` seconds, and neither ends nor serves."""

    line: str = "error loading model: tensor 'output.weight' not found"
    after_s: float = 5.0

    def _end(self) -> Iterator[Moment]:
        yield Moment(self.after_s, "log", self.line)


@dataclass(frozen=True)
class Tunes(Serves):
    """Says nothing for `tuning_s` seconds before it serves; it takes more memory every `step_s` meanwhile."""

    tuning_s: float = 60.0
    step_s: float = 10.0

    def _end(self) -> Iterator[Moment]:
        for number in range(1, int(self.tuning_s / self.step_s)):
            yield Moment(self.boot_s + number * self.step_s, "grow", memory_bytes=STEP_BYTES)
        yield Moment(self.boot_s + self.tuning_s, "log", f"listening on {self.host}:{self.port}")
        yield Moment(self.boot_s + self.tuning_s, "ready")
