"""What a check found: a value that plans, `fleet doctor` and programs of users read."""

from dataclasses import dataclass
from enum import StrEnum


class Result(StrEnum):
    """How it stands. Values are stable: they are in JSON outputs.

    `warn` never keeps anything from being done; `unknown` is a fact that could not be had, which is no fault.
    """

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Finding:
    """One check at one address (of a placement, a node, or empty for the whole fleet).

    `evidence` is what was seen, in a sentence; `mend` what a person can do; `node`: where it was seen.
    """

    check: str
    address: str
    result: Result
    evidence: str = ""
    mend: str = ""
    node: str | None = None
