"""Metrics show the present state, not the last one that was counted."""

from __future__ import annotations

from keydyn.service.metrics import Metrics


def test_jobs_that_wait_no_longer_are_counted_as_none():
    metrics = Metrics()
    assert b'keydyn_waiting_jobs{kind="fit"} 3.0' in metrics.page(0, {"fit": 3})
    page = metrics.page(0, {"webhook": 1})
    assert b'keydyn_waiting_jobs{kind="fit"} 0.0' in page
    assert b'keydyn_waiting_jobs{kind="webhook"} 1.0' in page
