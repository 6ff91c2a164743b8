"""Index the audit log by action and time, to count decisions and to list entries of one action."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the index."""
    op.create_index("ix_audit_tenant_id", "audit", ["tenant_id", "action", "at", "details"])
