"""Requests byte by byte, in forms that no library would send."""

from __future__ import annotations

import json
import socket
import time

from tests.waiting import PATIENCE


def connected(service):
    """A connection to the service."""
    host, port = service.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), PATIENCE)


def raw(service, *parts, pause=0.0, half=False):
    """Send these bytes, and return the whole answer until the service ends the connection."""
    with connected(service) as talk:
        for n, part in enumerate(parts):
            if n:
                time.sleep(pause)
            try:
                talk.sendall(part)
            except OSError:
                break
        if half:
            talk.shutdown(socket.SHUT_WR)
        answer = b""
        while True:
            try:
                more = talk.recv(1 << 16)
            except ConnectionResetError:
                return answer
            if not more:
                return answer
            answer += more


def head(service, *more, method="POST", path="/v1/users", key=None):
    """The head of a request, with further headers."""
    host = service.url.removeprefix("http://")
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Content-Type: application/json", *more]
    if key is not None:
        lines.append(f"Authorization: Bearer {key}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def problem_in(answer):
    """Status and problem of a raw answer."""
    top, _, body = answer.partition(b"\r\n\r\n")
    lines = top.decode().lower().split("\r\n")
    assert "content-type: application/problem+json" in lines
    assert any(line.startswith("x-request-id: ") for line in lines)
    found = json.loads(body)
    assert found["status"] == int(lines[0].split()[1])
    return found["status"], found
