"""What proves that a lane serves: the questions it has to answer, what an answer must be, how a boot is judged."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue, Strict, model_validator

from specs.diagnostics import did_you_mean, refuse
from specs.environment import Command
from specs.fields import Expression, Line
from specs.paths import HttpPath
from specs.quantities import PositiveDuration
from specs.records import Record

SCRIPTS = (
    *("Latin", "Cyrillic", "Greek", "Han", "Hiragana", "Katakana", "Hangul", "Arabic", "Hebrew", "Devanagari"),
    *("Thai", "Bengali", "Tamil", "Telugu", "Kannada", "Malayalam", "Gujarati", "Gurmukhi", "Sinhala", "Oriya"),
    *("Armenian", "Georgian", "Ethiopic", "Khmer", "Lao", "Myanmar", "Tibetan", "Mongolian"),
)
"""Names of writing systems, as Unicode calls them."""


def _script(text: str) -> str:
    if text in SCRIPTS:
        return text
    raise refuse(
        f"'{text[:40]}' is not a script", f"Known are {', '.join(SCRIPTS)}.", did_you_mean(text.title(), SCRIPTS)
    )


Key = Annotated[str, Field(pattern=r"^[A-Za-z0-9_$][A-Za-z0-9_.$-]{0,254}$")]
"""A key of JSON."""

JsonPath = Annotated[str, Field(max_length=255, pattern=r"^[A-Za-z0-9_$][A-Za-z0-9_$-]*(\.[A-Za-z0-9_$-]+)*$")]
"""Keys of JSON, and numbers of items, with a dot between them."""

Share = Annotated[float, Field(ge=0, le=1)]
Script = Annotated[str, AfterValidator(_script)]


class HttpProbe(Record):
    """A request to the head, and the status of its answer."""

    path: HttpPath = Field(description="path on the head, e.g. /v1/score")
    method: Literal["GET", "POST", "PUT", "DELETE"] = Field(default="GET", description="GET, POST, PUT or DELETE")
    body: dict[Key, JsonValue] | None = Field(default=None, description="what is sent, as JSON; default: nothing")
    status: int = Field(default=200, ge=100, le=599, description="status that the answer must have")


class Limits(Record):
    """How far a generated text may be from sense before it is called junk."""

    foreign: Share = Field(default=0.25, description="share of letters outside `scripts` at most; 1: any")
    repetition: Share = Field(
        default=0.6, description="share of the text at most that one phrase fills, said eight times or more; 1: any"
    )
    entropy_min: float = Field(
        default=1.0, ge=0, le=32, description="bits a character at least, of a text of 32 characters or more; 0: any"
    )
    entropy_max: float = Field(
        default=6.0, ge=0, le=32, description="bits a character at most, where all of `scripts` are alphabets; 32: any"
    )

    @model_validator(mode="after")
    def _leave_room(self) -> "Limits":
        if self.entropy_min >= self.entropy_max:
            raise refuse("`entropy_min` has to be less than `entropy_max`", "No text would lie between the two.")
        return self


QUESTIONS = ("chat", "completion", "embeddings", "http", "command")
NEEDS_TEXT = ("scripts", "limits", "max_tokens")


class Probe(Record):
    """One question that a healthy lane answers: one of `chat`, `completion`, `embeddings`, `http` and `command`."""

    chat: Line | None = Field(default=None, description="a user message, sent to the chat completions API")
    completion: Line | None = Field(default=None, description="a prompt, sent to the completions API")
    embeddings: Line | None = Field(default=None, description="a text of which the embeddings API makes a vector")
    http: HttpProbe | None = Field(default=None, description="any request to the head")
    command: Command | None = Field(
        default=None, description="a program run in the head's container, one word an item; it has to end with 0"
    )
    expect: Line | None = Field(default=None, description="text the answer must hold; case does not matter")
    expect_regex: Expression | None = Field(
        default=None, description="regular expression the answer must match somewhere"
    )
    expect_json: dict[JsonPath, JsonValue] = Field(
        default_factory=dict,
        description="values in the JSON of the reply by path, e.g. choices.0.finish_reason: stop",
    )
    never: Annotated[tuple[Expression, ...], Strict(strict=False)] = Field(
        default=(), description="regular expressions that nothing in the answer may match, reasoning included"
    )
    scripts: Annotated[tuple[Script, ...], Strict(strict=False)] = Field(
        default=(),
        description="scripts of the answer, e.g. [Latin, Cyrillic]; default: Latin and those of the question",
    )
    limits: Limits = Field(default=Limits(), description="from where on a generated text is junk")
    max_tokens: int = Field(default=32, ge=1, le=65536, description="length of the answer at most, in tokens")
    timeout: PositiveDuration = Field(default=60.0, description="time for the whole answer, in seconds (60s)")

    @model_validator(mode="after")
    def _asks_once(self) -> "Probe":
        if sum(getattr(self, name) is not None for name in QUESTIONS) != 1:
            raise refuse(
                "a probe has exactly one question",
                "`chat` asks a chat model; `completion` continues a prompt; `embeddings` wants a vector; `http` sends "
                "any request; `command` runs a program in the head's container.",
            )
        return self

    @model_validator(mode="after")
    def _expects_what_there_is(self) -> "Probe":
        wrong = [name for name in NEEDS_TEXT if name in self.model_fields_set] if not self._generates else []
        if self.command is not None and self.expect_json:
            wrong.append("expect_json")
        if self.embeddings is not None:
            wrong += [name for name in ("expect", "expect_regex", "never") if name in self.model_fields_set]
        if wrong:
            raise refuse(
                f"`{wrong[0]}` says nothing of this probe",
                "It is about a text that a model generates, or a JSON reply.",
            )
        return self

    @property
    def _generates(self) -> bool:
        return self.chat is not None or self.completion is not None


class Performance(Record):
    """How fast a lane has to be, with its prefixes in the cache: each context is sent once, then it is timed."""

    at_least: float = Field(gt=0, description="tokens a second, of all streams together")
    context: int = Field(default=8192, ge=1, le=2**24, description="length of the prompt, in tokens")
    concurrency: int = Field(default=1, ge=1, le=1024, description="streams at once")
    tokens: int = Field(default=128, ge=1, le=65536, description="tokens that each stream generates")
    required: bool = Field(default=False, description="whether a slower lane is not healthy; else it is only told")
    timeout: PositiveDuration = Field(default=600.0, description="time for all of it, in seconds (10m)")


class Health(Record):
    """How a boot is judged, and what proves that a lane serves."""

    boot: PositiveDuration = Field(default=2400.0, description="time from start to a good answer, in seconds (40m)")
    stall: PositiveDuration = Field(
        default=600.0,
        description="time while booting without any progress in the logs, the memory or the disk, in seconds (10m)",
    )
    interval: PositiveDuration = Field(default=2.0, description="time between two looks, in seconds (2s)")
    path: HttpPath = Field(default="/health", description="path on the head that answers 200 when it serves")
    probes: Annotated[tuple[Probe, ...], Strict(strict=False)] = Field(
        default=(Probe(chat="What is the capital of France?"),),
        description="questions that must all be answered; default: one that any answer satisfies, but junk",
    )
    performance: Performance | None = Field(default=None, description="how fast it has to be; default: not measured")

    @model_validator(mode="after")
    def _looks_in_time(self) -> "Health":
        if "interval" in self.model_fields_set and self.interval > self.boot:
            raise refuse("`interval` is longer than `boot`", "The second look would come when the time is up.")
        if "stall" in self.model_fields_set and self.stall > self.boot:
            raise refuse("`stall` is longer than `boot`", "The time for the boot would be up before it could stall.")
        return self
