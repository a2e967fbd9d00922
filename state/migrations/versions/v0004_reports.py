"""Drift reports as they were given; small documents by name."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Only adds."""
    op.create_table(
        "reports",
        sa.Column("ordinal", sa.Integer, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("text", sa.String, nullable=False),
    )
    op.create_table(
        "memories",
        sa.Column("ordinal", sa.Integer, primary_key=True),
        sa.Column("name", sa.String, nullable=False, unique=True),
        sa.Column("text", sa.String, nullable=False),
    )
