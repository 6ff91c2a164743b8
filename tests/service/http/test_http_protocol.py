"""One simulated connection: headers and rests of requests must arrive in time, and have a largest size."""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import uvicorn
from uvicorn.server import ServerState

from keydyn.service.http.gate import HEADERS, LARGEST_HEAD, LARGEST_REST, HttpProtocol
from keydyn.service.http.limits import ARRIVED


async def answering(scope, receive, send):
    """An application that is never called."""


class Later:
    """A loop on which time passes only when a test says so; it runs no application."""

    def __init__(self):
        self.timers = []

    def call_later(self, seconds, call, *_):
        timer = SimpleNamespace(seconds=seconds, call=call, is_off=False)
        timer.cancel = partial(setattr, timer, "is_off", True)
        self.timers.append(timer)
        return timer

    def create_task(self, coroutine, **_):
        coroutine.close()
        return Mock()

    def left(self):
        """The timers that run."""
        return [timer for timer in self.timers if not timer.is_off]


class Wire(asyncio.Transport):
    """A connection that keeps what is written to it."""

    def __init__(self):
        super().__init__()
        self.written, self.is_closed = b"", False

    def write(self, data):
        self.written += data

    def close(self):
        self.is_closed = True

    def is_closing(self):
        return self.is_closed


@pytest.fixture
def line():
    """A protocol with a connection, on a loop that stands still."""
    config = uvicorn.Config(answering, log_config=None, lifespan="off", http=HttpProtocol)
    protocol = HttpProtocol(config, ServerState(), {}, Later())
    protocol.connection_made(Wire())
    return protocol


HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


def test_headers_must_arrive_in_time(line):
    (timer,) = line.loop.left()
    assert timer.seconds == HttpProtocol.arrival_s
    # The beginning of a request does not put the end off.
    line.data_received(HEAD)
    assert line.loop.left() == [timer]
    timer.call()
    assert line.transport.written.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert b"\r\nconnection: close\r\n" in line.transport.written
    assert line.transport.is_closed
    for name, value in HEADERS:
        assert b"\r\n%b: %b\r\n" % (name, value) in line.transport.written


def test_the_time_ends_with_the_headers_or_the_connection(line):
    line.data_received(HEAD + b"\r\n")
    assert line.loop.left() == []
    line.data_received(HEAD)
    assert [timer.seconds for timer in line.loop.left()] == [HttpProtocol.arrival_s]
    line.connection_lost(None)
    assert line.loop.left() == []


@pytest.mark.parametrize("more", [0, 1])
def test_headers_have_a_largest_size(line, more):
    line.data_received(HEAD + b"X: ")
    line.data_received(b"x" * (LARGEST_HEAD - len(HEAD) - 3))
    assert not line.transport.is_closed
    line.data_received(b"x" * more)
    assert line.transport.written.startswith(b"HTTP/1.1 431 ") is line.transport.is_closed is bool(more)
    # Nothing is read after that.
    written = line.transport.written
    line.data_received(b"\r\n\r\n" + HEAD)
    assert line.transport.written == written


@pytest.mark.parametrize("more", [0, 1])
def test_the_rest_of_a_request_that_was_answered_must_arrive_in_time_and_has_a_largest_size(line, more):
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (2 * LARGEST_REST)
    line.data_received(head)
    line.cycle.response_complete = True
    line.on_response_complete()
    (timer,) = [timer for timer in line.loop.left() if timer.seconds == HttpProtocol.arrival_s]
    line.data_received(b"x" * (LARGEST_REST - len(head) + more))
    assert line.transport.is_closed is bool(more)
    timer.call()
    assert line.transport.is_closed


def test_the_next_request_begins_where_the_last_one_ended(line):
    line.data_received(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\n")
    assert ARRIVED not in line.scope["state"]
    line.cycle.response_complete = True
    line.on_response_complete()
    (timer,) = [timer for timer in line.loop.left() if timer.seconds == HttpProtocol.arrival_s]
    line.data_received(b"abc")
    assert ARRIVED in line.scope["state"]
    # Now the connection is kept as any other is, and the next headers may have the whole size.
    assert timer.is_off
    (kept,) = line.loop.left()
    assert kept.seconds == line.timeout_keep_alive
    line.data_received(HEAD + b"X: " + b"x" * (LARGEST_HEAD - len(HEAD) - 3))
    assert not line.transport.is_closed
