"""The base of all models of a spec."""

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A frozen, strict model without room for unknown keys."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)
