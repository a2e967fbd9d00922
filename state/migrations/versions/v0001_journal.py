"""The tables of release 0.1.0: runs, journal, revisions."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make them."""
    op.create_table(
        "runs",
        sa.Column("ordinal", sa.Integer, primary_key=True),
        sa.Column("id", sa.String, nullable=False, unique=True),
        sa.Column("command", sa.String, nullable=False),
        sa.Column("fleet", sa.String, nullable=False),
        sa.Column("spec_fingerprint", sa.String, nullable=False),
        sa.Column("plan_id", sa.String, nullable=False),
        sa.Column("commit", sa.String),
        sa.Column("user", sa.String, nullable=False),
        sa.Column("host", sa.String, nullable=False),
        sa.Column("started_at", sa.Float, nullable=False),
        sa.Column("ended_at", sa.Float),
        sa.Column("exit_code", sa.Integer),
    )
    _journal()
    op.create_table(
        "revisions",
        sa.Column("ordinal", sa.Integer, primary_key=True),
        sa.Column("gang", sa.String, nullable=False, index=True),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("fingerprint", sa.String, nullable=False),
        sa.Column("run_id", sa.String, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("confirmed_at", sa.Float, nullable=False),
        sa.Column("boot_s", sa.Float, nullable=False),
        sa.UniqueConstraint("gang", "number", "run_id"),
    )


def _journal() -> None:
    op.create_table(
        "intents",
        sa.Column("ordinal", sa.Integer, primary_key=True),
        sa.Column("run_id", sa.String, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("step_id", sa.String, nullable=False),
        sa.Column("gang", sa.String, nullable=False),
        sa.Column("node", sa.String),
        sa.Column("op", sa.String, nullable=False),
        sa.Column("target", sa.String, nullable=False),
        sa.Column("operation", sa.String, nullable=False),
        sa.Column("intent_at", sa.Float, nullable=False),
        sa.UniqueConstraint("run_id", "sequence"),
    )
    op.create_table(
        "outcomes",
        sa.Column("run_id", sa.String, primary_key=True),
        sa.Column("sequence", sa.Integer, primary_key=True),
        sa.Column("result", sa.String, nullable=False),
        sa.Column("detail", sa.String, nullable=False),
        sa.Column("ended_at", sa.Float, nullable=False),
        sa.ForeignKeyConstraint(["run_id", "sequence"], ["intents.run_id", "intents.sequence"]),
    )
