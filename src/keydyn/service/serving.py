"""Starting the service: upgrade the database, check the keys, run the processes."""

from __future__ import annotations

import ctypes
import errno
import gc
import http.client
import logging
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from sqlalchemy import select
from uvicorn.supervisors import Multiprocess

from keydyn.exit_codes import UsageError
from keydyn.service.accounts import ALL, PAGE, new_key, new_link
from keydyn.service.http.gate import HttpProtocol, is_loopback
from keydyn.service.settings import Deployment
from keydyn.service.storage.database import Database
from keydyn.service.storage.master_keys import open_master_keys
from keydyn.service.storage.tables import api_keys
from keydyn.service.wall_clock import wall_clock
from keydyn.service.wire.watch_frames import FRAME_BYTES
from keydyn.terminal import own_command

# Only workers import it: the process that supervises several of them answers no requests.
if TYPE_CHECKING:
    from fastapi import FastAPI

# Environment variables: the deployment, as JSON, for workers; and the folder in which several processes count
# their metrics.
DEPLOYMENT, SHARED_METRICS = "KEYDYN_DEPLOYMENT", "PROMETHEUS_MULTIPROC_DIR"
# Options of uvicorn for watched sessions. It refuses frames above `ws_max_size` by itself, with code 1009.
UVICORN: dict[str, Any] = {
    "ws": "keydyn.service.live.socket_protocol:SessionProtocol",
    "ws_max_size": 4 * FRAME_BYTES,
    "ws_per_message_deflate": False,
    "ws_ping_interval": 20.0,
    "ws_ping_timeout": 20.0,
}
# The program of a process that only compiles; an interrupt ends it quietly.
COMPILING = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "from keydyn.service.serving import warm; warm()"
)
FORMAT = "%(asctime)s %(levelname)s %(message)s"
# The numbers of options in glibc's malloc.h.
TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8
# A private part of a file that the process can read but not write, and how much of it was changed: the loader
# writes addresses into some of these before it protects them.
MAPPED = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) r-[x-]p \S+ \S+ [1-9]\d* +/.*\n(?:[A-Z].*\n)*?Anonymous: +(\d+) kB$",
    re.MULTILINE,
)
# The number of MADV_DONTNEED in Linux's mman.h.
DONT_NEED = 4
# The size in bytes from which a freed block, or the free end of the heap, is returned to the system at once.
RETURNED = 128 << 10


def check_deployment(deployment: Deployment) -> None:
    """Raise a `UsageError` if the service would be reached from other machines without protection."""
    if not is_loopback(deployment.host) and not deployment.behind_proxy:
        raise UsageError(
            f"the service does not encrypt what it sends, and would listen on {deployment.host}: put a TLS "
            "proxy in front of it (docs/deployment.md shows one with nginx) and use --behind-proxy"
        )
    if deployment.behind_proxy and not deployment.names:
        raise UsageError("behind a proxy, give the host name by which the service is reached with --name")


def prepare(deployment: Deployment) -> None:
    """Bring the database up to date and check the master keys, before any worker starts."""
    # Imported only here, to save memory in the processes that answer requests.
    from keydyn.service.storage.upgrading import upgrade

    with closing(Database(deployment.database)) as database:
        upgrade(database)
        open_master_keys(database, deployment.key_file)


def first_key(deployment: Deployment) -> str | None:
    """Create an API key with all scopes for the tenant "default"; None if there is any API key already."""
    with closing(Database(deployment.database)) as database:
        keys = open_master_keys(database, deployment.key_file)
        with database.reading() as connection:
            if connection.execute(select(api_keys.c.id).where(api_keys.c.kind == "key")).first() is not None:
                return None
        return new_key(database, keys, wall_clock, "default", "first key", [ALL])[1]


def page_link(deployment: Deployment, address: str) -> str:
    """Create a link that opens the page of a service that is reached at this address."""
    with closing(Database(deployment.database)) as database:
        keys = open_master_keys(database, deployment.key_file)
        outside = f"https://{deployment.names[0]}" if deployment.behind_proxy else address
        return new_link(database, keys, wall_clock, PAGE, outside)


def serve(deployment: Deployment, ready: Callable[[str], None]) -> None:
    """Run the service until interrupted; `ready` is called with its address once requests are answered."""
    check_deployment(deployment)
    with _shared(deployment), listening_on(deployment) as listening:
        config = uvicorn.Config(
            "keydyn.service.serving:worker",
            factory=True,
            host=deployment.host,
            port=deployment.port,
            workers=deployment.workers,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=deployment.behind_proxy,
            forwarded_allow_ips="127.0.0.1,::1",
            timeout_graceful_shutdown=20,
            # A worker may be slow to start on a busy machine without being stuck.
            timeout_worker_healthcheck=60,
            limit_concurrency=None,
            http=HttpProtocol,
            **UVICORN,
        )
        log_to_stderr()
        threading.Thread(target=_announce, args=(listening, ready), daemon=True).start()
        if deployment.workers == 1:
            uvicorn.Server(config).run(sockets=[listening])
        else:
            Multiprocess(config, sockets=[listening]).run()


