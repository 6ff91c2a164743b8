"""Signatures of reports: receivers recognise those of the service, and no others."""

from __future__ import annotations

import time

import pytest

from keydyn.client import verify_signature
from keydyn.service.jobs.delivery import signature

BODY = b'{"id":"e1","type":"session.locked"}'


def test_what_the_service_signs_is_known() -> None:
    now = int(time.time())
    assert verify_signature("whsec_x", now, BODY, signature("whsec_x", now, BODY))
    assert verify_signature("whsec_x", str(now), BODY, signature("whsec_x", now, BODY))


def test_anything_that_was_changed_is_not() -> None:
    now = int(time.time())
    signed = signature("whsec_x", now, BODY)
    assert not verify_signature("whsec_y", now, BODY, signed)
    assert not verify_signature("whsec_x", now + 1, BODY, signed)
    assert not verify_signature("whsec_x", now, BODY + b" ", signed)
    assert not verify_signature("whsec_x", now, BODY, signed.upper())
    assert not verify_signature("whsec_x", now, BODY, signed.removeprefix("v1="))


@pytest.mark.parametrize("timestamp", ["", "soon", "-1", "1e9", "١٢", " 1"])
def test_what_is_no_timestamp(timestamp: str) -> None:
    assert not verify_signature("whsec_x", timestamp, BODY, "v1=ä")


@pytest.mark.parametrize(
    ("age", "known"), [(0, True), (299, True), (301, False), (-299, True), (-301, False)]
)
def test_old_reports_are_refused(age: int, known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_000_000.0)
    sent = 1_000_000 - age
    assert verify_signature("whsec_x", sent, BODY, signature("whsec_x", sent, BODY)) is known
