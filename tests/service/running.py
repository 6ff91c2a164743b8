"""The service in this process, on a free loopback port, for tests."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import httpx
import uvicorn
from sqlalchemy import exists, select, true
from websockets.sync import client as websockets

from keydyn.service import accounts
from keydyn.service.http.app import create_app
from keydyn.service.http.gate import HttpProtocol
from keydyn.service.serving import UVICORN
from keydyn.service.settings import Deployment
from keydyn.service.storage.database import Database
from keydyn.service.storage.sealing import MasterKeys
from keydyn.service.storage.tables import jobs
from tests.service.databases import make_tables
from tests.waiting import PATIENCE

KEYS = MasterKeys([b"k" * 32])
STARTED = 1_700_000_000_000
# For clients that encrypt nothing: by default, each of them would read all certificates of the machine.
UNENCRYPTED = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
# Single requests and connections, which wait as long as a busy machine takes.
http_get = partial(httpx.get, timeout=PATIENCE, verify=UNENCRYPTED)
http_post = partial(httpx.post, timeout=PATIENCE, verify=UNENCRYPTED)
http_options = partial(httpx.options, timeout=PATIENCE, verify=UNENCRYPTED)
connect = partial(websockets.connect, open_timeout=PATIENCE, ping_interval=None)


class PromptServer(uvicorn.Server):
    """A server that stops as soon as requested; uvicorn checks only ten times a second.

    In most tests a service runs for a few requests, and would take longer to stop than to answer them.
    """

    _loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets=None) -> None:
        self._asked = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    async def main_loop(self) -> None:
        await self.on_tick(0)
        if not self.should_exit:
            await self._asked.wait()

    async def shutdown(self, sockets=None) -> None:
        for listening in [*self.servers, *(sockets or [])]:
            listening.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        while self.server_state.connections or self.server_state.tasks:
            await asyncio.sleep(0.002)
        await self.lifespan.shutdown()

    def stop(self) -> None:
        """Request a stop, from another thread."""
        self.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._asked.set)


class MovedClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = STARTED

    def __call__(self) -> int:
        return self.now


class Service:
    """A running service: its address, its database, its clock, and keys to use it with."""

    def __init__(self, url, database, clock, app):
        self.url, self.database, self.clock, self.app = url, database, clock, app
        self._clients: list[httpx.Client] = []

    def key(self, tenant="default", scopes=accounts.SCOPES):
        """A new API key."""
        return accounts.new_key(self.database, KEYS, self.clock, tenant, "test", scopes)[1]

    def page(self, tenant="default"):
        """A client with a session of the service's own pages, which see everything."""
        keys = self.app.state.context.keys
        link = accounts.new_link(self.database, keys, self.clock, tenant, self.url).partition("#link=")[2]
        session = accounts.open_page(self.database, keys, self.clock, link=link)
        return self.client(session.token, origin=self.url)

    def client(self, key=None, **headers):
        """A client that sends this key, or a new one of the tenant "default"."""
        own = {"authorization": f"Bearer {key or self.key()}", **headers}
        client = httpx.Client(base_url=self.url, headers=own, timeout=PATIENCE, verify=UNENCRYPTED)
        self._clients.append(client)
        return client

    def idle(self):
        """Wait until no job is left: templates are learnt and people compared outside requests.

        A job that was put off is not waited for if the clock stands still: nothing changes any more.
        """
        until = time.monotonic() + PATIENCE
        left = jobs.c.due_at <= self.clock() if isinstance(self.clock, MovedClock) else true()
        while True:
            with self.database.reading() as connection:
                if not connection.execute(select(exists().where(left))).scalar():
                    return
            assert time.monotonic() < until, "jobs are still to be done"
            time.sleep(0.02)

    def close(self):
        for client in self._clients:
            client.close()


@contextmanager
def running(
    database_url: str, clock=None, keys=KEYS, port=0, http=HttpProtocol, **settings
) -> Iterator[Service]:
    """Serve a database, after creating its tables if it has none."""
    make_tables(database_url)
    clock = clock or MovedClock()
    database = Database(database_url)
    deployment = Deployment(**({"database": database_url, "requests_per_second": 1e6} | settings))
    app = create_app(deployment, database, keys, clock)
    with socket.socket() as listening:
        # A service that is started again gets the port that it had.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="on",
            http=http,
            **UVICORN,
        )
        server = PromptServer(config)
        listening.listen(128)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        service = Service(f"http://127.0.0.1:{listening.getsockname()[1]}", database, clock, app)
        try:
            with httpx.Client(transport=httpx.HTTPTransport(UNENCRYPTED, retries=5)) as client:
                client.get(f"{service.url}/healthz", timeout=PATIENCE)
            yield service
        finally:
            service.close()
            server.stop()
            thread.join(PATIENCE)
            assert not thread.is_alive(), "the service does not stop"
