"""What is asked of a served model, and what its answers have to be: values, as engines render them from the spec.

Fields that a spec leaves alone are unset here, so that what earlier releases wrote down of a gang stays the same text.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["chat", "completion", "embeddings", "http", "command"]


@dataclass(frozen=True)
class Limits:
    """From where on a generated text is junk. Shares of 1; entropies in bits a character.

    `foreign`: letters outside the expected scripts. `repetition`: what one phrase fills that is said again and again.
    """

    foreign: float = 0.25
    repetition: float = 0.6
    entropy_min: float = 1.0
    entropy_max: float = 6.0


@dataclass(frozen=True)
class Request:
    """A request to the head, and the status its answer must have. `body`: JSON text, None when nothing is sent."""

    method: str
    path: str
    body: str | None = None
    status: int = 200


@dataclass(frozen=True)
class Probe:
    """A question put to a lane, and what the answer has to contain (text, any case) or match (regex).

    `prompt`: what is asked, of an "http" or "command" probe what is done, for people. `expect_json`: paths in the reply
    with the JSON text of the value there. `never`: expressions that nothing in it may match. `scripts` unset: Latin and
    those of the prompt and of what is expected. `limits` unset: the usual ones.
    """

    kind: Kind
    prompt: str
    expect: str | None = None
    expect_regex: str | None = None
    max_tokens: int = 32
    timeout_s: float = 60.0
    request: Request | None = None
    command: tuple[str, ...] = ()
    expect_json: tuple[tuple[str, str], ...] = ()
    never: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    limits: Limits | None = None

    @property
    def generates(self) -> bool:
        """Whether a model writes the answer."""
        return self.kind in {"chat", "completion"}


@dataclass(frozen=True)
class Performance:
    """Tokens a second that a lane has to generate: `concurrency` streams, each `tokens` long after `context` tokens.

    `required`: a slower gang is not healthy; else the figure is only told.
    """

    at_least: float
    context: int
    concurrency: int
    tokens: int
    required: bool
    timeout_s: float
