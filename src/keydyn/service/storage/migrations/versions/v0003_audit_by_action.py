"""An index of the audit log by action and time: decisions are counted, and one kind of entry is listed."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the index."""
    op.create_index("ix_audit_tenant_id", "audit", ["tenant_id", "action", "at", "details"])
