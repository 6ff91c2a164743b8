"""Audit log entries for frequent events: one at once, then one per minute with the number of repetitions.

Without this limit, refused requests could fill the log, and the disk.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

from keydyn.service.problems import Problem
from keydyn.service.storage import audit
from keydyn.service.storage.database import Database, DatabaseUnavailableError
from keydyn.service.wall_clock import SECOND, Clock

# How long repetitions of an event are only counted, and the largest number of events that are counted.
MINUTE, MOST = 60 * SECOND, 10_000
# Problems that are refusals, by status, or by kind where the status does not tell.
REFUSED, REFUSED_KINDS = (401, 403, 413, 429), ("not-typing",)


class _Noted(NamedTuple):
    """An event to note: the tenant whose log it goes into, the actor, the action and its kind."""

    tenant_id: str
    actor: str
    action: str
    kind: str


class CountedNotes:
    """The events that one process notes and counts, at most `most` at a time; threads may share it."""

    def __init__(self, database: Database, clock: Clock, most: int = MOST) -> None:
        self._database, self._clock, self._most = database, clock, most
        self._lock = threading.Lock()
        # For each event, when an entry was last written, and the repetitions since then.
        self._since: dict[_Noted, tuple[int, int]] = {}

    def refused(self, tenant_id: str, actor: str, problem: Problem) -> None:
        """Note that a request was refused, if this problem is a refusal."""
        if problem.status in REFUSED or problem.kind in REFUSED_KINDS:
            self.note(tenant_id, actor, "request.refused", problem.kind)

    def note(self, tenant_id: str, actor: str, action: str, kind: str = "") -> None:
        """Note an event, with an entry of its own now or as part of the count after a minute."""
        noted, now = _Noted(tenant_id, actor, action, kind), self._clock()
        with self._lock:
            at, count = self._since.get(noted, (None, 0))
            if at is not None and 0 <= now - at < MINUTE:
                self._since[noted] = at, count + 1
                return
            if at is None and len(self._since) >= self._most:
                return
            self._since[noted] = now, 0
        self._write(noted, now, count + 1)

    def flush(self, everything: bool = False) -> None:
        """Write the counts of minutes that are over, or all counts."""
        now = self._clock()
        with self._lock:
            over = {
                noted: count
                for noted, (at, count) in self._since.items()
                if everything or not 0 <= now - at < MINUTE
            }
            for noted in over:
                del self._since[noted]
        for noted, count in over.items():
            if count:
                self._write(noted, now, count)

    def _write(self, noted: _Noted, now: int, count: int) -> None:
        details = {"count": count, **({"kind": noted.kind} if noted.kind else {})}
        entry = audit.Entry(now, noted.actor, noted.action, details=details)
        try:
            # Not waited for, so that refusing a request takes the service no time.
            self._database.submit(lambda connection: audit.append(connection, noted.tenant_id, entry))
        except DatabaseUnavailableError:
            return
