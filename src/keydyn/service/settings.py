"""What a tenant may choose, and what whoever runs the service decides."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

Level = Literal["low", "standard", "high"]
# One stranger in ten thousand is the least that the calibration's tables can speak of.
Rate = Annotated[float, Field(strict=True, ge=0.0001, le=0.5, allow_inf_nan=False)]
Origin = Annotated[str, Field(pattern=r"^https?://[A-Za-z0-9.\-\[\]:]{1,253}$", max_length=300)]


class Levels(BaseModel):
    """The largest share of strangers to accept, by security level.

    Examples
    --------
    >>> from keydyn.service.settings import Levels
    >>> Levels(standard=0.005)
    Levels(low=0.05, standard=0.005, high=0.001)
    """

    # In the OpenAPI document without the example.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={"description": "The largest share of strangers to accept, by security level."},
    )

    low: Rate = 0.05
    standard: Rate = 0.01
    high: Rate = 0.001

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low >= self.standard >= self.high:
            raise ValueError("a higher level must not accept more strangers than a lower one")
        return self


class TenantSettings(BaseModel):
    """What a tenant may choose.

    Examples
    --------
    >>> from keydyn.service.settings import TenantSettings
    >>> settings = TenantSettings(samples_needed=3, origins=("https://Shop.example.com",))
    >>> settings.origins, settings.retention_days
    (('https://shop.example.com',), 30)
    """

    # In the OpenAPI document without the example.
    model_config = ConfigDict(
        frozen=True, extra="forbid", json_schema_extra={"description": "What a tenant may choose."}
    )

    levels: Levels = Levels()
    samples_needed: int = Field(
        5, strict=True, ge=1, le=50, description="Samples after which enrolment is complete."
    )
    updating: bool = Field(
        True, strict=True, description="Templates follow samples that were accepted with confidence."
    )
    retention_days: int = Field(
        30, strict=True, ge=0, le=3650, description="Days for which raw samples are kept."
    )
    lockouts_per_hour: float = Field(
        1.0,
        strict=True,
        ge=0.001,
        le=60,
        allow_inf_nan=False,
        description="How often a watched session may be locked although the right person types.",
    )
    learn_from_people: bool = Field(
        False,
        strict=True,
        description="People who are enrolled may enter the tenant's own population and cohort.",
    )
    origins: tuple[Origin, ...] = Field(
        (), max_length=20, description="Where the tenant's own pages come from, as browsers name it."
    )

    @field_validator("origins")
    @classmethod
    def _plain(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(origin.rstrip("/").lower() for origin in origins)


class Deployment(BaseModel):
    """What whoever runs the service decides; workers receive it as JSON.

    Examples
    --------
    >>> from keydyn.service.settings import Deployment
    >>> deployment = Deployment(database="sqlite:///service.db", workers=2)
    >>> deployment.host, deployment.port
    ('127.0.0.1', 8421)
    """

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


def default_database() -> str:
    """SQLite in the folder where programs keep what belongs to their user.

    Examples
    --------
    >>> from keydyn.service.settings import default_database
    >>> default_database().endswith("/keydyn/service.db")
    True
    """
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return f"sqlite:///{Path(base) / 'keydyn' / 'service.db'}"
