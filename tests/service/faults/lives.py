"""Clients that do not give up: they create, enrol, verify and watch people, one after another.

Everything that the service acknowledges is recorded. Requests without an answer are sent again, with the same
`Idempotency-Key`, until they are answered.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections import Counter

import httpx
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from tests.service.running import UNENCRYPTED, connect
from tests.service.typists import N_SAMPLES, N_USERS, keystrokes_of
from tests.waiting import PATIENCE

ENROLLED, VERIFIED, FRAME = 3, 4, 20


class StoppedError(Exception):
    """The test has ended."""


class Acknowledged:
    """The writes that the service has acknowledged as stored."""

    def __init__(self):
        self.lock = threading.Lock()
        self.users, self.complete = set(), set()
        self.samples, self.verified, self.durable = {}, Counter(), {}
        self.statuses = Counter()

    def total(self):
        """The number of writes acknowledged."""
        with self.lock:
            return len(self.users) + len(self.samples) + self.verified.total()


class Life(threading.Thread):
    """A client that takes one person after another through their life."""

    def __init__(self, url, key, number, acknowledged):
        super().__init__(daemon=True)
        self._url, self._key, self._number, self._noted = url, key, number, acknowledged
        self._stop_asked, self.error = threading.Event(), None
        headers = {"authorization": f"Bearer {key}"}
        self._client = httpx.Client(base_url=url, headers=headers, timeout=PATIENCE, verify=UNENCRYPTED)

    def stop(self):
        """Finish what was begun, and stop."""
        self._stop_asked.set()

    def run(self):
        n = 0
        try:
            while True:
                self._live(f"life-{self._number}-{n}", (self._number + n) % N_USERS)
                n += 1
        except StoppedError:
            pass
        except BaseException as error:
            self.error = error
        finally:
            self._client.close()

    def _live(self, name, typist):
        noted = self._noted
        self._write("/v1/users", {"id": name}, 201)
        with noted.lock:
            noted.users.add(name)
        for session in range(ENROLLED):
            found = self._write(
                f"/v1/users/{name}/samples", {"keystrokes": keystrokes_of(typist, session)}, 201
            )
            with noted.lock:
                noted.samples[found["sample"]] = name
                if found["profile"]["complete"]:
                    noted.complete.add(name)
        for session in range(ENROLLED, ENROLLED + VERIFIED):
            self._write(f"/v1/users/{name}/verify", {"keystrokes": keystrokes_of(typist, session)}, 200)
            with noted.lock:
                noted.verified[name] += 1
        rows = [
            [row["keyname"], row["timepress"] + 1e6 * session, row["timerelease"] + 1e6 * session]
            for session in range(ENROLLED + VERIFIED, N_SAMPLES)
            for row in keystrokes_of(typist, session)
        ]
        self._watch(name, rows)

    def _write(self, path, body, status):
        """Send a write until it is answered, and return the answer."""
        if self._stop_asked.is_set():
            raise StoppedError
        headers, until = {"idempotency-key": secrets.token_hex(16)}, time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                answer = self._client.post(path, json=body, headers=headers)
            except httpx.TransportError:
                time.sleep(0.02)
                continue
            with self._noted.lock:
                self._noted.statuses[answer.status_code] += 1
            if answer.status_code == 503:
                assert answer.headers["content-type"] == "application/problem+json"
                time.sleep(0.05)
                continue
            assert answer.status_code == status, (path, answer.text)
            return answer.json()
        raise AssertionError(f"no answer to {path} for {PATIENCE} s")

    def _watch(self, name, rows):
        """Send all keystrokes, over several connections if necessary, until all are durable."""
        session, durable, until = None, 0, time.monotonic() + PATIENCE
        address = f"{self._url.replace('http', 'ws')}/v1/users/{name}/watch"
        headers = {"authorization": f"Bearer {self._key}"}
        while durable < len(rows):
            if self._stop_asked.is_set():
                raise StoppedError
            assert time.monotonic() < until, "a session does not get on"
            try:
                with connect(address, additional_headers=headers, compression=None, close_timeout=1) as talk:
                    talk.send(json.dumps({"type": "hello", "session": session}))
                    welcome = json.loads(talk.recv(120))
                    if welcome["type"] == "problem" and welcome["status"] == 503:
                        time.sleep(0.05)
                        continue
                    assert welcome["type"] == "welcome", welcome
                    assert welcome["durable"] >= durable
                    session, durable = welcome["session"], welcome["durable"]
                    sent = durable
                    while durable < len(rows):
                        frame = rows[sent : sent + FRAME]
                        # At the end, what was sent is sent again until it is durable.
                        first = sent + 1 if frame else len(rows)
                        talk.send(json.dumps({"type": "keys", "first": first, "keys": frame or rows[-1:]}))
                        found = json.loads(talk.recv(120))
                        if found["type"] == "lock":
                            continue
                        assert found["type"] == "trust", found
                        sent, durable = sent + len(frame), found["durable"]
                        with self._noted.lock:
                            self._noted.durable[session] = durable
                        time.sleep(0.01 if frame else 0.1)
                    talk.send(json.dumps({"type": "bye"}))
            except (ConnectionClosed, InvalidHandshake, OSError, TimeoutError):
                time.sleep(0.02)
