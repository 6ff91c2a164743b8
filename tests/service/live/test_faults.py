"""Faults around live sessions: the database, slow and silent clients, limits, replaced templates."""

from __future__ import annotations

import json
import math
import socket
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import select

from keydyn.decisions.watching import playback
from keydyn.decisions.watching.watch import WatchedPool
from keydyn.decisions.watching.watched import Watching
from keydyn.service.jobs.periodic import expire
from keydyn.service.live.peer import Peer
from keydyn.service.storage.database import Database, DatabaseUnavailableError
from keydyn.service.storage.tables import watch_sessions
from keydyn.service.wall_clock import DAY
from tests.service.live.world import (
    PEOPLE,
    QUICK,
    Server,
    admit,
    frame,
    handshake,
    make_database,
    session_of,
    undisturbed,
)
from tests.waiting import PATIENCE, wait_until


@pytest.fixture
def database(tmp_path):
    found = make_database(f"sqlite:///{tmp_path}/service.db")
    yield found
    found.close()


class Broken(Database):
    """A database that is gone while `gone` is set."""

    gone = False

    def submit(self, change):
        if not self.gone:
            return super().submit(change)

        def failing(connection):
            raise DatabaseUnavailableError("gone")

        return super().submit(failing)


@pytest.fixture
def broken(tmp_path, database):
    found = Broken(f"sqlite:///{tmp_path}/service.db")
    yield found
    found.close()


def test_the_database_is_gone_and_comes_back(broken, other_server):
    """Sessions go on, nothing more is durable; afterwards everything is."""
    rows = session_of(PEOPLE[0])
    with Server(broken) as server, server.connect() as talk:
        talk.asked(1, rows[:10])
        wait_until(lambda: talk.asked(1, rows[:1])["durable"] == 10)
        broken.gone = True
        talk.asked(11, rows[10:40])
        wait_until(lambda: server.meter.counts.get("not_saved", 0) >= 1)
        found = talk.asked(41, rows[40:60])
        assert found["durable"] == 10
        np.testing.assert_allclose(found["trust"], undisturbed(PEOPLE[0], rows[:60])[0][40:], rtol=1e-12)
        # No new client is let in, and each hears why.
        late = server.connect(PEOPLE[1])
        assert late.welcome["status"] == 503
        assert late.close_code() == 1013
        broken.gone = False
        wait_until(lambda: talk.asked(1, rows[:1])["durable"] == 60)
        talk.drop()
        with other_server.connect(PEOPLE[0], talk.welcome["session"]) as again:
            assert again.welcome["durable"] == 60


@pytest.fixture
def other_server(database):
    with Server(database) as found:
        yield found


def test_a_lock_is_not_told_before_it_is_durable(broken, database):
    rows = session_of((PEOPLE[0], PEOPLE[1]))
    trust, _, at = undisturbed(PEOPLE[0], rows)
    with Server(broken) as server, server.connect() as talk:
        talk.asked(1, rows[: at - 5][:100])
        talk.asked(101, rows[100 : at - 5])
        broken.gone = True
        talk.keys(at - 4, rows[at - 5 : at + 5])
        wait_until(lambda: [live.event for live in server.engine._live.values()] == ["locked"])
        tried = server.meter.counts.get("not_saved", 0)
        wait_until(lambda: server.meter.counts.get("not_saved", 0) > tried + 1)
        with pytest.raises(TimeoutError):
            talk.hear(0)
        with database.reading() as connection:
            assert connection.execute(select(watch_sessions.c.locked_at)).scalar_one() is None
        broken.gone = False
        found = talk.hear()
        assert found["locked"]
        np.testing.assert_allclose(found["trust"], trust[at - 5 :], rtol=1e-12)
        lock = talk.hear()
        assert (lock["type"], lock["at"]) == ("lock", at)


def test_what_cannot_be_stored_for_too_long_ends_the_connection(broken):
    with Server(broken, replace(QUICK, not_durable_s=0.4)) as server:
        talk = server.connect()
        broken.gone = True
        talk.asked(1, session_of(PEOPLE[0])[:10])
        problem = talk.hear()
        assert problem["problem"] == "urn:keydyn:problem:not-durable"
        assert talk.close_code() == 1013
        broken.gone = False
        # What it had is stored after all.
        wait_until(lambda: not server.engine._leaving)
        with server.connect(session=talk.welcome["session"]) as again:
            assert again.welcome["durable"] == 10


