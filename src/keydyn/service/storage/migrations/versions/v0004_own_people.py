"""Store comparisons among a tenant's own people, and the adjustment of the calibration that follows."""

from __future__ import annotations

from alembic import op

from keydyn.service.storage.column_notation import columns

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the tables, which stay empty until templates are learnt and people are compared."""
    op.create_table(
        "comparisons",
        *columns("profile_id*:32>profiles claimed_id*:32>profiles background:64 contents:bytes"),
    )
    op.create_index(None, "comparisons", ["claimed_id"])
    op.create_table(
        "own_places",
        *columns("tenant_id*:32>tenants device*:16 text*:80 version:big background:64 cohort:int people:int"),
        *columns("comparisons:int shift:float unsure:float"),
    )
