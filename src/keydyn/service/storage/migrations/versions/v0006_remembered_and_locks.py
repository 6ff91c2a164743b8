"""Count the remembered samples of a person, and the locks of a watched session."""

from __future__ import annotations

from alembic import op

from keydyn.service.storage.column_notation import columns

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the counters, which start at 0: existing fingerprints are read when a person is first looked up."""
    op.add_column("users", *columns("remembered:big=0"))
    op.add_column("watch_sessions", *columns("locks:int=0"))
