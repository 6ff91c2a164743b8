"""How many samples of a person are remembered, and how often a watched session was locked."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Count from none: fingerprints that are there are read when a person is first looked up."""
    op.add_column("users", sa.Column("remembered", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("watch_sessions", sa.Column("locks", sa.Integer(), nullable=False, server_default="0"))
