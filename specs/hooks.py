"""What the controller calls around a change: programs and web hooks of the user's."""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Discriminator, Field, Strict, Tag, WithJsonSchema, model_validator

from specs.diagnostics import refuse
from specs.environment import EnvValue, Secret, Words
from specs.fields import EnvName, Text
from specs.policies import LANES, Patterns
from specs.quantities import Duration
from specs.records import Record

LONGEST_S = 600.0
Timeout = Annotated[Duration, Field(gt=0, le=LONGEST_S)]


_HEADER = r"^[A-Za-z0-9_-]+$"


def _header(text: str) -> str:
    if re.fullmatch(_HEADER, text, re.ASCII):
        return text
    raise refuse(f"'{text[:80]}' is not the name of a header", "It is letters, digits, '-' and '_'.")


def _kind_of_url(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return "(text)" if isinstance(value, str) else "(none)"
    return "(secret)" if isinstance(value, dict | Secret) else None


Url = Annotated[
    Annotated[Text, Tag("(text)")] | Annotated[Secret, Tag("(secret)")] | Annotated[None, Tag("(none)")],
    Discriminator(
        _kind_of_url,
        custom_error_type="wanted",
        custom_error_message="wants {what}",
        custom_error_context={"what": "a URL, or {secret: env:NAME} where it is one"},
    ),
]
Header = Annotated[str, AfterValidator(_header), WithJsonSchema({"type": "string", "pattern": _HEADER})]


class Hook(Record):
    """A program or a web hook; it gets what happened as JSON."""

    command: Words | None = Field(
        default=None,
        description="a program and its arguments, without a shell; a path that begins with ./ is beside the spec",
    )
    http: Url = Field(default=None, description="a URL that gets a POST, or {secret: env:NAME} where the URL is one")
    timeout: Timeout = Field(default=30.0, description="time for it, in seconds, at most 10m (30s)")
    env: dict[EnvName, EnvValue] = Field(
        default_factory=dict, description="the program's environment beside PATH, HOME, LANG and FLEET_*"
    )
    headers: dict[Header, EnvValue] = Field(default_factory=dict, description="headers of the POST")
    lanes: Patterns = Field(default=("*",), description=f"of which it is told: {LANES}")

    @model_validator(mode="after")
    def _is_one_kind(self) -> "Hook":
        if (self.command is None) == (self.http is None):
            raise refuse("a hook has `command` or `http`", "It is a program or a web hook.", "write one of them")
        if self.command == () or (self.command and not self.command[0]):
            raise refuse("the command is empty", "It is a program and its arguments.", "", ("command",))
        if self.env and self.command is None:
            raise refuse("a web hook has no environment", "", "write `headers`", ("env",))
        if self.headers and self.http is None:
            raise refuse("a program gets no headers", "", "write `env`", ("headers",))
        if isinstance(self.http, str):
            _insist_on_url(self.http)
        return self

    @property
    def references(self) -> tuple[tuple[str, str], ...]:
        """Its secrets: the name each is given under, and the reference."""
        given = {**self.env, **self.headers, **({"http": self.http} if self.http is not None else {})}
        return tuple((name, value.secret) for name, value in given.items() if isinstance(value, Secret))


def _insist_on_url(text: str) -> None:
    # The text is not repeated in the message: it may hold a password.
    try:
        url = urlsplit(text)
        usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0 and "@" not in url.netloc
    except ValueError:
        usable = False
    if not usable or not text.isprintable() or " " in text:
        why = "A URL that holds a token or a password is a secret."
        raise refuse("not a plain http or https URL", why, "write {secret: env:NAME} for one that is secret", ("http",))


Calls = Annotated[tuple[Hook, ...], Strict(strict=False)]


class Hooks(Record):
    """What is called around a change, on the controller."""

    before_cut: Calls = Field(
        default=(), description="before the first container of a lane is stopped; what fails or hangs keeps it running"
    )
    after_confirm: Calls = Field(default=(), description="when a lane was booted and proved; what fails is only told")
    on_failure: Calls = Field(
        default=(), description="when a lane failed, after what ran before is back; what fails is only told"
    )
