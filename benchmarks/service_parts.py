"""What a verification's time is spent on: the application in this process, with a clock around each part.

`python benchmarks/service_parts.py` prints the table, the mean of some hundred verifications of people whose
templates are in memory, once the jobs that their enrolments caused are done. A part's time is the processor
time of its own thread, without that of the parts within it; what is left of the process's time is the way
through the web framework and between threads. A route of bare FastAPI that parses the same body and answers
is measured in the same way. With `--against REVISION`, the code of another revision and that of the working
tree verify in turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import statistics
import sys
import tempfile
import threading
import time
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from against import worktree
from running import SOURCES, Bench, say

PEOPLE, ROUNDS = 30, 12
# Turns of a comparison that count; there is one more before them, which compiles.
TURNS = 3
REST = "the web framework, its threads, and the rest"


class Clocks:
    """Processor seconds of parts, each without what is within it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._own = threading.local()

    def restart(self) -> None:
        """Begin at 0."""
        for part in self.seconds:
            self.seconds[part] = 0.0

    def around(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose time counts as this part's."""

        def timed(*args: Any, **options: Any) -> Any:
            within, self._own.within = getattr(self._own, "within", 0.0), 0.0
            began = time.thread_time()
            try:
                return function(*args, **options)
            finally:
                took = time.thread_time() - began
                self.seconds[part] += took - self._own.within
                self._own.within = within + took

        return timed


@contextmanager
def clocks() -> Iterator[Clocks]:
    """Clocks around the parts of a verification."""
    from keydyn.decisions import Verifier
    from keydyn.service.http import routing
    from keydyn.service.http.access import Rule
    from keydyn.service.http.routes import recognition
    from keydyn.service.people import stored_templates
    from keydyn.service.people.recognition import deciding
    from keydyn.service.people.recognition.decision_rows import Decided
    from keydyn.service.storage.database import Database
    from keydyn.service.storage.sealing import DataKey

    found = Clocks()
    # In the order of the table.
    places: dict[str, list[tuple[Any, str]]] = {
        "admission: the key, the tenant and the rate": [(Rule, "__call__")],
        "body: JSON, checks, keystrokes": [(routing, "_decoded"), (recognition, "_received")],
        "the sample as arrays": [(deciding, "samples_of")],
        "reads of the database": [(deciding, "subject_of")],
        "unsealing": [(DataKey, "open")],
        "the model: the decision": [(Verifier, "verify")],
        "the model: the template follows": [(Verifier, "updated")],
        "packing": [(deciding, "template_bytes"), (stored_templates, "fingerprints_bytes")],
        "sealing": [(DataKey, "seal")],
        "the receipt": [(Decided, "receipt")],
        "the write and its commit": [(Database, "_commit")],
        "the answer: JSON, checks": [(routing, "_answered")],
    }
    before = []
    for part, functions in places.items():
        found.seconds[part] = 0.0
        for owner, name in functions:
            if not hasattr(owner, name):
                # Another revision's code, where this is elsewhere.
                continue
            before.append((owner, name, getattr(owner, name)))
            setattr(owner, name, found.around(part, getattr(owner, name)))
    try:
        yield found
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


async def answered(app: Any, path: str, key: str, body: bytes) -> int:
    """The status with which an application answers a request."""
    messages: Iterator[dict[str, Any]] = iter([{"type": "http.request", "body": body, "more_body": False}])
    status = []

    async def receive() -> dict[str, Any]:
        for message in messages:
            return message
        return await asyncio.Future()

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            status.append(message["status"])

    headers = {
        "host": "127.0.0.1",
        "authorization": f"Bearer {key}",
        "content-type": "application/json",
        "content-length": str(len(body)),
    }
    scope = {
        **{"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST"},
        **{"scheme": "http", "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": ""},
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        **{"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)},
        # The body came together with the headers, as the protocol of the service says of most requests.
        "state": {"arrived": True},
    }
    await app(scope, receive, send)
    return int(status[0])


def bare() -> Any:
    """FastAPI and Pydantic, as their tutorials have it: the body is parsed, and something is answered."""
    from fastapi import FastAPI
    from pydantic import BaseModel

    class Keystroke(BaseModel):
        keyname: str
        timepress: float
        timerelease: float | None = None

    class Body(BaseModel):
        keystrokes: list[Keystroke]

    class Answer(BaseModel):
        answer: str
        keystrokes: int

    app = FastAPI()

    def verify(id: str, body: Body) -> Answer:
        return Answer(answer="accept", keystrokes=len(body.keystrokes))

    verify.__annotations__ = {"id": str, "body": Body, "return": Answer}
    app.post("/v1/users/{id}/verify")(verify)
    return app


async def _verified(app: Any, keys: list[str], typed: list[list[str]], numbers: range) -> list[float]:
    """Milliseconds of processor time of each verification."""
    took: list[float] = []
    for number in numbers:
        for n, samples in enumerate(typed):
            body = samples[number].encode()
            began = time.process_time()
            status = await answered(app, f"/v1/users/p{n}/verify", keys[len(took) % len(keys)], body)
            took.append(1000 * (time.process_time() - began))
            if status != 200:
                raise SystemExit(f"a verification was answered with {status}")
    return took


async def _jobs_done(database: Any) -> None:
    """Wait until the jobs that enrolments have caused are done, as they take processor time too."""
    from keydyn.service.jobs.queue import waiting

    while True:
        with database.reading() as connection:
            if not waiting(connection):
                return
        await asyncio.sleep(0.1)


async def measured(url: str, rounds: int = ROUNDS) -> dict[str, Any]:
    """The table's rows: milliseconds per verification of each part, of all, and of the bare route."""
    from keydyn.service.http.app import create_app
    from keydyn.service.settings import Deployment
    from keydyn.service.storage.database import Database
    from keydyn.service.storage.master_keys import open_master_keys
    from service import FEW, api_keys, typing

    keys = api_keys(url)
    database = Database(url)
    typed = typing(PEOPLE, FEW + 1 + rounds, 1)
    with clocks() as found:
        app = create_app(Deployment(database=url), database, open_master_keys(database))
        async with app.router.lifespan_context(app):
            for n in range(PEOPLE):
                await answered(app, "/v1/users", keys[n % len(keys)], json.dumps({"id": f"p{n}"}).encode())
                for number in range(FEW):
                    await answered(app, f"/v1/users/p{n}/samples", keys[n % 20], typed[n][number].encode())
            await _verified(app, keys, typed, range(FEW, FEW + 1))
            await _jobs_done(database)
            found.restart()
            took = await _verified(app, keys, typed, range(FEW + 1, FEW + 1 + rounds))
    peer = await _verified(bare(), keys, typed, range(FEW + 1, FEW + 1 + rounds))
    parts = {name: 1000 * seconds / len(took) for name, seconds in found.seconds.items()}
    whole = statistics.fmean(took)
    return {
        "requests": len(took),
        "parts": {**parts, REST: whole - sum(parts.values())},
        "mean_ms": whole,
        "median_ms": statistics.median(took),
        "bare_ms": statistics.median(peer),
    }


def rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """The rows of the table."""
    table = [(name, f"{value:.2f} ms") for name, value in found["parts"].items()]
    return [
        *table,
        ("together", f"{found['mean_ms']:.2f} ms"),
        ("median of all verifications", f"{found['median_ms']:.2f} ms"),
        ("a bare FastAPI route that parses the same and answers, median", f"{found['bare_ms']:.2f} ms"),
    ]


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", metavar="REVISION", help="measure this revision too, in turns")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--json", action="store_true", help="print the numbers, and write nothing")
    parser.add_argument("--out", type=Path, default=Path("out/bench-parts"))
    options = parser.parse_args()
    if options.against:
        compare(options.against, options.out, options.turns)
        return
    os.environ["KEYDYN_MASTER_KEY"] = b64encode(secrets.token_bytes(32)).decode()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measured(f"sqlite:///{folder}/service.db"))
    if options.json:
        print(json.dumps(found))
    else:
        write(rows(found), ["part of a verification", "processor time"], options.out / "parts.json")


