"""What the operator of the service decides."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class Deployment(BaseModel):
    """What the operator of the service decides; workers receive it as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    database: str
    key_file: Path | None = None
    host: str = "127.0.0.1"
    port: int = Field(8421, ge=0, le=65535)
    workers: int = Field(1, ge=1, le=64)
    behind_proxy: bool = False
    # Names under which the service is reached, besides loopback ones.
    names: tuple[str, ...] = ()
    private_webhooks: bool = False
    metrics_token: str | None = Field(None, min_length=16, repr=False)
    # Limits, each per process.
    largest_body: int = Field(2 << 20, ge=1024)
    requests_per_second: float = Field(200.0, gt=0)
    concurrent: int = Field(32, ge=1, le=1024)
    live_sessions: int = Field(5000, ge=1)
    idle_seconds: float = Field(300.0, gt=0)
    # Seconds in which a body must have arrived, and entries of the audit log that one request checks.
    arrival_seconds: float = Field(15.0, gt=0)
    checked_entries: int = Field(20_000, ge=1)


def default_database() -> str:
    """The address of an SQLite file in the folder where programs keep their user's data."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return f"sqlite:///{Path(base) / 'keydyn' / 'service.db'}"
