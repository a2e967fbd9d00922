"""How long things took, for the next time."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Only adds."""
    op.create_table(
        "measures",
        sa.Column("ordinal", sa.Integer, primary_key=True),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("gang", sa.String, nullable=False),
        sa.Column("node", sa.String, nullable=False),
        sa.Column("image", sa.String, nullable=False),
        sa.Column("model", sa.String, nullable=False),
        sa.Column("node_class", sa.String, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("size_bytes", sa.BigInteger),
        sa.Column("run_id", sa.String, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_index("ix_measures_subject", "measures", ["kind", "image", "model", "node_class"])
