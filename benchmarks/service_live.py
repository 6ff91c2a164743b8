"""Live sessions under load: from a frame to its trust, on a real server, beside the model's own cost.

`python benchmarks/service_live.py` starts the live part of the service and a load generator, each in a
process of its own, on this machine: sessions that each send a frame of five keystrokes per second, and then
keystrokes as fast as they are taken. The table is printed, and written to out/bench-service/live.json.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

PEOPLE, KEYS_PER_FRAME, SAMPLE = 100, 5, 300
TARGET_MS = 100.0
SOAK_SESSIONS, SOAK_FRAME, SOAK_ROUND = 100, 20, 200


def typing(n_people: int = PEOPLE) -> list[list[list[Any]]]:
    """Keystrokes of a sample to enrol and then of a session, of each person."""
    from keydyn.datasets import make_typists

    frame = make_typists(n_people, 2, text="free", n_keys=SAMPLE, random_state=1)
    columns = ("keyname", "timepress", "timerelease")
    return [
        [list(row) for row in zip(*(part[name].tolist() for name in columns), strict=True)]
        for _, part in frame.groupby(["user", "session"], sort=True)
    ]


def known_people() -> Any:
    """A verifier who knows everybody, by number."""
    import pandas as pd

    from keydyn.decisions import Verifier

    verifier = Verifier.shipped()
    samples = {}
    for n, rows in enumerate(typing()[::2]):
        sample = pd.DataFrame(rows, columns=["keyname", "timepress", "timerelease"])
        samples[str(n)] = sample.assign(user=str(n), session=0)
    verifier.enrol_many(samples)
    return verifier


# The server


def serve(port: int, url: str, ws: str, tick: float) -> None:
    """The live part of the service: anybody is admitted."""
    import uvicorn
    from fastapi import FastAPI

    from keydyn.decisions.watching import playback
    from keydyn.service.live.endpoint import watch_router
    from keydyn.service.live.live_sessions import LiveSessions
    from keydyn.service.live.peer import LiveLimits
    from keydyn.service.live.session import Admitted
    from keydyn.service.serving import UVICORN, warm
    from keydyn.service.storage.database import Database
    from keydyn.service.storage.sealing import DataKey
    from keydyn.service.storage.tables import api_keys, metadata, profiles, tenants, users
    from keydyn.service.wall_clock import wall_clock

    # The load repeats itself: recordings are looked for, but lock nothing.
    playback.LIMIT = math.inf
    verifier, database, key = known_people(), Database(url), DataKey.new()
    metadata.create_all(database.engine)

    def plain(table: Any, **known: str) -> dict[str, Any]:
        needed = [column for column in table.columns if not column.nullable]
        return {column.name: column.type.python_type() for column in needed} | known

    def fill(connection: Any) -> None:
        connection.execute(tenants.insert(), plain(tenants, id="t", settings="{}"))
        connection.execute(api_keys.insert(), plain(api_keys, id="key", tenant_id="t"))
        for user in verifier.users:
            connection.execute(users.insert(), plain(users, id=user, tenant_id="t", name=user))
            connection.execute(profiles.insert(), plain(profiles, id=user, user_id=user))

    database.write(fill)

    def admit(user: str, headers: Any, address: str, hello: Any) -> Admitted:
        return Admitted(
            "t", user, user, hello.session, verifier.person(user), verifier.background, "shipped", -1,
            verifier.watching, key, "key:bench", True, verifier.secret, "key", None,
        )  # fmt: skip

    limits = LiveLimits(sessions_per_user=1000, tick_s=tick, keystrokes_per_s=1e9)
    engine = LiveSessions(database, wall_clock, limits)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> Any:
        warm()
        await engine.start()
        yield
        await engine.close()

    app = FastAPI(lifespan=lifespan)
    app.include_router(watch_router(engine, admit, lambda *_: None))
    uvicorn.run(app, port=port, log_level="warning", **{**UVICORN, "ws": ws})


# The load


class Client(asyncio.Protocol):
    """One session; frames are made by hand, so that the generator takes as little as it can."""

    def __init__(self, user: int, port: int) -> None:
        self._path, self._port = f"/v1/users/{user}/watch", port
        self._left, self._upgraded = b"", False
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.due: list[float] = []
        self.latencies: list[float] = []
        self.answered, self.locks = 0, 0
        self.next: Any = None

    def connection_made(self, transport: Any) -> None:
        """Ask for a WebSocket, and say hello at once."""
        self.transport = transport
        transport.write(
            f"GET {self._path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )

    def connection_lost(self, error: Exception | None) -> None:
        """It must not happen while the load lasts."""
        if not self.ready.done():
            self.ready.set_exception(ConnectionError(f"connection lost: {error}"))

    def data_received(self, data: bytes) -> None:
        """Whole frames, one after another."""
        now, data = time.monotonic(), self._left + data
        if not self._upgraded:
            head, end, data = data.partition(b"\r\n\r\n")
            if not end:
                self._left = head
                return
            if b" 101 " not in head:
                raise SystemExit(f"no WebSocket: {head!r}")
            self._upgraded = True
            self.transport.write(masked(b'{"type":"hello"}'))
        while len(data) >= 2:
            size, begin = data[1] & 127, 2
            if size == 126:
                size, begin = int.from_bytes(data[2:4], "big"), 4
            if len(data) < begin + size:
                break
            self._frame(data[0] & 15, data[begin : begin + size], now)
            data = data[begin + size :]
        self._left = data

    def _frame(self, opcode: int, frame: bytes, now: float) -> None:
        if opcode == 9:
            self.transport.write(bytes((0x8A, 0x80 | len(frame))) + bytes(4) + frame)
        elif frame.startswith(b'{"type":"trust"'):
            if self.due:
                self.latencies.append(now - self.due.pop(0))
            self.answered += 1
            if self.next is not None:
                self.next(self)
        elif frame.startswith(b'{"type":"welcome"'):
            self.ready.set_result(None)
        elif frame.startswith(b'{"type":"lock"'):
            self.locks += 1
            self.transport.write(masked(b'{"type":"unlock"}'))
        elif not frame.startswith(b'{"type":"unlocked"'):
            raise SystemExit(f"unexpected frame: {opcode} {frame!r}")


def masked(text: bytes) -> bytes:
    """A frame of a client; the mask is zero, which leaves the text as it is."""
    size = len(text)
    head = bytes((0x81, 0x80 | size)) if size < 126 else b"\x81\xfe" + size.to_bytes(2, "big")
    return head + bytes(4) + text


def frame_of(first: int, rows: list[list[Any]]) -> bytes:
    """A frame of keystrokes."""
    keys = json.dumps(rows, separators=(",", ":"))
    return masked(b'{"type":"keys","first":%d,"keys":%s}' % (first, keys.encode()))


async def connected(n: int, port: int) -> list[Client]:
    """So many sessions, welcomed, a few at a time."""
    loop, clients, some = asyncio.get_running_loop(), [], asyncio.Semaphore(50)

    async def one(number: int) -> Client:
        async with some:
            _, client = await loop.create_connection(lambda: Client(number % PEOPLE, port), "127.0.0.1", port)
            await client.ready
            return client

    clients = await asyncio.gather(*(one(number) for number in range(n)))
    return list(clients)


async def paced(port: int, n: int, seconds: int) -> dict[str, Any]:
    """Each session sends a frame per second, spread evenly; latencies count from when a frame was due."""
    loop, sessions = asyncio.get_running_loop(), typing()[1::2]
    begins = range(0, SAMPLE, KEYS_PER_FRAME)
    # Times go on from one round of the sample to the next.
    rounds = -(-seconds // len(begins))
    frames = []
    for rows in sessions:
        span = rows[-1][1] + 300.0
        again = [[k, p + r * span, q + r * span] for r in range(rounds) for k, p, q in rows]
        frames.append(
            [frame_of(b + 1, again[b : b + KEYS_PER_FRAME]) for b in range(0, len(again), KEYS_PER_FRAME)]
        )
    clients = await connected(n, port)
    print("ready", flush=True)
    began = loop.time() + 1.0

    def send(client: Client, number: int, k: int) -> None:
        due = began + k + number / n
        client.due.append(due)
        client.transport.write(frames[number % PEOPLE][k])
        if k + 1 < seconds:
            loop.call_at(due + 1.0, send, client, number, k + 1)

    for number, client in enumerate(clients):
        loop.call_at(began + number / n, send, client, number, 0)
    await asyncio.sleep(seconds + 2.0)
    for _ in range(100):
        if all(client.answered == seconds for client in clients):
            break
        await asyncio.sleep(0.1)
    found = np.concatenate([client.latencies for client in clients]) * 1000
    return {
        "sessions": n,
        "frames": len(found),
        "unanswered": n * seconds - len(found),
        "locks": sum(client.locks for client in clients),
        "p50_ms": float(np.percentile(found, 50)),
        "p99_ms": float(np.percentile(found, 99)),
        "max_ms": float(found.max()),
    }


async def soak(port: int, events: int) -> dict[str, Any]:
    """Keystrokes as fast as they are taken: eight frames in flight per session."""
    sessions = typing()[1::2]
    parts = [
        [
            json.dumps(rows[b : b + SOAK_FRAME], separators=(",", ":")).encode()
            for b in range(0, SOAK_ROUND, SOAK_FRAME)
        ]
        for rows in sessions
    ]
    clients = await connected(SOAK_SESSIONS, port)
    each = events // SOAK_FRAME // SOAK_SESSIONS
    sent = dict.fromkeys(clients, 0)
    numbers = {client: number for number, client in enumerate(clients)}
    done = asyncio.Event()
    total = 0

    def push(client: Client) -> None:
        k = sent[client]
        if k < each:
            sent[client] = k + 1
            of = parts[numbers[client] % PEOPLE]
            text = b'{"type":"keys","first":%d,"keys":%s}' % (k * SOAK_FRAME + 1, of[k % len(of)])
            client.transport.write(masked(text))

    def answered(client: Client) -> None:
        nonlocal total
        total += SOAK_FRAME
        if total % 100_000 == 0:
            print(f"at {total}", flush=True)
        if total >= each * SOAK_FRAME * SOAK_SESSIONS:
            done.set()
        push(client)

    print("ready", flush=True)
    began = time.monotonic()
    for client in clients:
        client.next = answered
        for _ in range(8):
            push(client)
    await done.wait()
    seconds = time.monotonic() - began
    locks = sum(client.locks for client in clients)
    return {"events": total, "seconds": seconds, "events_per_s": total / seconds, "locks": locks}


# Both


def model_cost(sessions: int) -> dict[str, float]:
    """Processor time of the model alone for the same events: ticks of a fiftieth of them, and all at once."""
    from keydyn.decisions.watching.watch import WatchedPool

    verifier, rows = known_people(), typing()[1::2]
    pool = WatchedPool(verifier.background, verifier.watching)
    people = [n % PEOPLE for n in range(sessions)]
    places = [pool.join(verifier.person(str(n)).template, -1, None)[0] for n in people]
    found = {}
    for name, parts in (("tick", 50), ("together", 1)):
        took, n_events = [], 0
        for begin in range(0, SAMPLE, KEYS_PER_FRAME):
            for part in range(parts):
                some = range(part, sessions, parts)
                typed = [row for s in some for row in rows[people[s]][begin : begin + KEYS_PER_FRAME]]
                names, press, release = (list(column) for column in zip(*typed, strict=True))
                where = np.repeat([places[s] for s in some], KEYS_PER_FRAME)
                before = time.process_time()
                pool.advance(where, names, np.array([press, release]))
                took.append(time.process_time() - before)
                n_events += len(typed)
        # The first calls compile, or load what was compiled.
        found[f"{name}_us_per_keystroke"] = (
            1e6 * sum(took[parts:]) / (n_events - n_events * parts / len(took))
        )
    began = time.process_time()
    pool.states(places)
    found["state_us_per_session"] = 1e6 * (time.process_time() - began) / sessions
    return found


def status(pid: int) -> tuple[float, float]:
    """Processor seconds that a process has taken, and its memory in MB."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def started(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    """Run this file in another role."""
    command = [sys.executable, __file__, *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(command, text=True, env=environment, **options)


@contextlib.contextmanager
def server(folder: Path, options: argparse.Namespace) -> Any:
    """The server's process and port, ready to answer."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    url = options.database or f"sqlite:///{folder}/live.db"
    role = ("--role", "server", "--port", str(port), "--database", url)
    process = started(*role, "--ws", options.ws, "--tick", str(options.tick))
    try:
        for _ in range(1200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if process.poll() is not None:
                raise SystemExit("the server did not start")
            time.sleep(0.1)
        yield process, port
    finally:
        process.terminate()
        process.wait(60)


def loaded(role: str, process: Any, port: int, *more: str) -> dict[str, Any]:
    """What the load generator finds, with the server's processor time and memory."""
    load = started("--role", role, "--port", str(port), *more, stdout=subprocess.PIPE)
    memory: list[tuple[int, float]] = []
    began, last = 0.0, ""
    assert load.stdout is not None
    for line in load.stdout:
        last = line.strip()
        if last == "ready":
            began, at = status(process.pid)
            memory.append((0, at))
            before = time.monotonic()
        elif last.startswith("at "):
            memory.append((int(last[3:]), status(process.pid)[1]))
            print(f"  {memory[-1][0]:>9,} keystrokes: {memory[-1][1]:.1f} MB", file=sys.stderr, flush=True)
    if load.wait():
        raise SystemExit(f"{role} failed")
    ended, at = status(process.pid)
    found: dict[str, Any] = json.loads(last)
    memory.append((found.get("events", 0), at))
    share = (ended - began) / (time.monotonic() - before)
    return found | {"server_cpu": share, "memory_mb": memory}


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--role", choices=("server", "paced", "soak", "model"))
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--database", default="", help="an address; by default SQLite in a temporary folder")
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--soak", type=int, default=2_000_000, help="keystrokes; 0 for none")
    parser.add_argument("--ws", default="websockets-sansio", help="uvicorn's implementation")
    parser.add_argument("--tick", type=float, default=0.02)
    parser.add_argument("--out", type=Path, default=Path("out/bench-service"))
    options = parser.parse_args()
    if options.role == "server":
        serve(options.port, options.database, options.ws, options.tick)
    elif options.role == "model":
        print(json.dumps(model_cost(options.sessions)))
    elif options.role is not None:
        import uvloop

        run = paced(options.port, options.sessions, options.seconds)
        if options.role == "soak":
            run.close()
            run = soak(options.port, options.soak)
        print(json.dumps(uvloop.run(run)))
    else:
        report(options)


def report(options: argparse.Namespace) -> None:
    """Everything, in order."""
    model = started("--role", "model", "--sessions", str(options.sessions), stdout=subprocess.PIPE)
    found: dict[str, Any] = {"model": json.loads(model.communicate()[0])}
    with tempfile.TemporaryDirectory() as folder, server(Path(folder), options) as (process, port):
        paces = ("--sessions", str(options.sessions), "--seconds", str(options.seconds))
        found["live"] = loaded("paced", process, port, *paces)
        if options.soak:
            found["soak"] = loaded("soak", process, port, "--soak", str(options.soak))
    live, cost = found["live"], found["model"]
    keystrokes = live["sessions"] * KEYS_PER_FRAME
    own = cost["tick_us_per_keystroke"] * keystrokes / 1e6
    rows = [
        ("live sessions, one frame of five keystrokes per second each", f"{live['sessions']:,}"),
        ("frames answered", f"{live['frames']:,}"),
        ("frames not answered", f"{live['unanswered']:,}"),
        ("time from a frame to its answer, median", f"{live['p50_ms']:.1f} ms"),
        (
            f"time from a frame to its answer, 99th percentile (target {TARGET_MS:.0f} ms)",
            f"{live['p99_ms']:.1f} ms",
        ),
        ("time from a frame to its answer, largest", f"{live['max_ms']:.1f} ms"),
        ("processor time of the service, share of one core", f"{100 * live['server_cpu']:.0f} %"),
        ("of the model alone for the same events and ticks, share of one core", f"{100 * own:.0f} %"),
        ("of the model alone, per keystroke", f"{cost['tick_us_per_keystroke']:.1f} µs"),
        (
            "of the model alone, per keystroke, all sessions in one call",
            f"{cost['together_us_per_keystroke']:.1f} µs",
        ),
        ("to save the state of one session", f"{cost['state_us_per_session']:.0f} µs"),
        (
            "memory of the service before and after",
            f"{live['memory_mb'][0][1]:.0f}, {live['memory_mb'][-1][1]:.0f} MB",
        ),
    ]
    if "soak" in found:
        soaked = found["soak"]
        late = [at for _, at in soaked["memory_mb"][1:]]
        rows += [
            ("keystrokes per second at full load", f"{soaked['events_per_s']:,.0f}"),
            (f"memory over {soaked['events']:,} keystrokes", f"{min(late):.0f} to {max(late):.0f} MB"),
        ]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:<{width}}  {value:>12}")
    options.out.mkdir(parents=True, exist_ok=True)
    about = {"title": "Live sessions", "columns": ["", "measured"], "rows": rows}
    (options.out / "live.json").write_text(json.dumps(about | found, indent=1))


if __name__ == "__main__":
    main()
