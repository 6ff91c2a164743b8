"""The service under load: verifications, many people, memory; beside the model's own cost.

`python benchmarks/service.py` starts `keydyn serve` with two workers on this machine and a load generator in
a process of its own, which shares the same cores. The table is printed, and written to
out/bench-service/requests.json. Everything goes through the API, enrolments too.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

KEYSTROKES, SAMPLES = 60, 40
# Samples that enrol a person; with them an enrolment is complete, and takes no more.
NEEDED = FEW = 2
# How many people are verified in turn, and how many of many people are asked for.
PEOPLE, ASKED = 100, 300
CONNECTIONS = 16


def typing(people: int, samples: int, seed: int) -> list[list[str]]:
    """The bodies of requests: samples of 60 keystrokes, of each person."""
    from keydyn.datasets import make_typists

    columns = ("keyname", "timepress", "timerelease")
    found: list[list[str]] = []
    for first in range(0, people, 500):
        number = min(500, people - first)
        frame = make_typists(number, samples, text="free", n_keys=KEYSTROKES, random_state=seed + first)
        bodies = [
            json.dumps(
                {
                    "keystrokes": [
                        dict(zip(columns, row, strict=True))
                        for row in zip(*(part[name].tolist() for name in columns), strict=True)
                    ]
                }
            )
            for _, part in frame.groupby(["user", "session"], sort=False)
        ]
        found += [bodies[n * samples : (n + 1) * samples] for n in range(number)]
    return found


# The load


class Connection(asyncio.Protocol):
    """One connection that sends a request when the last is answered; as little is done as possible."""

    def __init__(self, take: Any, done: asyncio.Future[None]) -> None:
        self._take, self._done = take, done
        self._left, self._began = b"", 0.0
        self.latencies: list[float] = []
        self.statuses: list[int] = []

    def connection_made(self, transport: Any) -> None:
        """Send the first request."""
        self._transport = transport
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        """The service must not hang up."""
        if not self._done.done():
            self._done.set_exception(ConnectionError(f"connection lost: {error}"))

    def data_received(self, data: bytes) -> None:
        """Read an answer, and send the next request."""
        self._left += data
        head, found, body = self._left.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(body) < length:
            return
        self.latencies.append(time.perf_counter() - self._began)
        self.statuses.append(int(head[9:12]))
        self._left = b""
        self._next()

    def _next(self) -> None:
        request = next(self._take, None)
        if request is None:
            if not self._done.done():
                self._done.set_result(None)
            return
        self._began = time.perf_counter()
        self._transport.write(request)


async def sent(port: int, requests: list[bytes], connections: int = CONNECTIONS) -> dict[str, Any]:
    """Send requests over so many connections, as fast as they are answered."""
    loop, take = asyncio.get_running_loop(), iter(requests)
    made = []
    began = time.perf_counter()
    for _ in range(connections):
        done: asyncio.Future[None] = loop.create_future()
        protocol = Connection(take, done)
        await loop.create_connection(lambda protocol=protocol: protocol, "127.0.0.1", port)  # type: ignore[misc]
        made.append((protocol, done))
    await asyncio.gather(*(done for _, done in made))
    seconds = time.perf_counter() - began
    latencies = 1000 * np.concatenate([protocol.latencies for protocol, _ in made])
    statuses = [status for protocol, _ in made for status in protocol.statuses]
    for protocol, _ in made:
        protocol._transport.abort()
    return {
        "requests": len(requests),
        "seconds": seconds,
        "per_second": len(requests) / seconds,
        "p50_ms": float(np.median(latencies)),
        "p99_ms": float(np.quantile(latencies, 0.99)),
        "statuses": {str(one): statuses.count(one) for one in sorted(set(statuses))},
    }


def request(key: str, path: str, body: str) -> bytes:
    """As it goes over the wire."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body.encode()


