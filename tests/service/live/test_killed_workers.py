"""Processes killed while sessions are watched: what was reported as durable is, the rest is sent again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed

from tests.ports import free_port
from tests.service.live.world import PEOPLE, Talk, make_database, session_of, undisturbed
from tests.waiting import PATIENCE

FRAME = 5


class Workers:
    """Processes that serve a database, one after another."""

    def __init__(self):
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "tests.service.live.worker"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._parent = subprocess.Popen(command, text=True, env=environment, **pipes)
        assert self._parent.stdout.readline() == "ready\n"

    def start(self, url):
        """Start a process, wait until it answers, and return it with its port."""
        port = free_port()
        self._parent.stdin.write(f"{port} {url}\n")
        self._parent.stdin.flush()
        process = int(self._parent.stdout.readline())
        for _ in range(6000):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return process, port
            except OSError:
                time.sleep(0.02)
        raise AssertionError("the worker does not answer")

    def close(self):
        self._parent.stdin.close()
        self._parent.stdout.close()
        self._parent.wait(PATIENCE)


@pytest.fixture(scope="module")
def workers():
    found = Workers()
    yield found
    found.close()


def long_session():
    """A long session, which repeats one text."""
    rows = session_of(PEOPLE[0])
    span = rows[-1][1] + 250.0
    return [[key, press + n * span, release + n * span] for n in range(100) for key, press, release in rows]


def typed_until_killed(talk, rows, seen, killer):
    """Send frames without waiting for each answer; return the last number reported as durable.

    The killer starts when something has become durable.
    """
    begin = sent = durable = talk.welcome["durable"]
    in_flight = 0
    try:
        while sent + FRAME <= len(rows):
            talk.keys(sent + 1, rows[sent : sent + FRAME])
            sent += FRAME
            in_flight += 1
            time.sleep(0.004)
            while in_flight > 3:
                found = talk.hear()
                in_flight -= 1
                assert found["type"] == "trust"
                assert found["durable"] >= durable
                durable = found["durable"]
                if durable > begin and killer.ident is None:
                    killer.start()
                pairs = zip(found["trust"], found["suspicion"], strict=True)
                seen |= {found["first"] + n: pair for n, pair in enumerate(pairs)}
    except (ConnectionClosed, OSError):
        return durable
    raise AssertionError("the session was too short")


@pytest.mark.parametrize("times", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_nothing_durable_is_lost_when_workers_are_killed(workers, database_url, times):
    make_database(database_url).close()
    random = np.random.default_rng(7)
    rows, seen, session, durable = long_session(), {}, None, 0
    for _ in range(times):
        process, port = workers.start(database_url)
        talk = Talk(port, PEOPLE[0], {"type": "hello", "session": session})
        assert talk.welcome["type"] == "welcome"
        session = talk.welcome["session"]
        assert talk.welcome["durable"] >= durable
        assert not talk.welcome["restarted"]
        killer = threading.Timer(random.uniform(0.0, 0.4), os.kill, (process, signal.SIGKILL))
        durable = typed_until_killed(talk, rows, seen, killer)
        killer.join()
        talk.drop()
    process, port = workers.start(database_url)
    talk = Talk(port, PEOPLE[0], {"type": "hello", "session": session})
    assert talk.welcome["durable"] >= durable > 0
    talk.drop()
    os.kill(process, signal.SIGKILL)
    known = np.array(sorted(seen))
    trust, suspicion, _ = undisturbed(PEOPLE[0], rows[: known[-1]], whole=True)
    found = np.array([[np.nan if value is None else value for value in seen[n]] for n in known.tolist()])
    np.testing.assert_allclose(found[:, 0], trust[known - 1], rtol=1e-12)
    np.testing.assert_allclose(found[:, 1], suspicion[known - 1], rtol=1e-12)
