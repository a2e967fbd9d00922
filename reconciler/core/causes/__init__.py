"""Why an engine ended: a catalogue of causes, known by lines of its log, its exit code and Docker's flag.

`diagnose` reads the log of one rank. Lines that only tell of another rank's end are no cause (`SYMPTOMS`): the cause
is in the other rank's log. The catalogue is data: a new entry is a `Signature`, a recorded log in
`tests/fixtures/causes/`, and nothing else.
"""

import re
from collections.abc import Sequence

from reconciler.core.causes.engine import ENGINE, REFUSED
from reconciler.core.causes.machine import ENDS, GPU, MACHINE
from reconciler.core.causes.memory import MEMORY, OOM_KILLED
from reconciler.core.causes.model import MODEL
from reconciler.core.causes.network import NETWORK
from reconciler.core.causes.signature import Cause, Signature

__all__ = ["CATALOGUE", "Cause", "Signature", "diagnose", "is_symptom", "last_error"]

CATALOGUE: tuple[Signature, ...] = (OOM_KILLED, *MEMORY, *ENGINE, *MODEL, *GPU, *NETWORK, *MACHINE, *REFUSED, *ENDS)
"""The first entry that a line of the log matches is the cause, so the special comes before the general."""

SYMPTOMS = tuple(
    map(
        re.compile,
        (
            r"[Cc]onnection (was )?(closed|reset|aborted) by (remote )?peer",
            r"[Cc]onnection closed by remote",
            r"Broken pipe",
            r"remote process exit",
            r"ncclRemoteError",
            r"Socket recv failed while polling",
            r"NCCL communicator was aborted",
            r"Remote RPC server crashed or returned malformed response",
            r"EngineDeadError",
            r"EngineCore (encountered an issue|failed to start)",
            r"Failed core proc",
            r"Engine core initialization failed",
            r"WorkerProc initialization failed",
            r"Worker proc \S+ died unexpectedly",
            r"terminated with exception: \[(PG|Rank)",
            r"destroy_process_group\(\) was not called",
            r"leaked (semaphore|shared_memory)",
            r"scheduler died|Child process unexpectedly failed",
            r"actor died unexpectedly|ActorDiedError|The worker died|WorkerCrashedError",
        ),
    )
)
"""What a rank says when another one, or another of its own processes, has gone away."""

ERROR = re.compile(r"\b[A-Z]\w*(Error|Exception|Failure)\b ?: ?\S|\b(fatal|error)\b ?: ?\S", re.IGNORECASE)
"""A line that says what went wrong, in no wording this catalogue knows."""


def diagnose(lines: Sequence[str], exit_code: int | None, oom_killed: bool) -> Cause | None:
    """The cause that this rank's end tells of, or None. `exit_code` None: it still runs.

    Docker's out-of-memory flag is believed first, then the log, then the exit code.
    """
    if oom_killed and exit_code is not None:
        return OOM_KILLED.at("")
    text = "\n".join(line for line in lines if not is_symptom(line))
    found = next((cause for item in CATALOGUE if (cause := item.found_in(text))), None)
    return found or next((item.at("") for item in CATALOGUE if exit_code in item.exit_codes), None)


def is_symptom(line: str) -> bool:
    """Whether a line only tells that another rank, or another process, has ended."""
    return any(mark.search(line) for mark in SYMPTOMS)


def last_error(lines: Sequence[str]) -> str:
    """The last line that speaks of an error of this rank's own; empty when none does."""
    found = (line.strip() for line in reversed(lines) if ERROR.search(line) and not is_symptom(line))
    return next(found, "")
