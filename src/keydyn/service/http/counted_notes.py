"""Entries of the audit log for what can happen very often: one at once, then one per minute with a count.

Without a limit, requests that are refused would fill the log, and the disk.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

from keydyn.service.problems import Problem
from keydyn.service.storage import audit
from keydyn.service.storage.database import Database, DatabaseUnavailableError
from keydyn.service.wall_clock import SECOND, Clock

# For how long what happens again is only counted, and the number of things that are counted.
MINUTE, MOST = 60 * SECOND, 10_000
# Problems that are refusals: by status, and by kind where the status says less.
REFUSED, REFUSED_KINDS = (401, 403, 413, 429), ("not-typing",)


class _Noted(NamedTuple):
    """What happened, to the tenant whose log says so."""

    tenant_id: str
    actor: str
    action: str
    kind: str


class CountedNotes:
    """What one process counts; threads may share it."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._lock = threading.Lock()
        # When an entry was last written, and how often it has happened since.
        self._since: dict[_Noted, tuple[int, int]] = {}

    def refused(self, tenant_id: str, actor: str, problem: Problem) -> None:
        """Note that a request was refused, if this problem is a refusal."""
        if problem.status in REFUSED or problem.kind in REFUSED_KINDS:
            self.note(tenant_id, actor, "request.refused", problem.kind)

    def note(self, tenant_id: str, actor: str, action: str, kind: str = "") -> None:
        """Note that something happened: with an entry now, or in the next minute's."""
        noted, now = _Noted(tenant_id, actor, action, kind), self._clock()
        with self._lock:
            at, count = self._since.get(noted, (None, 0))
            if at is not None and 0 <= now - at < MINUTE:
                self._since[noted] = at, count + 1
                return
            if at is None and len(self._since) >= MOST:
                return
            self._since[noted] = now, 0
        self._write(noted, now, count + 1)

    def flush(self, everything: bool = False) -> None:
        """Write what was counted in minutes that are over, or everything."""
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
            # Not waited for: a refusal costs its sender's time, not the service's.
            self._database.submit(lambda connection: audit.append(connection, noted.tenant_id, entry))
        except DatabaseUnavailableError:
            return
