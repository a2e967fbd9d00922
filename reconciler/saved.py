"""Saved plans: written whole, read back or refused, and held against the nodes as they are now.

A saved plan is carried out as it is, once, or not at all. The file says which plan, who made it when, and what each of
its steps rests on; its seal tells a damaged or edited file. `Store.claim_plan` keeps it from being carried out twice,
and without that record its own preconditions do.
"""

import hashlib
import json
import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconciler import history, person
from reconciler.core.canonical import jsonable
from reconciler.core.decode import DecodeError, decoded
from reconciler.core.observed import Observed
from reconciler.core.plan import SCHEMA as PLAN_SCHEMA
from reconciler.core.plan import Plan
from reconciler.core.stale import NodeSeen, sight
from reconciler.core.summary import applied_before
from reconciler.fleet import Fleet

SCHEMA = "fleet.saved/1"


@dataclass(frozen=True)
class Saved:
    """One saved plan. `id` is unique to this file, whatever the plan; `at`: seconds since the epoch; `by`: who made it.

    `saw` is what its steps rest on, by node.
    """

    schema: str
    id: str
    at: float
    by: str
    plan: Plan
    saw: tuple[NodeSeen, ...]


class SavedPlanError(Exception):
    """The file is no saved plan that can be read: what is wrong with it, and what to do."""

    def __init__(self, message: str, hint: str = "make a new one: `fleet plan --out FILE`") -> None:
        super().__init__(message)
        self.hint = hint


def save(plan: Plan, observed: Observed, at: float) -> Saved:
    """A plan with what its steps rest on; `observed` is what it was made from, `at` is now."""
    return Saved(SCHEMA, uuid.uuid4().hex[:16], at, person.name(), plan, sight(plan, observed))


def saved_text(saved: Saved) -> str:
    """The text of the file."""
    fields = jsonable(saved)
    return json.dumps({"schema": SCHEMA, "seal": _seal(fields), **fields}, indent=2, ensure_ascii=False) + "\n"


def write(path: Path, saved: Saved) -> None:
    """Write the file whole or not at all, readable for its owner only. Raises `OSError`."""
    text = saved_text(saved)
    if path.is_symlink() or (path.exists() and not path.is_file()):  # /dev/stdout, a pipe: written as it is
        path.write_text(text, encoding="utf-8")
        return
    fresh = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        with open(fresh, "x", encoding="utf-8", opener=_private) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        fresh.unlink(missing_ok=True)


def read(path: Path) -> Saved:
    """The saved plan of a file. Raises `SavedPlanError` for one that is damaged, edited or newer, and `OSError`."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):  # not JSON, not even text, or nested without end
        raise SavedPlanError(f"{path} is no saved plan, or is damaged: it is not JSON") from None
    schema = fields.get("schema") if isinstance(fields, dict) else None
    if not isinstance(schema, str) or not schema.startswith("fleet.saved/"):
        raise SavedPlanError(f"{path} is no saved plan: it does not say schema {SCHEMA}")
    if schema != SCHEMA:
        hint = "apply it with the version of fleet that made it, or make a new one: `fleet plan --out FILE`"
        raise SavedPlanError(f"{path} has schema {schema[:40]}, and this fleet reads {SCHEMA}", hint)
    if fields.pop("seal", None) != _seal(fields):
        raise SavedPlanError(f"{path} is damaged or was edited: its seal does not hold")
    try:
        saved = decoded(Saved, json.dumps(fields))
    except DecodeError as error:
        raise SavedPlanError(f"{path} cannot be read by this version of fleet: {error}") from None
    if saved.plan.schema != PLAN_SCHEMA:
        raise SavedPlanError(f"{path} holds a plan of schema {saved.plan.schema}, and this fleet reads {PLAN_SCHEMA}")
    return saved


def refusal(fleet: Fleet, saved: Saved) -> str:
    """Why this saved plan is not for this fleet, or not any more; empty when it is. Raises `state.StateError`."""
    if saved.plan.fleet != fleet.desired.fleet:
        return f"refused: the plan is for fleet {saved.plan.fleet}, and the spec is of fleet {fleet.desired.fleet}"
    if saved.plan.spec != fleet.desired.spec_fingerprint:
        return "refused: the spec has changed since the plan was made\n`fleet plan --out FILE` makes a new one"
    earlier = _taken_by(fleet, saved.id)
    return applied_before(earlier) if earlier else ""


def _taken_by(fleet: Fleet, saved_id: str) -> str | None:
    """The run that has taken it, as far as is recorded. For people: what decides is `Store.claim_plan`."""
    with history.reading(history.location(fleet.spec)) as store:
        claims = store.snapshot().claims if store else ()
    return next((claim.run_id for claim in claims if claim.saved_id == saved_id), None)


def _seal(fields: dict[str, Any]) -> str:
    """A digest of all that the file says. It tells accidents and edits; it is no signature."""
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)
