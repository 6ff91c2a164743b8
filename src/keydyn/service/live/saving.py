"""Making sessions durable: all that changed about once per second, those that are locked at once."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from sqlalchemy import Connection

from keydyn.service.live.session import Live
from keydyn.service.live.session_rows import Hook, SessionRow, place, save
from keydyn.service.storage.database import Database, DatabaseUnavailableError
from keydyn.service.wall_clock import Clock

if TYPE_CHECKING:
    from keydyn.service.live.live_sessions import LiveSessions

Result = TypeVar("Result")
log = logging.getLogger(__name__)
# The sessions that another connection holds now, with their new epochs; None for those that no longer exist.
Lost = dict[str, int | None]


class ModelThread:
    """The only thread that touches pools. Hold `turn` while pools and live sessions must agree."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="keydyn-watch")

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run work in the thread, after all earlier work, and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def ask(self, work: Callable[[], object]) -> None:
        """Run work in the thread without waiting for it."""
        self._thread.submit(work)

    def close(self) -> None:
        """Finish all waiting work, and end the thread."""
        self._thread.shutdown()


class Snapshot(NamedTuple):
    """A session's row and pending event at one moment."""

    live: Live
    event: str
    row: SessionRow


class Saver:
    """Makes sessions durable: all that changed about once per second, those with an event at once."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        model: ModelThread,
        every: float,
        hook: Hook,
        listener: LiveSessions,
    ) -> None:
        self._database, self._clock, self._model, self._every = database, clock, model, every
        self._hook, self._listener = hook, listener
        self._moved: set[Live] = set()
        self._urgent = asyncio.Event()

    def moved(self, live: Live) -> None:
        """Note that a session has changed and must be saved."""
        if live.moved_at is None:
            live.moved_at = time.monotonic()
        self._moved.add(live)
        if live.event:
            self._urgent.set()

    def forget(self, live: Live) -> None:
        """Save nothing more of this session."""
        self._moved.discard(live)
        self._settle(live)

    async def settled(self, many: Iterable[Live] | None = None) -> None:
        """Wait until these sessions, by default all, are durable or lost."""
        waiting = []
        for live in set(self._moved if many is None else many) & self._moved:
            done = asyncio.get_running_loop().create_future()
            live.settled.append(done)
            waiting.append(done)
        if waiting:
            self._urgent.set()
            await asyncio.gather(*waiting)

    async def run(self) -> None:
        """Save until cancelled."""
        due = time.monotonic() + self._every
        while True:
            # Python 3.11's `wait_for` forgets that it was cancelled if the event comes meanwhile.
            with suppress(TimeoutError):
                async with asyncio.timeout(max(due - time.monotonic(), 0.0)):
                    await self._urgent.wait()
            self._urgent.clear()
            all_of_them = time.monotonic() >= due
            if all_of_them:
                due = time.monotonic() + self._every
            some = [live for live in self._moved if all_of_them or live.event or live.settled]
            if some and not await self._save(some):
                self._listener.not_saved()
                due = time.monotonic() + self._every
                await asyncio.sleep(self._every / 2)

    async def _save(self, some: list[Live]) -> bool:
        """Make these sessions durable as they are now; return False if that failed for any."""
        async with self._model.turn:
            began, now = time.monotonic(), self._clock()
            snapshots = await self._model.run(lambda: _snapshots(some))
        plain = [one for one in snapshots if not one.event]
        submit, rows = self._database.submit, [one.row for one in plain]
        changes = [(plain, submit(lambda connection: save(connection, rows, now)))]
        # Each event has a change of its own, so that a failure of its hook affects no other session.
        changes += [([one], submit(self._event(one, now))) for one in snapshots if one.event]
        waiting = [asyncio.wrap_future(done) for _, done in changes]
        found = await asyncio.gather(*waiting, return_exceptions=True)
        for (those, _), lost in zip(changes, found, strict=True):
            if isinstance(lost, BaseException):
                _report(lost)
                continue
            for one in those:
                self._saved(one, began, lost)
        return not any(isinstance(lost, BaseException) for lost in found)

    def _event(self, one: Snapshot, now: int) -> Callable[[Connection], Lost]:
        live = one.live
        event = live.admitted.event(one.event, live.id, now, live.event_keystroke, live.event_reason)

        def change(connection: Connection) -> Lost:
            lost = save(connection, [one.row], now)
            if not lost:
                self._hook(connection, event)
            return lost

        return change

    def _saved(self, one: Snapshot, began: float, lost: Lost) -> None:
        live = one.live
        if live.lost:
            return
        if live.id in lost:
            self._listener.lost(live, lost[live.id])
            return
        live.durable = one.row.sequence
        if one.event:
            live.event = ""
        if live.judged == one.row.sequence and not live.event:
            live.moved_at = None
            self.forget(live)
        else:
            live.moved_at = began
        self._listener.saved(live, one.event)

    def _settle(self, live: Live) -> None:
        for done in live.settled:
            if not done.done():
                done.set_result(None)
        live.settled.clear()


def _snapshots(some: list[Live]) -> list[Snapshot]:
    by_pool: dict[object, list[Live]] = {}
    for live in some:
        by_pool.setdefault(live.pool, []).append(live)
    found = []
    for many in by_pool.values():
        states = many[0].pool.states([live.place for live in many])
        for live, state in zip(many, states, strict=True):
            sealed = live.admitted.data_key.seal(live.playback.packed_with(state), place(live.id))
            row = SessionRow(live.id, live.epoch, live.judged, live.locked_at, live.locks, sealed)
            found.append(Snapshot(live, live.event, row))
    return found


def _report(error: BaseException) -> None:
    if isinstance(error, DatabaseUnavailableError):
        log.warning("live sessions could not be saved: the database is not available")
    else:
        log.error("live sessions could not be saved", exc_info=error)