class Load:
    """What the load generator does, in order; after each part it prints what it found."""

    def __init__(self, port: int, keys: list[str]) -> None:
        self._port, self._keys, self._sent = port, keys, 0

    def _send(self, pairs: list[tuple[str, str]], connections: int = CONNECTIONS) -> dict[str, Any]:
        import uvloop

        requests = []
        for path, body in pairs:
            # The rate of each key is limited.
            self._sent += 1
            requests.append(request(self._keys[self._sent % len(self._keys)], path, body))
        return uvloop.run(sent(self._port, requests, connections))

    def enrol(self, name: str, people: int, typed: list[list[str]], needed: int) -> dict[str, Any]:
        """Create people and enrol their first samples; all samples of one number before the next."""
        began = time.perf_counter()
        self._send([("/v1/users", json.dumps({"id": f"{name}-{n}"})) for n in range(people)])
        for number in range(needed):
            found = self._send([(f"/v1/users/{name}-{n}/samples", typed[n][number]) for n in range(people)])
        return found | {"people": people, "all_seconds": time.perf_counter() - began}

    def verify(self, name: str, typed: list[list[str]], numbers: range, **options: Any) -> dict[str, Any]:
        """Verify samples of these numbers of everybody."""
        pairs = [
            (f"/v1/users/{name}-{n}/verify", typed[n][number])
            for number in numbers
            for n in range(len(typed))
        ]
        return self._send(pairs, **options)

    def identify(self, bodies: list[str]) -> dict[str, Any]:
        """One sample after the other."""
        return self._send([("/v1/identify", body) for body in bodies], connections=1)


def learnt(url: str) -> float:
    """Wait until nothing is left to be learnt from enrolments; return the seconds."""
    from keydyn.service.jobs.queue import waiting
    from keydyn.service.storage.database import Database

    began, database = time.perf_counter(), Database(url)
    while True:
        with database.reading() as connection:
            left = waiting(connection)
        if not left:
            database.close()
            return time.perf_counter() - began
        time.sleep(0.5)


def load(port: int, keys: list[str], many: int, url: str) -> None:
    """The load generator."""

    def say(**found: Any) -> None:
        print(json.dumps(found), flush=True)

    generator = Load(port, keys)
    typed = typing(PEOPLE, SAMPLES, 1)
    say(enrolled=generator.enrol("few", PEOPLE, typed, NEEDED))
    # Once over everybody: templates are learnt, caches are filled.
    say(first=generator.verify("few", typed, range(NEEDED, NEEDED + 2)))
    # What enrolments leave to be done would count as work for verifications.
    say(learnt={"seconds": learnt(url), "per_second": 0.0})
    say(verified=generator.verify("few", typed, range(NEEDED + 2, 30)))
    say(alone=generator.verify("few", typed, range(30, 32), connections=1))
    say(soaked=generator.verify("few", typed, range(32, SAMPLES)))
    if many:
        typed = typing(many, FEW + 1, 1_000_000)
        found = generator.enrol("many", many, typed, FEW)
        say(many=found | {"learnt_after": learnt(url)})
        some = [typed[n] for n in range(ASKED)]
        say(many_verified=generator.verify("many", some, range(FEW, FEW + 1)))
        say(identify_first=generator.identify([typed[ASKED][FEW]]))
        say(identify=generator.identify([typed[n][FEW] for n in range(ASKED + 1, ASKED + 11)]))


def model_cost() -> dict[str, float]:
    """Processor seconds of the decision alone, and of following an accepted sample."""
    from keydyn.datasets import make_typists
    from keydyn.decisions import Verifier

    frame = make_typists(1, 60, text="free", n_keys=KEYSTROKES, random_state=2)
    parts = [part.reset_index(drop=True) for _, part in frame.groupby("session", sort=False)]
    verifier = Verifier.shipped()
    import pandas as pd

    verifier.enrol("person", pd.concat(parts[:NEEDED], ignore_index=True))
    verifier.update("person", parts[NEEDED])
    began = time.process_time()
    for part in parts[NEEDED + 1 : 30]:
        verifier.verify("person", part)
    decision = (time.process_time() - began) / (29 - NEEDED)
    began = time.process_time()
    for part in parts[30:]:
        verifier.update("person", part)
    return {"verify_ms": 1000 * decision, "verify_and_follow_ms": 1000 * (time.process_time() - began) / 30}


