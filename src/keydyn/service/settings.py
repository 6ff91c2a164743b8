"""The settings that the operator of the service chooses."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class Deployment(BaseModel):
    """The settings that the operator of the service chooses; workers receive them as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    database: str
    key_file: Path | None = None
    host: str = "127.0.0.1"
    port: int = Field(8421, ge=0, le=65535)
    workers: int = Field(1, ge=1, le=64)
    behind_proxy: bool = False
    # Host names under which the service is reached, in addition to loopback names.
    names: tuple[str, ...] = ()
    private_webhooks: bool = False
    metrics_token: str | None = Field(None, min_length=16, repr=False)
    # Limits, each of them per process.
    largest_body: int = Field(2 << 20, ge=1024)
    requests_per_second: float = Field(200.0, gt=0)
    concurrent: int = Field(32, ge=1, le=1024)
    live_sessions: int = Field(5000, ge=1)
    idle_seconds: float = Field(300.0, gt=0)
    # The seconds in which a body must arrive, and the entries of the audit log that one request checks.
    arrival_seconds: float = Field(15.0, gt=0)
    checked_entries: int = Field(20_000, ge=1)


def default_database() -> str:
    """The address of an SQLite file in the user's folder for the data of programs."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return f"sqlite:///{Path(base) / 'keydyn' / 'service.db'}"