def compare(revision: str, out: Path, turns: int = TURNS) -> None:
    """Verify with another revision's code and with the working tree's, in turns; the table."""
    out.mkdir(parents=True, exist_ok=True)
    times: dict[str, list[float]] = {"before": [], "now": []}
    with worktree(revision) as old:
        folders = {"before": old / "src", "now": SOURCES}
        sides = {side: Bench(out / f"numba-cache-{side}", folder) for side, folder in folders.items()}
        for turn in range(turns + 1):
            say("compiling" if turn == 0 else f"turn {turn} of {turns}")
            # Neither always goes first.
            for side in sorted(sides, reverse=bool(turn % 2)):
                done = sides[side].output([sys.executable, __file__, "--json"], pinned=False)
                times[side].append(json.loads(done.splitlines()[-1])["median_ms"])
    before, now = times["before"][1:], times["now"][1:]
    table = [
        *(
            (f"turn {n}", f"{a:.2f} ms", f"{b:.2f} ms")
            for n, (a, b) in enumerate(zip(before, now, strict=True), 1)
        ),
        ("median", f"{statistics.median(before):.2f} ms", f"{statistics.median(now):.2f} ms"),
    ]
    columns = ["processor time of a verification, median of a turn", revision, "the working tree"]
    write(table, columns, out / "against.json")


def write(table: Sequence[tuple[str, ...]], columns: list[str], file: Path) -> None:
    """Print a table, and write it as `docs/service_page.py` takes it."""
    for row in (columns, *table):
        print(f"{row[0]:<64}", *(f"{value:>16}" for value in row[1:]))
    file.parent.mkdir(parents=True, exist_ok=True)
    about = {"title": "Processor time of a verification", "columns": columns, "rows": table}
    file.write_text(json.dumps(about, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
