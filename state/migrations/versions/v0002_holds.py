"""Revisions know what was applied; saved plans are claimed; holds and quarantine."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Only adds."""
    op.add_column("revisions", sa.Column("spec", sa.String, nullable=False, server_default=""))
    op.add_column("revisions", sa.Column("how", sa.String, nullable=False, server_default="apply"))
    op.create_table(
        "claims",
        sa.Column("ordinal", sa.Integer, primary_key=True),
        sa.Column("saved_id", sa.String, nullable=False, unique=True),
        sa.Column("run_id", sa.String, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_table(
        "holds",
        sa.Column("ordinal", sa.Integer, primary_key=True),
        sa.Column("id", sa.String, nullable=False, unique=True),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("owner", sa.String, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("placed_at", sa.Float, nullable=False),
        sa.Column("expires_at", sa.Float),
        sa.Column("released_at", sa.Float),
    )
    op.create_table(
        "quarantines",
        sa.Column("ordinal", sa.Integer, primary_key=True),
        sa.Column("gang", sa.String, nullable=False),
        sa.Column("fingerprint", sa.String, nullable=False),
        sa.Column("cause", sa.String, nullable=False),
        sa.Column("run_id", sa.String, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.UniqueConstraint("gang", "fingerprint"),
    )
