"""What failed attempts have cost, how often tokens were used, and decisions that a server can ask for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Make the tables, which are empty: nobody has spent anything yet."""
    op.create_table(
        "counters",
        sa.Column("tenant_id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(80), nullable=False),
        sa.Column("user_id", sa.String(32), nullable=True),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "name", name="pk_counters"),
        *_owners("counters"),
    )
    op.create_index("ix_counters_user_id", "counters", ["user_id"])
    op.create_index("ix_counters_expires_at", "counters", ["expires_at"])
    op.create_table(
        "decisions",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("tenant_id", sa.String(32), nullable=False),
        sa.Column("user_id", sa.String(32), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("answer", sa.String(16), nullable=False),
        sa.Column("level", sa.String(16), nullable=False),
        sa.Column("judged_level", sa.String(16), nullable=False),
        sa.Column("text", sa.String(80), nullable=False),
        sa.Column("device", sa.String(16), nullable=False),
        sa.Column("actor", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_decisions"),
        *_owners("decisions"),
    )
    op.create_index("ix_decisions_user_id", "decisions", ["user_id"])
    op.create_index("ix_decisions_created_at", "decisions", ["created_at"])


def _owners(table: str) -> list[sa.ForeignKeyConstraint]:
    return [
        sa.ForeignKeyConstraint([f"{of}_id"], [f"{of}s.id"], f"fk_{table}_{of}_id", ondelete="CASCADE")
        for of in ("tenant", "user")
    ]
