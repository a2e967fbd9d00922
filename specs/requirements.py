"""What a model asks of every lane that serves it."""

from typing import Annotated

from pydantic import Field, JsonValue, Strict, model_validator

from specs.diagnostics import refuse
from specs.fields import ArgName, EnvName, Line, Reason, Text
from specs.records import Record

ConfigKey = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")]
"""A key of a model's `config.json`."""


class Requirement(Record):
    """Settings without which a model does not work, learned once and held for every lane that serves it."""

    engine: Line | None = Field(default=None, description="the engine this is about; default: any")
    env: dict[EnvName, Text] = Field(default_factory=dict, description="environment variables, each with its value")
    args: dict[ArgName, JsonValue] = Field(
        default_factory=dict,
        description="engine arguments, each with its value; of a mapping only the given keys count; null: not set",
    )
    reason: Reason = Field(description="why: it is shown when a lane has it otherwise")

    @model_validator(mode="after")
    def _asks_for_something(self) -> "Requirement":
        if not self.env and not self.args:
            raise refuse("a requirement needs `env` or `args`", "It says nothing that a lane must have.")
        return self


Requirements = Annotated[tuple[Requirement, ...], Strict(strict=False)]
