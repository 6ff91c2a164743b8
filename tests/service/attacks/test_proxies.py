"""Proxies named by the environment: the client sends them nothing."""

from __future__ import annotations

import socket
import threading

import pytest

from keydyn.client import Client, ServiceProblem, ServiceUnreachable
from tests.service.typists import keystrokes_of
from tests.waiting import PATIENCE

NAMED = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "WS_PROXY")


@pytest.fixture
def proxy(monkeypatch):
    """The address of a proxy that the environment names, and everything sent to it."""
    sent = []

    def serve(listening):
        while True:
            try:
                talk, _ = listening.accept()
            except OSError:
                return
            with talk:
                sent.append(talk.recv(1 << 16))
                talk.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        for name in NAMED:
            monkeypatch.setenv(name, address)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        thread = threading.Thread(target=serve, args=(listening,), daemon=True)
        thread.start()
        yield address, sent
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(PATIENCE)


def test_a_proxy_in_the_environment_is_not_used(attacked, proxy):
    with Client(attacked.url, attacked.key(), timeout_s=PATIENCE, patience_s=2 * PATIENCE) as client:
        client.create_user("ada")
        for session in range(5):
            client.enrol("ada", keystrokes_of(0, session))
        with client.watch("ada") as watch:
            watch.send(keystrokes_of(0, 8))
    assert proxy[1] == []


def test_a_proxy_that_is_asked_for_is_used(attacked, proxy):
    address, sent = proxy
    key = attacked.key()
    with pytest.raises(ValueError, match="without encryption"):
        Client(attacked.url, key, proxy=address)
    for url in ("https://keydyn.example.com", "http://keydyn.example.com"):
        with (
            Client(url, key, proxy=address, patience_s=0.5, allow_http=True) as client,
            pytest.raises((ServiceProblem, ServiceUnreachable)),
        ):
            client.user("ada")
    assert sent[0].startswith(b"CONNECT keydyn.example.com:443")
    # To a service with TLS, the key goes through the proxy only encrypted.
    assert key.encode() not in sent[0]
    assert sent[-1].startswith(b"GET http://keydyn.example.com/v1/users/ada")
