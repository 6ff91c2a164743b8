"""Running jobs in threads, which lease one job after another and try failed ones again later."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from random import SystemRandom

from sqlalchemy import Connection, event

from keydyn.service.jobs import queue
from keydyn.service.jobs.periodic import Periodic
from keydyn.service.jobs.queue import FARTHEST, LEASE, Job, Lease
from keydyn.service.storage.database import Database, DatabaseUnavailableError
from keydyn.service.storage.sealing import MasterKeys
from keydyn.service.wall_clock import SECOND, Clock

Handler = Callable[[Job], None]
# Called with a kind and the outcome of one attempt: "done", "failed" or "dropped".
Observer = Callable[[str, str], None]
# The first delay after a failure, doubled each time up to `FARTHEST`. All attempts together take about a day.
FIRST_DELAY, ATTEMPTS = 5 * SECOND, 42
# The interval in seconds at which threads look for jobs that other processes have enqueued.
POLL_S = 2.0

logger = logging.getLogger(__name__)


class JobRunner:
    """Runs jobs of the kinds that have handlers, in threads of this process.

    A handler runs outside of any transaction. It may be called again for a job that it has already done,
    after a crash for instance, and must then do no harm. If it raises an exception, the job is tried again
    later.

    Parameters
    ----------
    threads : the number of threads for each kind, by default 1. Kinds do not wait for each other, and one
        tenant never has more than a quarter of the threads of a kind, or one if that is less
    """

    def __init__(
        self,
        database: Database,
        handlers: Mapping[str, Handler],
        keys: MasterKeys,
        clock: Clock,
        *,
        threads: Mapping[str, int] | None = None,
        observe: Observer = lambda kind, outcome: None,
    ) -> None:
        self._database, self._handlers, self._keys, self._clock = database, dict(handlers), keys, clock
        self._observe, self._poll_s = observe, POLL_S
        counts = {kind: (threads or {}).get(kind, 1) for kind in handlers}
        self._shares = {kind: max(1, count // 4) for kind, count in counts.items()}
        self._served: dict[str, str] = {}
        # The kinds that were due when the database was last asked.
        self._looking, self._looked, self._due = threading.Lock(), -math.inf, frozenset[str]()
        self._stopping = False
        self._awake = {kind: threading.Event() for kind in handlers}
        self._leases: dict[int, Lease] = {}
        self._changing_leases = threading.Lock()
        # Threads of a kind take jobs one at a time, because each must know what the others have taken.
        self._taking = {kind: threading.Lock() for kind in handlers}
        self._keeper = Periodic("job-leases", self._prolong, LEASE / SECOND / 3)
        self._threads = [
            threading.Thread(target=self._run, args=[kind], name=f"keydyn-job-{kind}-{number}", daemon=True)
            for kind, count in counts.items()
            for number in range(count)
        ]

    def start(self, poll_s: float = POLL_S) -> None:
        """Begin to take jobs; look every `poll_s` seconds for those that other processes have enqueued."""
        self._poll_s = poll_s
        event.listen(self._database.engine, "commit", self._committing)
        self._keeper.start()
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_s: float = 10) -> None:
        """Take no more jobs, and wait for those that are running.

        Jobs that are not done after `timeout_s` keep their lease; another process takes them when it ends.
        """
        self._stopping = True
        for awake in self._awake.values():
            awake.set()
        until = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        self._keeper.stop()
        event.remove(self._database.engine, "commit", self._committing)

    def _committing(self, connection: Connection) -> None:
        # Called just before the commit: a thread that wakes up takes jobs in a change of its own, which comes
        # later.
        for kind in connection.info.pop(queue.ENQUEUED, ()):
            if kind in self._awake:
                self._awake[kind].set()

    def _run(self, kind: str) -> None:
        awake, reachable, look = self._awake[kind], True, False
        last: Future[bool] | None = None
        while not self._stopping:
            try:
                while not self._stopping and (look or self._is_due(kind)):
                    ended = self._run_one(kind)
                    if ended is None:
                        break
                    look, last = True, ended
                reachable = True
            except DatabaseUnavailableError:
                if reachable:
                    logger.warning("%s jobs: the database is unavailable; waiting for it", kind)
                reachable = False
            except Exception as error:
                logger.error("%s jobs: %s; continuing", kind, type(error).__name__)
            look = awake.wait(self._poll_s * SystemRandom().uniform(0.75, 1.25))
            awake.clear()
            if self._stopping:
                # Another thread of this kind that was busy must wake up too.
                awake.set()
        if last is not None:
            last.exception()

    def _is_due(self, kind: str) -> bool:
        # One thread asks the database on behalf of all.
        with self._looking:
            if time.monotonic() - self._looked > self._poll_s / 2:
                with self._database.reading() as connection:
                    self._due = queue.due_kinds(connection, self._clock())
                self._looked = time.monotonic()
            return kind in self._due

    def _run_one(self, kind: str) -> Future[bool] | None:
        """Run a job; return the change that ends it, perhaps not committed yet, or None if no job is due."""
        with self._taking[kind]:
            lease = self._database.write(partial(self._take, kind=kind))
            if lease is None:
                return None
            with self._changing_leases:
                self._leases[lease.number] = lease
                self._served[kind] = lease.tenant_id
        try:
            outcome = self._attempt(lease)
        finally:
            with self._changing_leases:
                del self._leases[lease.number]
        return self._settle(lease, outcome)

    def _take(self, connection: Connection, kind: str) -> Lease | None:
        """Lease a job, preferably of another tenant than the last one, so that tenants take turns."""
        with self._changing_leases:
            running = Counter(lease.tenant_id for lease in self._leases.values() if lease.kind == kind)
        busy = {tenant for tenant, count in running.items() if count >= self._shares[kind]}
        last, now = self._served.get(kind), self._clock()
        if last is not None and (found := queue.take(connection, kind, now, {*busy, last})) is not None:
            return found
        return queue.take(connection, kind, now, busy)

    def _attempt(self, lease: Lease) -> str:
        if lease.attempt > ATTEMPTS:
            # The process that made the last attempt was killed while it ran.
            return "dropped"
        try:
            self._handlers[lease.kind](lease.opened(self._keys))
        except Exception as error:
            outcome = "dropped" if lease.attempt == ATTEMPTS else "failed"
            # The message of an error may name people or addresses; its type does not.
            what = lease.kind, lease.number, lease.tenant_id, outcome, lease.attempt, type(error).__name__
            logger.warning("%s job %d of tenant %s %s on attempt %d: %s", *what)
            return outcome
        return "done"

    def _settle(self, lease: Lease, outcome: str) -> Future[bool]:
        change: Callable[[Connection], bool]
        if outcome == "failed":
            change = partial(queue.postpone, lease=lease, due_at=self._clock() + delay(lease.attempt))
        else:
            change = partial(queue.finish, lease=lease)
        # Not waited for, so that it is committed together with the change that takes the next job. If the
        # commit fails, the lease ends and the job is done again.
        ended = self._database.submit(change)
        ended.add_done_callback(partial(self._settled, lease.kind, outcome))
        return ended

    def _settled(self, kind: str, outcome: str, settled: Future[bool]) -> None:
        if settled.exception() is None and settled.result():
            self._observe(kind, outcome)

    def _prolong(self) -> None:
        with self._changing_leases:
            leases = list(self._leases.values())
        if leases:
            self._database.write(lambda connection: queue.prolong(connection, leases, self._clock()))


def delay(attempt: int) -> int:
    """Milliseconds to wait after a failed attempt: doubled each time, and randomised so that jobs spread."""
    longest = min(FIRST_DELAY << min(attempt - 1, 30), FARTHEST)
    return round(longest * SystemRandom().uniform(0.5, 1))
