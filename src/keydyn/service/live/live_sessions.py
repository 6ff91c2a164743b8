"""All live sessions of one process, judged together in short ticks and saved together about once per second.

Everything but the model runs on the event loop. Due times are measured by the monotonic clock.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections import Counter
from contextlib import suppress

from sqlalchemy import Connection

from keydyn.decisions.watching.playback import PlaybackCheck
from keydyn.decisions.watching.watch import NotWatchableError, WatchedPool
from keydyn.decisions.watching.watched import Watching
from keydyn.service.live import frame_text
from keydyn.service.live.judging_frames import judged
from keydyn.service.live.peer import Ending, LiveLimits, Peer
from keydyn.service.live.saving import ModelThread, Saver
from keydyn.service.live.session import LOCKED, UNLOCKED, Admitted, FrameAnswer, Live, Waiting
from keydyn.service.live.session_rows import (
    Hook,
    SessionRow,
    lock_id,
    new_id,
    open_session,
    place,
    still_there,
    take_over,
)
from keydyn.service.metrics import Metrics
from keydyn.service.problems import Problem
from keydyn.service.storage.database import Database, DatabaseUnavailableError
from keydyn.service.wall_clock import Clock
from keydyn.service.wire.answers import TypedBy
from keydyn.service.wire.watch_frames import Lock, TrustFrame

log = logging.getLogger(__name__)
# The time limit for the last save when the service stops, in seconds.
LAST_SAVE = 20.0
# High thresholds for the garbage collector: each run delays all sessions, and few cycles arise here.
COLLECT = (20_000, 20, 50)


class LiveSessions:
    """The live sessions of a process; started, used and closed on the server's event loop."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        limits: LiveLimits | None = None,
        hook: Hook = lambda *_: None,
        meter: Metrics | None = None,
    ) -> None:
        self.limits = limits or LiveLimits()
        self._database, self._clock, self._meter = database, clock, meter or Metrics()
        self._model = ModelThread()
        self._hook = hook
        self._saver = Saver(database, clock, self._model, self.limits.save_s, hook, self)
        self._pools: dict[tuple[str, Watching], WatchedPool] = {}
        self._live: dict[str, Live] = {}
        # Sessions whose connections have gone but that are not yet durable, and the number of sessions that
        # are being opened, by user.
        self._leaving: set[Live] = set()
        self._joining: Counter[str] = Counter()
        self._queue: list[Waiting] = []
        self._frames = asyncio.Event()
        self._closing = False
        self._tasks: list[asyncio.Task[None]] = []

    def __len__(self) -> int:
        """The number of live sessions."""
        return len(self._live)

    async def start(self) -> None:
        """Start the tasks that judge, save and check sessions."""
        # A collection that walks through everything imported takes half a second and frees nothing.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*COLLECT)
        works = (self._judging(), self._saver.run(), self._looking_after(), self._checking())
        self._tasks = [asyncio.create_task(work) for work in works]

    async def close(self) -> None:
        """Make as much as possible durable, and disconnect all clients."""
        self._closing = True
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_SAVE):
                for live in [*self._live.values(), *self._leaving]:
                    await self._quiet(live)
                await self._saver.settled()
        for live in list(self._live.values()):
            self._end(live, Ending(frame_text.RESTARTING, "the service is restarting"))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._model.close()

    async def join(self, admitted: Admitted, client: Peer, states: bool = False) -> Live:
        """Open a session, or take one over; raise a `Problem` if that is not possible."""
        user = admitted.user_id
        self._check_room(user)
        self._joining[user] += 1
        try:
            return await self._joined(admitted, client, states)
        finally:
            self._joining[user] -= 1

    def leave(self, live: Live) -> None:
        """Let go of a session whose connection has gone, once everything of it is durable."""
        live.client = None
        if self._live.get(live.id) is live:
            del self._live[live.id]
            self._meter.live(len(self._live))
            self._leaving.add(live)
            self._let_go(live)

    def take(self, live: Live, keys: frame_text.Keys) -> None:
        """Take a frame, to be answered in its turn even if its keystrokes are known or others are missing."""
        expected = live.accepted + 1
        if keys.first > expected:
            title, detail = "Keystrokes are missing", f"the next one is number {expected}"
            self.refuse(live, Problem(409, "gap", title, detail, expected=expected))
        elif keys.last < expected:
            self._enqueue(Waiting(live, keys.first, keys.last, None, None, time.monotonic()))
        else:
            live.accepted = keys.last
            new = keys.after(expected - 1)
            self._enqueue(Waiting(live, expected, keys.last, new, None, time.monotonic()))

    def refuse(self, live: Live, problem: Problem) -> None:
        """Answer a frame with a problem, in its turn."""
        self._enqueue(Waiting(live, 0, 0, None, problem, time.monotonic()))

    async def unlock(self, live: Live, lock: int | None = None) -> None:
        """Unlock a session, whose trust starts afresh; durable on return, unless the session is lost.

        If the number of a `lock` is given, raise a `Problem` unless that is the session's current lock.
        """
        await self._quiet(live)
        # The lock itself must be durable first.
        await self._saver.settled([live])
        async with self._model.turn:
            if lock is not None and (live.locked_at is None or live.locks != lock):
                detail = "It was for an earlier lock, or the session is not locked."
                raise Problem(403, "lock-is-open", "This token has been used", detail)
            if live.lost or live.locked_at is None:
                return
            await self._model.run(lambda: live.pool.restart(live.place))
            await self._model.run(live.playback.restart)
            live.locked_at, live.event, live.event_keystroke = None, UNLOCKED, live.judged
            live.event_reason, live.typed = None, "unsure"
            self._saver.moved(live)
        await self._saver.settled([live])

    async def finish(self, live: Live) -> int:
        """Wait until all keystrokes that were sent are durable, and return the number of the last one."""
        await self._quiet(live)
        await self._saver.settled([live])
        return live.durable

    def _check_room(self, user: str) -> None:
        if self._closing:
            raise Problem(503, "restarting", "The service is restarting", "connect again")
        if len(self._live) + self._joining.total() >= self.limits.sessions:
            raise Problem(429, "too-many-sessions", "Too many sessions are watched", "try again later")
        own = sum(live.admitted.user_id == user for live in self._live.values()) + self._joining[user]
        if own >= self.limits.sessions_per_user:
            title = "Too many sessions of this person are watched"
            raise Problem(429, "too-many-sessions", title, f"there are already {own}; end one of them")

    async def _joined(self, admitted: Admitted, client: Peer, states: bool) -> Live:
        wanted, profile, background = admitted.session_id, admitted.profile_id, admitted.background_id
        if wanted is not None:
            await self._hand_over(wanted, profile)
        id_, now = wanted or new_id(), self._clock()

        def take(connection: Connection) -> SessionRow:
            if wanted is not None:
                return take_over(connection, id_, profile, background, now)
            self._hook(connection, admitted.event("opened", id_, now, 0))
            return open_session(connection, id_, profile, background, now)

        taken = await asyncio.wrap_future(self._database.submit(take))
        state = None
        if taken.state is not None:
            try:
                state = admitted.data_key.open(taken.state, place(id_))
            except ValueError:
                log.warning("the state of a live session cannot be opened: the session starts again")
        pool, at, playback, resumed = await self._model.run(lambda: self._into_pool(admitted, state))
        restarted = taken.state is not None and resumed is None
        live = Live(
            id=id_,
            epoch=taken.epoch,
            admitted=admitted,
            pool=pool,
            place=at,
            playback=playback,
            client=client,
            accepted=taken.sequence,
            judged=taken.sequence,
            durable=taken.sequence,
            locked_at=taken.locked_at,
            locks=taken.locks,
            restarted=restarted,
            states=states,
            typed=resumed or "unsure",
        )
        other = self._live.get(id_)
        if other is not None:
            # Two connections came at once: the one that reached the database later has the session.
            older = min(other, live, key=lambda one: one.epoch)
            if older is other:
                self._live[id_] = live
            self._lose(older, _TAKEN_OVER)
        else:
            self._live[id_] = live
        self._meter.live(len(self._live))
        self._meter.happened("restarted" if restarted else "resumed" if wanted else "opened")
        return live

    async def _hand_over(self, id_: str, profile: str) -> None:
        """Let go of a session that another connection to this process wants, and save it if time permits."""
        held = [one for one in (self._live.get(id_), *self._leaving) if one is not None and one.id == id_]
        for live in [one for one in held if one.admitted.profile_id == profile]:
            self._end(live, _TAKEN_OVER)
            with suppress(TimeoutError):
                async with asyncio.timeout(2 * self.limits.save_s):
                    await self.finish(live)

    def _lose(self, live: Live, ending: Ending) -> None:
        """Let go of a session that another connection has now, or that is gone; nothing more is written."""
        self._end(live, ending)
        if self._live.get(live.id) is live:
            del self._live[live.id]
            self._meter.live(len(self._live))
        live.lost, live.moved_at, live.event = True, None, ""
        live.held.clear()
        self._saver.forget(live)
        self._leaving.add(live)
        self._let_go(live)

    def _let_go(self, live: Live) -> None:
        """Free the pool place of a session that is leaving, if it is durable or lost."""
        if live in self._leaving and live.moved_at is None and not live.waiting and not self._closing:
            self._leaving.discard(live)
            self._model.ask(lambda: self._out_of_pool(live))

    def _end(self, live: Live, ending: Ending) -> None:
        if live.client is not None and live.client.ending is None:
            live.client.end(ending)
            self._meter.happened(f"closed_{ending.code}")

    def _into_pool(
        self, admitted: Admitted, state: bytes | None
    ) -> tuple[WatchedPool, int, PlaybackCheck, TypedBy | None]:
        """Add a session to a pool; return pool, place, playback check and, if resumed, `typed` so far."""
        key = admitted.background_id, admitted.watching
        pool = self._pools.get(key)
        playback = PlaybackCheck(admitted.enrolled.fingerprints, admitted.secret)
        if state is not None:
            try:
                state = playback.resume(state)
            except ValueError:
                state = None
        try:
            if pool is None:
                pool = self._pools[key] = WatchedPool(admitted.background, admitted.watching)
            at, resumed = pool.join(admitted.enrolled.template, admitted.left_out, state)
        except NotWatchableError as error:
            title = "Sessions of this person cannot be watched"
            raise Problem(409, "not-watchable", title, str(error)) from None
        return pool, at, playback, pool.typed(at).answer if resumed else None

    def _out_of_pool(self, live: Live) -> None:
        live.pool.leave(live.place)
        key = live.admitted.background_id, live.admitted.watching
        if len(live.pool) == 0 and self._pools.get(key) is live.pool:
            del self._pools[key]

    def _enqueue(self, frame: Waiting) -> None:
        # A client that is disconnected keeps what is not durable, and sends it again to another process.
        if not frame.live.lost and not self._closing:
            frame.live.waiting += 1
            frame.live.quiet.clear()
            self._queue.append(frame)
            self._frames.set()

    async def _quiet(self, live: Live) -> None:
        """Wait until no frame of the session is waiting to be judged."""
        while live.waiting:
            await live.quiet.wait()

    async def _judging(self) -> None:
        due = 0.0
        while True:
            await self._frames.wait()
            await asyncio.sleep(max(due - time.monotonic(), 0.0))
            async with self._model.turn:
                self._frames.clear()
                frames, self._queue = self._queue, []
                due = time.monotonic() + self.limits.tick_s
                answers = await self._model.run(lambda: judged(frames))  # noqa: B023
                for frame, answer in zip(frames, answers, strict=True):
                    self._judged(frame, answer)

    def _judged(self, frame: Waiting, answer: FrameAnswer | None) -> None:
        live = frame.live
        live.waiting -= 1
        if not live.waiting:
            live.quiet.set()
        if answer is None and not live.lost:
            self._lose(live, Ending(frame_text.BROKEN, "the session cannot continue"))
        if answer is None or live.lost:
            self._let_go(live)
            return
        if frame.keys is not None:
            live.judged = frame.last
            live.typed = answer.typed or live.typed
            if answer.locked and live.locked_at is None:
                live.locked_at, live.event = self._clock(), LOCKED
                live.event_keystroke = frame.first + len(answer.trust) - 1
                live.event_reason = answer.reason
                live.locks += 1
            self._saver.moved(live)
        if live.event:
            live.held.append(answer)
        else:
            self._answer(live, answer)

    def _answer(self, live: Live, answer: FrameAnswer) -> None:
        if live.client is None:
            return
        frame = answer.frame
        if frame.problem is not None:
            live.client.refuse(frame.problem, answers=True)
            return
        shown = TrustFrame(
            first=frame.first,
            last=frame.last,
            trust=answer.trust,
            suspicion=answer.suspicion,
            pausing=answer.pausing,
            locked=answer.locked,
            durable=live.durable,
            typed=live.typed,
            states=answer.states,
        )
        told = frame_text.coarse(shown) if live.admitted.coarse else shown
        live.client.send(frame_text.composed(told), answers=True)
        self._meter.answered(frame.last - frame.first + 1, time.monotonic() - frame.read_at)

    def lost(self, live: Live, epoch: int | None) -> None:
        """Let go of a session that another connection has now or that, if `epoch` is None, is gone."""
        self._lose(live, _GONE if epoch is None else _TAKEN_OVER)

    def not_saved(self) -> None:
        """Note that sessions could not be made durable."""
        self._meter.happened("not_saved")

    def saved(self, live: Live, event: str) -> None:
        """Note that a session is durable; send the answers that waited for its event, and report a lock."""
        if event:
            self._meter.happened(event)
            for answer in live.held:
                self._answer(live, answer)
            live.held.clear()
        if event == LOCKED and live.client is not None:
            # The reason would show the person who types how a recording was noticed.
            reason = live.event_reason if live.admitted.may_unlock else None
            decision = lock_id(live.id, live.event_keystroke)
            live.client.send(frame_text.composed(Lock(live.event_keystroke, decision, reason)))
        self._let_go(live)

    async def _looking_after(self) -> None:
        """End connections that are idle or too slow, or whose keystrokes cannot be made durable."""
        limits = self.limits
        pause = min(1.0, limits.idle_s / 4, limits.slow_s / 4, limits.not_durable_s / 4)
        while True:
            await asyncio.sleep(pause)
            now = time.monotonic()
            for live in list(self._live.values()):
                client = live.client
                if client is None:
                    continue
                if client.stuck_for(now) > limits.slow_s:
                    self._end(live, Ending(frame_text.TOO_SLOW, "answers are not read", abrupt=True))
                elif live.moved_at is not None and now - live.moved_at > limits.not_durable_s:
                    if client.ending is None:
                        detail = "connect again later, and send again what is not durable"
                        client.refuse(Problem(503, "not-durable", "Keystrokes cannot be stored", detail))
                    self._end(live, Ending(frame_text.LATER, "nothing can be stored"))
                elif now - client.heard_at > limits.idle_s and not live.waiting:
                    self._end(live, Ending(frame_text.IDLE, "nothing was sent"))

    async def _checking(self) -> None:
        """End sessions whose token, key or person is no longer valid."""
        while True:
            await asyncio.sleep(self.limits.check_s)
            held, now = list(self._live.values()), self._clock()
            try:
                there, valid = await asyncio.to_thread(self._still_there, held, now)
            except DatabaseUnavailableError:
                continue
            for live in held:
                expires = live.admitted.expires_at
                if live.id not in there:
                    self._lose(live, _GONE)
                elif live.admitted.key_id not in valid:
                    self._end(live, _KEY_REVOKED)
                elif expires is not None and now >= expires:
                    self._end(live, _TOKEN_EXPIRED)

    def _still_there(self, held: list[Live], now: int) -> tuple[set[str], set[str]]:
        if not held:
            return set(), set()
        with self._database.reading() as connection:
            ids, keys = {live.id for live in held}, {live.admitted.key_id for live in held}
            return still_there(connection, ids, keys, now)


_TAKEN_OVER = Ending(frame_text.TAKEN_OVER, "another connection has the session")
_GONE = Ending(frame_text.NOT_FOUND, "the session no longer exists")
_KEY_REVOKED = Ending(frame_text.NOT_AUTHENTICATED, "the API key is no longer valid")
_TOKEN_EXPIRED = Ending(frame_text.NOT_AUTHENTICATED, "the token has expired")
