"""Words of commands, and environments: texts that are kept as written, and secrets by reference."""

from typing import Annotated

from pydantic import AfterValidator, Discriminator, Field, Strict, Tag

from specs.diagnostics import refuse
from specs.fields import SecretReference, Text
from specs.records import Record


def _begun(words: tuple[str, ...]) -> tuple[str, ...]:
    if words and not words[0].strip():
        raise refuse("the first word is empty", "It names what is run.", below=(0,))
    return words


Words = Annotated[tuple[Text, ...], Strict(strict=False), AfterValidator(_begun)]
"""A command, one word an item. No words: what else there is."""

Command = Annotated[Words, Field(min_length=1)]
"""A command that has to be one."""


class Secret(Record):
    """A reference to a secret; the value itself is never part of a spec."""

    secret: SecretReference = Field(
        description="env:NAME, file:/absolute/path, command:PROGRAM ARGUMENTS or sops:/path/file.yaml#key.path: where "
        "the controller finds it"
    )


def _kind_of_env(value: object) -> str | None:
    if isinstance(value, str):
        return "(text)"
    return "(secret)" if isinstance(value, dict | Secret) else None


EnvValue = Annotated[
    Annotated[Text, Tag("(text)")] | Annotated[Secret, Tag("(secret)")],
    Discriminator(
        _kind_of_env,
        custom_error_type="wanted",
        custom_error_message="wants {what}",
        custom_error_context={"what": "text or {secret: env:NAME}"},
    ),
]
