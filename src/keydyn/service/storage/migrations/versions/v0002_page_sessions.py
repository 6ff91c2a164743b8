"""Links that open a page, and sessions of pages, beside keys."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Everything that was there is a key."""
    op.add_column("api_keys", sa.Column("kind", sa.String(length=16), nullable=False, server_default="key"))
    op.add_column("api_keys", sa.Column("expires_at", sa.BigInteger(), nullable=True))
    op.add_column("api_keys", sa.Column("made_with", sa.String(length=32), nullable=True))