def test_hooks_run_inside_the_change_that_stores_the_event(database):
    events, failing = [], [True]

    def hook(connection, event):
        if event.what == "opened":
            return
        row = connection.execute(select(watch_sessions).where(watch_sessions.c.id == event.session_id)).one()
        assert (row.locked_at is not None) == (event.what == "locked")
        if failing:
            failing.pop()
            raise ValueError("once")
        events.append(event)

    rows = session_of((PEOPLE[0], PEOPLE[1]))
    at = undisturbed(PEOPLE[0], rows)[2]
    with Server(database, hook=hook) as server, server.connect() as talk:
        talk.asked(1, rows[:100])
        assert talk.asked(101, rows[100 : at + 3])["locked"]
        assert talk.hear()["type"] == "lock"
        talk.say({"type": "unlock"})
        assert talk.hear() == {"type": "unlocked"}
    first, second = events
    assert (first.what, second.what) == ("locked", "unlocked")
    whose = "tenant", PEOPLE[0], talk.welcome["session"]
    assert (first.tenant_id, first.user_id, first.session_id) == whose
    assert (first.keystroke, second.keystroke) == (at, at + 3)


def test_who_sends_nothing_is_let_go(database):
    with Server(database, replace(QUICK, idle_s=0.3)) as server:
        assert server.connect().close_code() == 4408
    with (
        Server(database, replace(QUICK, hello_s=0.3)) as server,
        socket.create_connection(("127.0.0.1", server.port)) as silent,
    ):
        silent.sendall(handshake(server.port))
        heard = b""
        while b"no-hello" not in heard:
            more = silent.recv(4096)
            assert more
            heard += more


def test_who_does_not_read_is_let_go_and_nobody_else_notices(database, monkeypatch):
    # What is sent repeats itself: locked, it would hardly be answered.
    monkeypatch.setattr(playback, "LIMIT", math.inf)
    rows = session_of(PEOPLE[1])
    with (
        Server(database, replace(QUICK, slow_s=0.5, keystrokes_per_s=1e9)) as server,
        server.connect(PEOPLE[1]) as honest,
    ):
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(handshake(server.port))
        assert b" 101 " in slow.recv(4096)
        slow.sendall(frame(b'{"type":"hello"}'))
        wait_until(lambda: len(server.engine) == 2)
        # Longer than the service needs to find out, on a busy machine too.
        slow.settimeout(PATIENCE)
        typed = json.dumps([[*row] for row in session_of(PEOPLE[0])[:100]]).encode()
        sent = threading.Event()

        def flood():
            first = 1
            while not sent.is_set():
                try:
                    slow.sendall(frame(b'{"type":"keys","first":%d,"keys":%s}' % (first, typed)))
                except OSError:
                    return
                first += 100

        thread = threading.Thread(target=flood)
        thread.start()
        for n in range(0, 60, 5):
            assert honest.asked(n + 1, rows[n : n + 5])["last"] == n + 5
        wait_until(lambda: len(server.engine) == 1)
        assert server.meter.counts["closed_4429"] == 1
        assert honest.asked(61, rows[60:65])["last"] == 65
        sent.set()
        # Closing alone would not end what waits to be sent.
        with suppress(OSError):
            slow.shutdown(socket.SHUT_RDWR)
        slow.close()
        thread.join()


def test_who_vanishes_without_a_word_is_let_go(database):
    """Half-open: nothing comes any more, and nothing says so."""
    with Server(database, replace(QUICK, idle_s=0.4)) as server:
        gone = socket.create_connection(("127.0.0.1", server.port))
        gone.sendall(handshake(server.port))
        assert b" 101 " in gone.recv(4096)
        keys = json.dumps(session_of(PEOPLE[0])[:7]).encode()
        # At once: a busy machine could let it go in between.
        gone.sendall(frame(b'{"type":"hello"}') + frame(b'{"type":"keys","first":1,"keys":%s}' % keys))

        def stored():
            with database.reading() as connection:
                return connection.execute(select(watch_sessions.c.sequence)).scalar()

        wait_until(lambda: stored() == 7 and not len(server.engine) and not server.engine._leaving)
        assert server.meter.counts["closed_4408"] == 1
        gone.close()


def test_who_sends_more_than_anybody_types_is_read_more_slowly(database):
    rows = session_of(PEOPLE[0])
    with Server(database, replace(QUICK, keystrokes_per_s=100.0, burst=50.0)) as server:
        talk = server.connect()
        began = time.monotonic()
        for n in range(0, 150, 10):
            talk.keys(n + 1, rows[n : n + 10])
        found = [talk.hear() for _ in range(15)]
        # A hundred keystrokes more than may come at once; the last frame is read before it is paid for.
        assert time.monotonic() - began >= 0.9
        assert [one["last"] for one in found] == list(range(10, 151, 10))
        talk.drop()


def test_there_is_a_limit_to_sessions(database):
    with (
        Server(database, replace(QUICK, sessions=4, sessions_per_user=2)) as server,
        ExitStack() as open_ones,
    ):
        for user in (0, 0, 1, 1):
            open_ones.enter_context(server.connect(PEOPLE[user]))
        for user in (0, 2):
            refused = server.connect(PEOPLE[user])
            assert refused.welcome["status"] == 429
            assert refused.close_code() == 4429


