"""People whose typing is watched, a database with their rows, and a server for them."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from functools import cache

import pandas as pd
import uvicorn
from fastapi import FastAPI
from websockets.exceptions import ConnectionClosed

from keydyn.datasets import make_typists
from keydyn.decisions import Targets, Verifier
from keydyn.service.live.endpoint import watch_router
from keydyn.service.live.live_sessions import LiveSessions
from keydyn.service.live.peer import LiveLimits
from keydyn.service.live.session import Admitted
from keydyn.service.problems import Problem
from keydyn.service.serving import UVICORN
from keydyn.service.storage.database import Database
from keydyn.service.storage.sealing import DataKey
from keydyn.service.storage.tables import api_keys, profiles, tenants, users
from keydyn.service.wall_clock import wall_clock
from tests.service.databases import make_tables
from tests.service.running import PromptServer, connect
from tests.waiting import PATIENCE

PEOPLE = tuple(f"user{n}" for n in range(4))
KEY = DataKey(bytes(32))
# Saved quickly; and no connection ends because the machine is busy.
QUICK = LiveLimits(save_s=0.1, hello_s=PATIENCE, slow_s=PATIENCE, not_durable_s=PATIENCE)


@cache
def typing():
    """Free text of each person: two samples to enrol, and one long one to watch."""
    frame = make_typists(len(PEOPLE), 3, text="free", n_keys=200, random_state=5)
    return {
        user: frame[frame["user"] == name] for user, name in zip(PEOPLE, frame["user"].unique(), strict=True)
    }


@cache
def verifier():
    # Simulated typists are a program, and would be noticed as such.
    found = Verifier.shipped(Targets(alarms=0.0))
    for user, frame in typing().items():
        found.enrol(user, frame[frame["session"] < 2].reset_index(drop=True))
    return found


def session_of(user):
    """Keystrokes of a session as they are sent; of a pair, the second person takes over after a hundred."""
    first, *others = [typing()[one] for one in (user if isinstance(user, tuple) else (user,))]
    frames = [one[one["session"] == 2].reset_index(drop=True) for one in (first, *others)]
    rows = _rows(frames[0])
    for other in frames[1:]:
        begin, more = rows[99][1] + 200.0, _rows(other)[100:]
        shift = begin - more[0][1]
        rows = rows[:100] + [[name, press + shift, release + shift] for name, press, release in more]
    return rows


def _rows(frame):
    columns = ("keyname", "timepress", "timerelease")
    return [list(row) for row in zip(*(frame[name].tolist() for name in columns), strict=True)]


def undisturbed(user, keys, whole=False):
    """Trust and suspicion after each keystroke, from the verifier itself, up to the one that locks or all."""
    watch = verifier().watch(user)
    found = watch.update(pd.DataFrame(keys, columns=["keyname", "timepress", "timerelease"]))
    end = len(keys) if whole else watch.locked_at or len(keys)
    return found.trust[:end], found.suspicion[:end], watch.locked_at


def plain(table, **known):
    """A row with the known values, and empty values in the other columns that must not be null."""
    needed = [column for column in table.columns if not column.nullable]
    return {column.name: column.type.python_type() for column in needed} | known


def make_database(url):
    """Make a database with the rows of all people, as after their enrolment."""
    database = Database(make_tables(url))

    def change(connection):
        connection.execute(tenants.insert(), plain(tenants, id="tenant", settings="{}"))
        connection.execute(api_keys.insert(), plain(api_keys, id="key", tenant_id="tenant"))
        for user in PEOPLE:
            connection.execute(users.insert(), plain(users, id=user, tenant_id="tenant", name=user))
            connection.execute(profiles.insert(), plain(profiles, id=f"profile-{user}", user_id=user))

    database.write(change)
    return database


def admit(user, headers, address, hello):
    """Admit any caller as the user of the path; the token "secret" may not unlock."""
    if user not in PEOPLE:
        raise Problem(404, "no-such-user", "There is no such user")
    if hello.token not in (None, "secret"):
        raise Problem(401, "not-authenticated", "The token is not valid")
    known = verifier()
    beside = known.in_use.watched
    return Admitted(
        "tenant",
        user,
        f"profile-{user}",
        hello.session,
        known.person(user),
        beside,
        beside.identity,
        beside.place(user),
        known._watching(known.in_use, [known.person(user)]),
        KEY,
        "key:test",
        hello.token is None,
        known.secret,
        "key",
        None,
    )


def check_unlock(admitted, session_id, token):
    if token not in (None, f"unlock {session_id}"):
        raise Problem(403, "wrong-purpose", "The token is for something else")


class Meter:
    """Counts events by name."""

    def __init__(self):
        self.now, self.counts, self.frames = 0, {}, 0

    def live(self, sessions):
        self.now = sessions

    def answered(self, keystrokes, seconds):
        self.frames += 1

    def happened(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1


def server_of(engine, admit=admit):
    """The live part of the service."""

    @contextlib.asynccontextmanager
    async def lifespan(app):
        await engine.start()
        yield
        await engine.close()

    app = FastAPI(lifespan=lifespan)
    app.include_router(watch_router(engine, admit, check_unlock))
    # Pings draw on the random numbers that property-based tests watch over.
    options = UVICORN | {"ws_ping_interval": None}
    return PromptServer(uvicorn.Config(app, log_config=None, lifespan="on", **options))


class Server:
    """The live part of the service on a free port, in a thread."""

    def __init__(self, database, limits=QUICK, admit=admit, **more):
        self.database, self.meter = database, Meter()
        self.engine = LiveSessions(database, wall_clock, limits, meter=self.meter, **more)
        listening = socket.create_server(("127.0.0.1", 0))
        self.port = listening.getsockname()[1]
        self._server = server_of(self.engine, admit)
        self._thread = threading.Thread(target=self._server.run, args=[[listening]], daemon=True)

    def __enter__(self):
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
            assert self._thread.is_alive()
        return self

    def __exit__(self, *_):
        self._server.stop()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def connect(self, user=PEOPLE[0], session=None, hello=None, **options):
        return Talk(self.port, user, hello or {"type": "hello", "session": session}, **options)


class Talk:
    """A connection on which hello has been sent."""

    def __init__(self, port, user, hello, **options):
        address = f"ws://127.0.0.1:{port}/v1/users/{user}/watch"
        self._opened = connect(address, compression=None, close_timeout=1, **options)
        self.socket = self._opened.__enter__()
        self.say(hello)
        self.welcome = self.hear()

    def say(self, frame):
        self.socket.send(frame if isinstance(frame, str | bytes) else json.dumps(frame))

    def hear(self, seconds=PATIENCE):
        return json.loads(self.socket.recv(seconds))

    def keys(self, first, rows):
        self.say({"type": "keys", "first": first, "keys": rows})

    def asked(self, first, rows):
        """Send a frame, and return the answer."""
        self.keys(first, rows)
        return self.hear()

    def close_code(self):
        """The code with which the server ends the connection, after any number of frames."""
        try:
            while True:
                self.socket.recv(120)
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def drop(self):
        """Drop the connection without a closing frame."""
        with contextlib.suppress(OSError):
            self.socket.socket.shutdown(socket.SHUT_RDWR)
        self.socket.socket.close()


def handshake(port, user=PEOPLE[0]):
    return (
        f"GET /v1/users/{user}/watch HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        "Sec-WebSocket-Version: 13\r\n\r\n"
    ).encode()


def frame(text):
    """A client's frame, with a mask of zeros."""
    size = len(text)
    return (
        b"\x81"
        + (bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2, "big"))
        + bytes(4)
        + text
    )
