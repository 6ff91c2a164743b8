"""How many samples of a person are remembered, and how often a watched session was locked."""

from __future__ import annotations

from alembic import op

from keydyn.service.storage.columns import columns

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Count from none: fingerprints that are there are read when a person is first looked up."""
    op.add_column("users", *columns("remembered:big=0"))
    op.add_column("watch_sessions", *columns("locks:int=0"))