def worker() -> FastAPI:
    """Create the application of one worker process."""
    from keydyn.service.http.app import create_app

    log_to_stderr()
    return_freed_memory()
    deployment = Deployment.model_validate_json(os.environ[DEPLOYMENT])
    database = Database(deployment.database)
    keys = open_master_keys(database, deployment.key_file)
    warm()
    app = create_app(deployment, database, keys)
    # What exists now stays: the garbage collector need not search it again and again.
    gc.collect()
    gc.freeze()
    return_code()
    return app


def return_freed_memory() -> None:
    """Let all threads share one heap, and return large blocks to the system when they are freed.

    Otherwise each thread has a heap of its own, which never shrinks. This has no effect if the C library is
    not glibc. It must be called before threads are started.
    """
    if sys.platform != "linux":
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(ARENA_MAX, 1)
        set_option(MMAP_THRESHOLD, RETURNED)
        set_option(TRIM_THRESHOLD, RETURNED)


def return_code() -> None:
    """Let go of the pages of libraries' code that starting has touched, most of them the compiler's.

    The system reads a page from its file again when it is needed. Pages that the process may write, or has
    changed, are left alone. This has no effect on systems other than Linux.
    """
    maps = Path("/proc/self/smaps")
    if not maps.exists():
        return
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int
    for begin, end in _unchanged_code(maps.read_text()):
        advise(begin, end - begin, DONT_NEED)


def _unchanged_code(maps: str) -> Iterator[tuple[int, int]]:
    """Where unchanged code and constants of libraries are, according to Linux's list of what is in memory."""
    for found in MAPPED.finditer(maps):
        begin, end, changed = found.groups()
        if int(changed) == 0:
            yield int(begin, 16), int(end, 16)


@contextmanager
def _shared(deployment: Deployment) -> Iterator[None]:
    """Set the environment variables that workers read."""
    os.environ[DEPLOYMENT] = deployment.model_dump_json()
    if deployment.workers == 1:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="keydyn-metrics-") as folder:
        os.environ[SHARED_METRICS] = folder
        yield


@contextmanager
def listening_on(deployment: Deployment) -> Iterator[socket.socket]:
    """Open the socket that all workers share; raise a `UsageError` if the port cannot be used."""
    host, port = deployment.host, deployment.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UsageError(
                f"port {port} is in use. Is the service running already? Then `{own_command()} service link` "
                "prints a link to its page; otherwise choose another port with --port"
            ) from None
        raise UsageError(f"cannot listen on {host}, port {port}: {error.strerror}") from None
    with listening:
        listening.set_inheritable(True)
        yield listening


def _announce(listening: socket.socket, ready: Callable[[str], None]) -> None:
    """Wait until the first worker answers, and call `ready` with the address of the service."""
    host, port = listening.getsockname()[:2]
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    while True:
        try:
            connection = http.client.HTTPConnection(here, port, timeout=60.0)
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                break
        except OSError:
            pass
        time.sleep(0.2)
    ready(f"http://{f'[{host}]' if ':' in host else host}:{port}")


def log_to_stderr() -> None:
    """Send logs that operators need to stderr, but nothing that names people."""
    logging.basicConfig(level=logging.INFO, format=FORMAT)
    # Their messages are not needed, and some would name people: httpx logs addresses, uvicorn the paths of
    # requests, which contain the ids of users.
    for chatty in ("httpx", "httpcore", "alembic", "numba", "uvicorn"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def compile_first() -> None:
    """Compile the code that requests run in another process, because the compiler stays in memory."""
    subprocess.run([sys.executable, "-c", COMPILING], check=False)


def warm() -> None:
    """Run all compiled code that requests use, on random times, so that it is compiled and loaded."""
    import numpy as np

    from keydyn.decisions import Verifier
    from keydyn.keystrokes import Samples, one_sample

    draw, keys = np.random.default_rng(0), list("the five boxing wizards jump quickly".replace(" ", "")) * 2
    press = np.cumsum(draw.lognormal(5.0, 0.3, (4, len(keys))), axis=1)
    release = press + draw.lognormal(4.4, 0.2, press.shape)
    samples = [one_sample(keys, press[n], release[n], session=n) for n in range(len(press))]
    verifier = Verifier.shipped()
    verifier.enrol("a person", Samples.joined(samples[:3]))
    verifier.update("a person", samples[3])
    verifier.identify(samples[3])
    verifier.watch_many(["a person"]).update_typed(keys, press[3], release[3], np.zeros(len(keys), np.int64))