def test_eight_frames_are_in_flight_at_most(database, monkeypatch):
    """While nothing is judged, no more is read."""
    rows, in_flight, took, go_on = session_of(PEOPLE[0]), [], Peer.took, threading.Event()

    def noted(self, keystrokes=1):
        took(self, keystrokes)
        in_flight.append(self._in_flight)

    monkeypatch.setattr(Peer, "took", noted)
    with Server(database) as server, server.connect() as talk:
        server.engine._model.ask(go_on.wait)
        for n in range(30):
            talk.keys(n + 1, rows[n : n + 1])
        wait_until(lambda: in_flight and in_flight[-1] == 8)
        go_on.set()
        for n in range(30):
            assert talk.hear()["last"] == n + 1
    assert max(in_flight) == 8
    assert len(in_flight) == 30


def test_another_template_restarts_the_session_with_the_same_numbers(database):
    rows = session_of(PEOPLE[2])
    with Server(database) as server, server.connect(PEOPLE[2]) as talk:
        talk.asked(1, rows[:50])
        talk.say({"type": "bye"})
        assert talk.hear()["durable"] == 50

    def enrolled_again(*arrival):
        other = admit(PEOPLE[3], *arrival[1:])
        return replace(admit(*arrival), enrolled=other.enrolled, left_out=other.left_out)

    with Server(database, admit=enrolled_again) as server:
        again = server.connect(PEOPLE[2], talk.welcome["session"])
        assert again.welcome["restarted"]
        assert again.welcome["durable"] == 50
        found = again.asked(51, rows[:30])
        np.testing.assert_allclose(found["suspicion"], undisturbed(PEOPLE[3], rows[:30])[1], rtol=1e-12)
        again.drop()


def test_a_state_that_was_changed_restarts_the_session(database):
    rows = session_of(PEOPLE[2])
    with Server(database) as server:
        with server.connect(PEOPLE[2]) as talk:
            talk.asked(1, rows[:50])
            talk.say({"type": "bye"})
            talk.hear()
        database.write(
            lambda connection: connection.execute(watch_sessions.update().values(state=b"\x01" * 99))
        )
        with server.connect(PEOPLE[2], talk.welcome["session"]) as again:
            assert again.welcome["restarted"]
            assert again.asked(51, rows[:3])["last"] == 53


def test_one_session_that_cannot_be_judged_disturbs_no_other(database, monkeypatch):
    """An error of the model with one person's frame, which should not be possible."""
    real = WatchedPool.advance

    def advance(self, places, names, times):
        if "Break" in names:
            raise RuntimeError("broken")
        return real(self, places, names, times)

    monkeypatch.setattr(WatchedPool, "advance", advance)
    rows = session_of(PEOPLE[0])
    with (
        Server(database, replace(QUICK, tick_s=0.3)) as server,
        server.connect() as one,
        server.connect() as other,
    ):
        one.asked(1, rows[:10])
        # In one tick.
        other.keys(1, [["Break", 1.0, 2.0]])
        found = one.asked(11, rows[10:50])
        np.testing.assert_allclose(found["trust"], undisturbed(PEOPLE[0], rows[:50])[0][10:], rtol=1e-12)
        assert other.close_code() == 1011


def test_sessions_expire(database):
    with Server(database) as server, server.connect() as talk:
        talk.asked(1, session_of(PEOPLE[0])[:3])
    now = int(time.time() * 1000)
    assert expire(database, now)["watch_sessions"] == 0
    assert expire(database, now + 31 * DAY)["watch_sessions"] == 1
    with database.reading() as connection:
        assert connection.execute(select(watch_sessions)).first() is None


def test_sessions_watched_in_other_ways_are_apart(database):
    """Another level is another pool; the numbers do not depend on it, the lock does."""

    def stricter(user, headers, address, hello):
        found = admit(user, headers, address, hello)
        return replace(found, watching=Watching(level=0.5)) if hello.device == "phone" else found

    rows = session_of(PEOPLE[0])
    suspicion = undisturbed(PEOPLE[0], rows[:100])[1]
    at = int(np.argmax(suspicion > 0.5)) + 1
    assert suspicion.max() > 0.5
    with Server(database, admit=stricter) as server, server.connect() as usual:
        strict = server.connect(hello={"type": "hello", "device": "phone"})
        assert strict.welcome["level"] == 0.5
        usual.keys(1, rows[:100])
        assert len(strict.asked(1, rows[:100])["trust"]) == at
        found = usual.hear()
        np.testing.assert_allclose(found["suspicion"], suspicion, rtol=1e-12)
        assert not found["locked"]
        strict.drop()