# The service


@contextlib.contextmanager
def service(url: str, workers: int) -> Iterator[tuple[int, int]]:
    """`keydyn serve` on a database: its process and port."""
    command = [sys.executable, "-m", "keydyn", "serve", "--port", "0", "--database", url]
    process = subprocess.Popen(
        [*command, "--workers", str(workers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if "http://" in line:
                break
        else:
            raise SystemExit("the service did not start")
        port = int(line.partition("http://")[2].split()[0].rpartition(":")[2])
        wait_for(port)
        yield process.pid, port
    finally:
        process.terminate()
        process.wait(60)


def wait_for(port: int) -> None:
    """Until the service answers."""
    import httpx

    for _ in range(1200):
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=30.0).status_code == 200:
                return
        time.sleep(0.1)
    raise SystemExit("the service does not answer")


def processes(parent: int) -> list[int]:
    """A process and all that it started."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [parent, *(one for child in children for one in processes(int(child)))]


def usage(parent: int) -> tuple[float, float]:
    """Processor seconds that the service has taken, and its memory in MB, of all processes together."""
    ticks = pages = 0
    for process in processes(parent):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
        pages += int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def api_keys(url: str, number: int = 20) -> list[str]:
    """Keys of one tenant."""
    from keydyn.service import accounts
    from keydyn.service.storage.database import Database
    from keydyn.service.storage.master_keys import open_master_keys
    from keydyn.service.storage.upgrading import upgrade
    from keydyn.service.wall_clock import wall_clock
    from keydyn.service.wire.both_ways import encoded
    from keydyn.service.wire.requests import TenantSettings

    database = Database(url)
    upgrade(database)
    keys = open_master_keys(database)

    def change(connection: Any) -> list[str]:
        tenant = accounts.tenant_named(connection, keys, "bench", wall_clock())
        # Owners who are rejected use up none of their attempts here: a refusal costs less than a decision.
        chances = {"takeover_chance": 0.5, "takeovers_per_day": 10_000.0}
        settings = encoded(TenantSettings(samples_needed=FEW, **chances)).decode()
        accounts.change_tenant(connection, keys, tenant, settings=settings)
        return [
            accounts.create_key(connection, keys, tenant, "bench", accounts.SCOPES, wall_clock())[1]
            for _ in range(number)
        ]

    made = database.write(change)
    database.close()
    return made


def measured(url: str, many: int, workers: int) -> dict[str, Any]:
    """What the load generator found, with the service's processor time and memory in each part."""
    keys = api_keys(url)
    found: dict[str, Any] = {}
    with service(url, workers) as (pid, port):
        command = [sys.executable, __file__, "--role", "load", "--port", str(port), "--many", str(many)]
        command += ["--database", url]
        generator = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert generator.stdin is not None
        assert generator.stdout is not None
        generator.stdin.write(json.dumps(keys))
        generator.stdin.close()
        before = usage(pid)[0]
        for line in generator.stdout:
            after, memory = usage(pid)
            for name, part in json.loads(line).items():
                found[name] = part | {"service_cpu_s": after - before, "memory_mb": memory}
                print(f"  {name}: {part['per_second']:.0f} per second", file=sys.stderr, flush=True)
            before = after
        if generator.wait():
            raise SystemExit("the load generator failed")
    return found


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--role", choices=("load",))
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--database", default="", help="an address; by default SQLite in a temporary folder")
    parser.add_argument("--many", type=int, default=10_000, help="people to enrol; 0 for none")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("out/bench-service"))
    parser.add_argument(
        "--against", metavar="REVISION", help="only compare a verification with this revision's"
    )
    options = parser.parse_args()
    if options.against:
        from service_parts import compare

        compare(options.against, options.out)
        return
    if options.role == "load":
        load(options.port, json.loads(sys.stdin.read()), options.many, options.database)
        return
    os.environ["KEYDYN_MASTER_KEY"] = b64encode(secrets.token_bytes(32)).decode()
    with tempfile.TemporaryDirectory() as folder:
        url = options.database or f"sqlite:///{folder}/service.db"
        found = measured(url, options.many, options.workers) | {"model": model_cost()}
        files = list(Path(folder).glob("service.db*"))
        found["database_mb"] = sum(file.stat().st_size for file in files) / 1e6
    rows = report(found, options.workers)
    width = max(len(name) for name, _, _ in rows)
    for name, aim, value in rows:
        print(f"{name:<{width}}  {aim:>8}  {value:>12}")
    options.out.mkdir(parents=True, exist_ok=True)
    about = {"title": "Requests", "columns": ["", "aim", "measured"], "rows": rows}
    (options.out / "requests.json").write_text(json.dumps(about | found, indent=1))


def report(found: dict[str, Any], workers: int) -> list[tuple[str, str, str]]:
    """The rows of the table: what, the project's aim, and what was measured."""
    verified, alone, model = found["verified"], found["alone"], found["model"]
    cost, at_once = 1000 * verified["service_cpu_s"] / verified["requests"], f"{CONNECTIONS} at a time"
    soaked = found["soaked"]
    rows = [
        ("verifications per second", "500", f"{verified['per_second']:.0f}"),
        (f"time per request, {at_once}, median", "", f"{verified['p50_ms']:.1f} ms"),
        (f"time per request, {at_once}, 99th percentile", "60 ms", f"{verified['p99_ms']:.1f} ms"),
        ("time per request, one at a time, median", "", f"{alone['p50_ms']:.1f} ms"),
        ("time per request, one at a time, 99th percentile", "", f"{alone['p99_ms']:.1f} ms"),
        ("processor time of the service per verification", "2.5 ms", f"{cost:.2f} ms"),
        ("of which the model, for the decision", "", f"{model['verify_ms']:.2f} ms"),
        (
            "of which the model, with the template's update",
            "",
            f"{model['verify_and_follow_ms']:.2f} ms",
        ),
        ("memory after 200 verifications", "", f"{found['first']['memory_mb']:.0f} MB"),
        (f"memory after {verified['requests']:,} more", "", f"{verified['memory_mb']:.0f} MB"),
        (f"memory after {soaked['requests']:,} more", "", f"{soaked['memory_mb']:.0f} MB"),
        # The supervisor of several workers is a process, too.
        ("of which a process", "180 MB", f"{soaked['memory_mb'] / (workers + (workers > 1)):.0f} MB"),
    ]
    if "many" in found:
        many, ranked = found["many"], found["identify"]
        later, first = found["many_verified"]["p99_ms"], found["identify_first"]["p50_ms"] / 1000
        rows += [
            (f"people enrolled through the API, {FEW} samples each", "", f"{many['people']:,}"),
            ("time to enrol them", "", f"{many['all_seconds']:.0f} s"),
            ("time until their templates are learnt, after that", "", f"{many['learnt_after']:.0f} s"),
            ("size of the database", "", f"{found['database_mb']:.0f} MB"),
            ("verification of a person not yet in memory, 99th percentile", "40 ms", f"{later:.1f} ms"),
            ("first identification among them", "2 s", f"{first:.1f} s"),
            ("identification among them, median", "60 ms", f"{ranked['p50_ms']:.0f} ms"),
            ("memory with all of them", "", f"{ranked['memory_mb']:.0f} MB"),
        ]
    return rows


if __name__ == "__main__":
    main()
