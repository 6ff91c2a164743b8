"""Watched sessions of a running service: sending and receiving frames, and a stranger who gets one locked."""

from __future__ import annotations

import json

from websockets.exceptions import ConnectionClosed

from tests.service.running import connect
from tests.service.typists import N_SAMPLES, keystrokes_of
from tests.waiting import PATIENCE


def connected(service, user="ada", key=None):
    """A connection, with the key of a program or without one."""
    address = f"{service.url.replace('http', 'ws')}/v1/users/{user}/watch"
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return connect(address, additional_headers=headers, compression=None)


def said(socket, **frame):
    socket.send(json.dumps(frame))
    return heard(socket)


def heard(socket):
    return json.loads(socket.recv(timeout=PATIENCE))


def ended(socket):
    """The code and reason with which the service ends a connection on which nothing is sent."""
    try:
        while True:
            socket.recv(timeout=PATIENCE)
    except ConnectionClosed as closed:
        return closed.rcvd.code, closed.rcvd.reason


def rows_of(user, session, later=0.0):
    """A sample in the form of a frame, shifted in time."""
    columns = keystrokes_of(user, session)
    return [[row["keyname"], row["timepress"] + later, row["timerelease"] + later] for row in columns]


def lock(socket, user=1, first=1):
    """Type as this person until the session is locked; return the number of the next keystroke."""
    for n in range(200):
        rows = rows_of(user, n % N_SAMPLES, 1e5 * n)
        answer = said(socket, type="keys", first=first, keys=rows)
        first += len(rows)
        if answer["locked"]:
            assert heard(socket)["type"] == "lock"
            return first
    raise AssertionError("it was never locked")
