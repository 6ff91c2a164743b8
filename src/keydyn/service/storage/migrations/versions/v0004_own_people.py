"""Comparisons among a tenant's own people, and what they say of a calibration that was learnt elsewhere."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the tables, which are empty: people are compared when their templates are learnt."""
    op.create_table(
        "comparisons",
        sa.Column("profile_id", sa.String(32), nullable=False),
        sa.Column("claimed_id", sa.String(32), nullable=False),
        sa.Column("background", sa.String(64), nullable=False),
        sa.Column("contents", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("profile_id", "claimed_id", name="pk_comparisons"),
        *(
            sa.ForeignKeyConstraint([of], ["profiles.id"], f"fk_comparisons_{of}", ondelete="CASCADE")
            for of in ("profile_id", "claimed_id")
        ),
    )
    op.create_index("ix_comparisons_claimed_id", "comparisons", ["claimed_id"])
    op.create_table(
        "own_places",
        sa.Column("tenant_id", sa.String(32), nullable=False),
        sa.Column("device", sa.String(16), nullable=False),
        sa.Column("text", sa.String(80), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("background", sa.String(64), nullable=False),
        sa.Column("cohort", sa.Integer(), nullable=False),
        sa.Column("people", sa.Integer(), nullable=False),
        sa.Column("comparisons", sa.Integer(), nullable=False),
        sa.Column("shift", sa.Float(), nullable=False),
        sa.Column("unsure", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "device", "text", name="pk_own_places"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], "fk_own_places_tenant_id", ondelete="CASCADE"),
    )
