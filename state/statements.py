"""The store's statements, as text that SQLite and PostgreSQL both take, and the version of the tables they are for.

Text, because loading SQLAlchemy and having it build them takes longer than a look at a small fleet: it is loaded to
make and to change tables, and for PostgreSQL.
"""
# ruff: noqa: S608 - what is put into them are names of our own records

from dataclasses import fields

from state.checks import Outcome
from state.records import Entry, Hold, Measure, Memory, PastReport, PlanClaim, Quarantine, Revision, Run

VERSION = 4
"""A change of the tables raises it, and brings a step from the version before in `state/migrations/versions`."""

KINDS: dict[str, type] = {
    "runs": Run,
    "intents": Entry,
    "outcomes": Outcome,
    "revisions": Revision,
    "claims": PlanClaim,
    "holds": Hold,
    "quarantines": Quarantine,
    "measures": Measure,
    "reports": PastReport,
    "memories": Memory,
}
"""What a row of each table is, by field of a snapshot, in an order in which they can be filled."""

OUTCOME = ("ended_at", "result", "detail")
"""Fields of an entry that are not of its intent: they come from the other table of the journal."""


def _names(table: str) -> list[str]:
    """The columns that are fields of a record; `ordinal` only keeps the order of recording."""
    names = [field.name for field in fields(KINDS[table])]
    return [name for name in names if table != "intents" or name not in OUTCOME]


def _columns(table: str) -> str:
    """Quoted: some are words of SQL."""
    return ", ".join(f'{table}."{name}"' for name in _names(table))


def _insert(table: str) -> str:
    names = _names(table)
    return f"INSERT INTO {table} ({_quoted(names)}) VALUES ({', '.join(f':{name}' for name in names)})"


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _select(table: str) -> str:
    return f"SELECT {_columns(table)} FROM {table}"


def _last(table: str, where: str = "") -> str:
    return f"{_select(table)} {where} ORDER BY ordinal DESC LIMIT :limit"


INSERT = {table: _insert(table) for table in KINDS}
COUNT = {table: f"SELECT count(*) AS rows FROM {table}" for table in KINDS}

_SAME_ENTRY = "intents.run_id = outcomes.run_id AND intents.sequence = outcomes.sequence"
ALL = {table: f"{_select(table)} ORDER BY ordinal" for table in KINDS}
ALL["outcomes"] = f"{_select('outcomes')} LEFT JOIN intents ON {_SAME_ENTRY} ORDER BY intents.ordinal"

_ENTRIES = (
    f"SELECT {_columns('intents')}, outcomes.ended_at, outcomes.result, coalesce(outcomes.detail, '') AS detail"
    f" FROM intents LEFT JOIN outcomes ON {_SAME_ENTRY} WHERE %s ORDER BY intents.ordinal"
)
ENTRIES = _ENTRIES % "intents.run_id = :of_run"
OPEN_ENTRIES = _ENTRIES % "outcomes.result IS NULL"

ONE_RUN = f"{_select('runs')} WHERE id = :of_run"
LAST_RUNS = _last("runs")
END_RUN = "UPDATE runs SET ended_at = :at_time, exit_code = :with_code WHERE id = :of_run AND ended_at IS NULL"
NEXT_SEQUENCE = (
    "SELECT (SELECT coalesce(max(sequence), 0) + 1 FROM intents WHERE run_id = :of_run) AS sequence"
    " FROM runs WHERE id = :of_run AND ended_at IS NULL"
)
"""The sequence of the next intent; no row when the run was never begun, or has ended."""

LAST_REVISIONS = _last("revisions")
LAST_REVISIONS_OF = _last("revisions", "WHERE gang = :of_gang")
FORGET_REVISION = "DELETE FROM revisions WHERE gang = :of_gang AND number = :of_number AND run_id = :of_run"

LAST_MEASURES = (
    f"SELECT {_quoted(_names('measures'))} FROM (SELECT measures.*, row_number() OVER"
    " (PARTITION BY kind, image, model, node_class ORDER BY ordinal DESC) AS place FROM measures) AS ranked"
    " WHERE place <= :each ORDER BY ordinal DESC"
)
"""Of each subject the last so many."""

LAST_REPORTS = _last("reports")
FORGET_REPORTS = (
    "DELETE FROM reports WHERE ordinal NOT IN (SELECT ordinal FROM reports ORDER BY ordinal DESC LIMIT :limit)"
)

ONE_MEMORY = f"{_select('memories')} WHERE name = :of_name"
FORGET_MEMORY = "DELETE FROM memories WHERE name = :of_name"

CLAIMED_BY = "SELECT run_id FROM claims WHERE saved_id = :of_plan"

_ACTIVE = "released_at IS NULL AND (expires_at IS NULL OR expires_at > :now)"
ACTIVE_HOLDS = f"{_select('holds')} WHERE {_ACTIVE} ORDER BY ordinal"
RELEASE = f"UPDATE holds SET released_at = :now WHERE id = :of_hold AND {_ACTIVE}"

LIFT_ALL = "DELETE FROM quarantines WHERE gang = :of_gang"
LIFT = f"{LIFT_ALL} AND fingerprint = :of_fingerprint"
