"""The tables. Only portable types: the same statements are to serve PostgreSQL."""

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    UniqueConstraint,
)

metadata = MetaData()

stamped = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32)),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""Alembic's own table, with the revision that the tables have."""


def revision_of(version: int) -> str:
    """Alembic's name of a version."""
    return f"{version:04}"


runs = Table(
    "runs",
    metadata,
    Column("ordinal", Integer, primary_key=True),
    Column("id", String, nullable=False, unique=True),
    Column("command", String, nullable=False),
    Column("fleet", String, nullable=False),
    Column("spec_fingerprint", String, nullable=False),
    Column("plan_id", String, nullable=False),
    Column("commit", String),
    Column("user", String, nullable=False),
    Column("host", String, nullable=False),
    Column("started_at", Float, nullable=False),
    Column("ended_at", Float),
    Column("exit_code", Integer),
)

intents = Table(
    "intents",
    metadata,
    Column("ordinal", Integer, primary_key=True),
    Column("run_id", String, ForeignKey("runs.id"), nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("step_id", String, nullable=False),
    Column("gang", String, nullable=False),
    Column("node", String),
    Column("op", String, nullable=False),
    Column("target", String, nullable=False),
    Column("operation", String, nullable=False),
    Column("intent_at", Float, nullable=False),
    UniqueConstraint("run_id", "sequence"),
)

outcomes = Table(
    "outcomes",
    metadata,
    Column("run_id", String, primary_key=True),
    Column("sequence", Integer, primary_key=True),
    Column("result", String, nullable=False),
    Column("detail", String, nullable=False),
    Column("ended_at", Float, nullable=False),
    ForeignKeyConstraint(["run_id", "sequence"], ["intents.run_id", "intents.sequence"]),
)

revisions = Table(
    "revisions",
    metadata,
    Column("ordinal", Integer, primary_key=True),
    Column("gang", String, nullable=False, index=True),
    Column("number", Integer, nullable=False),
    Column("fingerprint", String, nullable=False),
    Column("run_id", String, ForeignKey("runs.id"), nullable=False),
    Column("confirmed_at", Float, nullable=False),
    Column("boot_s", Float, nullable=False),
    Column("spec", String, nullable=False, server_default=""),
    Column("how", String, nullable=False, server_default="apply"),
    UniqueConstraint("gang", "number", "run_id"),
)

claims = Table(
    "claims",
    metadata,
    Column("ordinal", Integer, primary_key=True),
    Column("saved_id", String, nullable=False, unique=True),
    Column("run_id", String, ForeignKey("runs.id"), nullable=False),
    Column("at", Float, nullable=False),
)

holds = Table(
    "holds",
    metadata,
    Column("ordinal", Integer, primary_key=True),
    Column("id", String, nullable=False, unique=True),
    Column("kind", String, nullable=False),
    Column("name", String, nullable=False),
    Column("owner", String, nullable=False),
    Column("reason", String, nullable=False),
    Column("placed_at", Float, nullable=False),
    Column("expires_at", Float),
    Column("released_at", Float),
)

quarantines = Table(
    "quarantines",
    metadata,
    Column("ordinal", Integer, primary_key=True),
    Column("gang", String, nullable=False),
    Column("fingerprint", String, nullable=False),
    Column("cause", String, nullable=False),
    Column("run_id", String, ForeignKey("runs.id"), nullable=False),
    Column("at", Float, nullable=False),
    UniqueConstraint("gang", "fingerprint"),
)

measures = Table(
    "measures",
    metadata,
    Column("ordinal", Integer, primary_key=True),
    Column("kind", String, nullable=False),
    Column("gang", String, nullable=False),
    Column("node", String, nullable=False),
    Column("image", String, nullable=False),
    Column("model", String, nullable=False),
    Column("node_class", String, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("size_bytes", BigInteger),
    Column("run_id", String, ForeignKey("runs.id"), nullable=False),
    Column("at", Float, nullable=False),
    Index("ix_measures_subject", "kind", "image", "model", "node_class"),
)

reports = Table(
    "reports",
    metadata,
    Column("ordinal", Integer, primary_key=True),
    Column("at", Float, nullable=False),
    Column("text", String, nullable=False),
)

memories = Table(
    "memories",
    metadata,
    Column("ordinal", Integer, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    Column("text", String, nullable=False),
)
