"""Store links that open a page, and sessions of pages, in the table of API keys."""

from __future__ import annotations

from alembic import op

from keydyn.service.storage.column_notation import columns

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the columns; all existing rows are keys."""
    for column in columns("kind:16=key expires_at:big? made_with:32?"):
        op.add_column("api_keys", column)
