"""The store's statements. Built once: with SQLAlchemy, building one costs more than executing it on SQLite."""

from typing import Any

from sqlalchemy import (
    BindParameter,
    Column,
    Insert,
    Select,
    Table,
    bindparam,
    delete,
    func,
    insert,
    null,
    or_,
    select,
    update,
)

from state.schema import claims, holds, intents, measures, memories, outcomes, quarantines, reports, revisions, runs


def _columns(table: Table) -> "list[Column[Any]]":
    """The columns that are fields of a record; `ordinal` only keeps the order of recording."""
    return [column for column in table.c if column.name != "ordinal"]


def _insert(table: Table) -> Insert:
    return insert(table).values({column.name: bindparam(column.name) for column in _columns(table)}).inline()


def _all(table: Table) -> Select[Any]:
    return select(*_columns(table)).order_by(table.c.ordinal)


RUN: BindParameter[Any] = bindparam("of_run")
GANG: BindParameter[Any] = bindparam("of_gang")
LIMIT: BindParameter[Any] = bindparam("limit")
NOW: BindParameter[Any] = bindparam("now")
AT: BindParameter[Any] = bindparam("at_time")
"""What is asked for. None of these names is one of a column."""

TABLES = {
    "runs": runs,
    "intents": intents,
    "outcomes": outcomes,
    "revisions": revisions,
    "claims": claims,
    "holds": holds,
    "quarantines": quarantines,
    "measures": measures,
    "reports": reports,
    "memories": memories,
}
"""By field of a snapshot, in an order in which they can be filled."""

INSERT = {name: _insert(table) for name, table in TABLES.items()}
ALL: dict[str, Select[Any]] = {
    name: _all(table) if "ordinal" in table.c else select(table) for name, table in TABLES.items()
}
_SAME_ENTRY = (intents.c.run_id == outcomes.c.run_id) & (intents.c.sequence == outcomes.c.sequence)
ALL["outcomes"] = select(outcomes).outerjoin_from(outcomes, intents, _SAME_ENTRY).order_by(intents.c.ordinal)

_OUTCOME = (outcomes.c.ended_at, outcomes.c.result, func.coalesce(outcomes.c.detail, "").label("detail"))
_JOURNAL = intents.outerjoin(outcomes, _SAME_ENTRY)
_ENTRIES = select(*_columns(intents), *_OUTCOME).select_from(_JOURNAL).order_by(intents.c.ordinal)
ENTRIES = _ENTRIES.where(intents.c.run_id == RUN)
OPEN_ENTRIES = _ENTRIES.where(outcomes.c.result.is_(null()))

ONE_RUN = select(*_columns(runs)).where(runs.c.id == RUN)
LAST_RUNS = select(*_columns(runs)).order_by(runs.c.ordinal.desc()).limit(LIMIT)
END_RUN = (
    update(runs)
    .where(runs.c.id == RUN, runs.c.ended_at.is_(null()))
    .values(ended_at=AT, exit_code=bindparam("with_code"))
)

_NEXT = select(func.coalesce(func.max(intents.c.sequence), 0) + 1).where(intents.c.run_id == RUN).scalar_subquery()
NEXT_SEQUENCE = select(_NEXT).select_from(runs).where(runs.c.id == RUN, runs.c.ended_at.is_(null()))
"""The sequence of the next intent; no row when the run was never begun, or has ended."""

_NEWEST = select(*_columns(revisions)).order_by(revisions.c.ordinal.desc()).limit(LIMIT)
LAST_REVISIONS = _NEWEST
LAST_REVISIONS_OF = _NEWEST.where(revisions.c.gang == GANG)
FORGET_REVISION = delete(revisions).where(
    revisions.c.gang == GANG, revisions.c.number == bindparam("of_number"), revisions.c.run_id == RUN
)

_SUBJECT = (measures.c.kind, measures.c.image, measures.c.model, measures.c.node_class)
_RANKED = select(
    measures, func.row_number().over(partition_by=_SUBJECT, order_by=measures.c.ordinal.desc()).label("place")
).subquery()
LAST_MEASURES = (
    select(*(_RANKED.c[column.name] for column in _columns(measures)))
    .where(_RANKED.c.place <= bindparam("each"))
    .order_by(_RANKED.c.ordinal.desc())
)
"""Of each subject the last so many."""

LAST_REPORTS = select(*_columns(reports)).order_by(reports.c.ordinal.desc()).limit(LIMIT)
_KEPT = select(reports.c.ordinal).order_by(reports.c.ordinal.desc()).limit(LIMIT)
FORGET_REPORTS = delete(reports).where(reports.c.ordinal.not_in(_KEPT))

_NAMED = memories.c.name == bindparam("of_name")
ONE_MEMORY = select(*_columns(memories)).where(_NAMED)
FORGET_MEMORY = delete(memories).where(_NAMED)

CLAIMED_BY = select(claims.c.run_id).where(claims.c.saved_id == bindparam("of_plan"))

_ACTIVE = (holds.c.released_at.is_(null()), or_(holds.c.expires_at.is_(null()), holds.c.expires_at > NOW))
ACTIVE_HOLDS = _all(holds).where(*_ACTIVE)
RELEASE = update(holds).where(holds.c.id == bindparam("of_hold"), *_ACTIVE).values(released_at=NOW)

LIFT_ALL = delete(quarantines).where(quarantines.c.gang == GANG)
LIFT = LIFT_ALL.where(quarantines.c.fingerprint == bindparam("of_fingerprint"))
