"""Store the cost of failed attempts, the uses of tokens, and decisions that a server can ask for."""

from __future__ import annotations

from alembic import op

from keydyn.service.storage.column_notation import columns

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Create the tables, which are empty at first."""
    op.create_table(
        "counters",
        *columns("tenant_id*:32>tenants name*:80 user_id:32?>users expires_at:big amount:big"),
    )
    op.create_table(
        "decisions",
        *columns("id*:32 tenant_id:32>tenants user_id:32?>users created_at:big kind:16 answer:16 level:16"),
        *columns("judged_level:16 text:80 device:16 actor:64"),
    )
    for table, moment in (("counters", "expires_at"), ("decisions", "created_at")):
        op.create_index(None, table, ["user_id"])
        op.create_index(None, table, [moment])
