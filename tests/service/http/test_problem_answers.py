"""The answers that report problems, for exceptions wherever they come from."""

from __future__ import annotations

import asyncio
import logging

import httpx
from fastapi import FastAPI, Request

from keydyn.service.http.problem_answers import ANSWERS, add_handlers
from keydyn.service.metrics import Metrics
from keydyn.service.storage.database import DatabaseUnavailableError


def test_without_a_database_the_answer_asks_to_try_again_and_the_log_names_the_request(caplog):
    app = FastAPI()
    app.state.metrics = Metrics()
    add_handlers(app)

    @app.get("/")
    def fail(request: Request) -> None:
        request.state.request_id = "r-1"
        raise DatabaseUnavailableError("secret address of the database")

    async def asked() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            return await client.get("/")

    with caplog.at_level(logging.ERROR, logger="keydyn.service"):
        answer = asyncio.run(asked())
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert answer.json()["type"] == "urn:keydyn:problem:database-unavailable"
    assert caplog.messages == ["request r-1: the database is not available"]
    assert "secret" not in answer.text
    # The OpenAPI document says that any route may answer so.
    assert answer.status_code in ANSWERS
