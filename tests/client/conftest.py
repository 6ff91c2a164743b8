"""A fake service for each test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from keydyn import client
from keydyn.client import calls
from tests.client.fake_service import FakeService, FakeSession
from tests.client.running_app import served

# A busy machine is no reason to send anything again.
Client = partial(client.Client, timeout_s=120.0, patience_s=120.0)


@dataclass(frozen=True)
class Running:
    """A fake service and its port."""

    service: FakeService
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def session(self) -> FakeSession:
        return self.service.session


class Switch:
    """An application that can be replaced, because starting a server for each test would take longer."""

    app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)


@pytest.fixture(scope="session")
def switch() -> Iterator[tuple[Switch, int]]:
    """A server in this process, and its port."""
    switch = Switch()
    with served(switch, ws="websockets-sansio", lifespan="off") as port:
        yield switch, port


@pytest.fixture
def fake(switch: tuple[Switch, int]) -> Running:
    """A fake service."""
    service = FakeService()
    switch[0].app = service.app
    return Running(service, switch[1])


class PassingTime:
    """A clock that only waiting moves, so that a busy machine has no influence."""

    def __init__(self) -> None:
        self._now = 0.0

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds


@pytest.fixture
def passing_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the time between attempts pass at once."""
    monkeypatch.setattr(calls, "time", PassingTime())
    monkeypatch.setattr(calls, "LONGEST_DELAY_S", 5.0)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make retries immediate."""
    monkeypatch.setattr(calls, "FIRST_DELAY_S", 0.001)
    monkeypatch.setattr(calls, "LONGEST_DELAY_S", 0.01)
