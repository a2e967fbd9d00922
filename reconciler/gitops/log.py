"""What the agent says while it runs, for a journal: a sentence a line, or a JSON object a line."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True)
class Log:
    """Writes lines. `write` is given each with its end; `now`: seconds since 1970."""

    write: Callable[[str], object]
    now: Callable[[], float]
    is_json: bool = False

    def info(self, text: str, **facts: object) -> None:
        """Something went as it should."""
        self._say("info", text, facts)

    def warn(self, text: str, **facts: object) -> None:
        """Something a person may want to look at."""
        self._say("warning", text, facts)

    def error(self, text: str, **facts: object) -> None:
        """Something a person has to look at."""
        self._say("error", text, facts)

    def _say(self, level: str, text: str, facts: dict[str, object]) -> None:
        if self.is_json:
            at = datetime.fromtimestamp(self.now(), UTC).isoformat(timespec="milliseconds")
            self.write(json.dumps({"at": at, "level": level, "message": text, **facts}, default=str) + "\n")
            return
        mark = "" if level == "info" else f"{level}: "
        first, *rest = text.splitlines() or [""]
        self.write("".join(f"{line}\n" for line in (f"fleet: {mark}{first}", *(f"  {line}" for line in rest))))
