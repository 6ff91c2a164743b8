"""Metrics for Prometheus, which name neither tenants nor people."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

# The variable that names the folder in which several processes count together; set before this is imported.
SHARED = "PROMETHEUS_MULTIPROC_DIR"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The counters of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        # Kinds of jobs that have ever waited: their number is still shown when it is 0 again.
        self._kinds: set[str] = set()
        own: dict[str, Any] = {"namespace": "keydyn", "registry": self.registry}
        self._requests = Counter("requests", "Requests.", ["method", "route", "status"], **own)
        self._seconds = Histogram(
            "request_seconds", "Time to answer a request.", ["route"], buckets=SECONDS, **own
        )
        self.decisions = Counter("decisions", "Claims decided.", ["answer"], **own)
        self.enrolments = Counter("enrolments", "Samples enrolled.", **own)
        self.errors = Counter("errors", "Answers with a problem.", ["kind"], **own)
        self.jobs = Counter("jobs", "Work done off the request path.", ["kind", "outcome"], **own)
        self.session_events = Counter("session_events", "What happened to live sessions.", ["what"], **own)
        self.keystrokes = Counter("watched_keystrokes", "Keystrokes watched.", **own)
        self._frames = Histogram(
            "frame_seconds", "From a frame of keystrokes to its answer.", buckets=SECONDS, **own
        )
        together = own | {"multiprocess_mode": "livesum"}
        self.live_sessions = Gauge("live_sessions", "Sessions that are connected.", **together)
        self.queue = Gauge("queue", "Changes that wait for the database.", **together)
        self.running = Gauge("running_requests", "Requests being answered.", **together)
        self._waiting = Gauge(
            "waiting_jobs", "Work that waits to be done.", ["kind"], multiprocess_mode="mostrecent", **own
        )

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def live(self, sessions: int) -> None:
        """Note the number of sessions that are connected now."""
        self.live_sessions.set(sessions)

    def answered(self, keystrokes: int, seconds: float) -> None:
        """Count a frame that was answered."""
        self.keystrokes.inc(keystrokes)
        self._frames.observe(seconds)

    def happened(self, what: str) -> None:
        """Count an event of a session."""
        self.session_events.labels(what).inc()

    def page(self, queued: int, waiting: Mapping[str, int]) -> bytes:
        """The page with the metrics of all processes, for Prometheus."""
        self.queue.set(queued)
        self._kinds.update(waiting)
        for kind in self._kinds:
            self._waiting.labels(kind).set(waiting.get(kind, 0))
        registry = self.registry
        if SHARED in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
