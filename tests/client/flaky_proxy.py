"""A proxy between a client and a server on this machine, which loses connections at the worst moments."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

# What becomes of something that the client sends: it arrives and is answered; it does not arrive; it arrives,
# and the answer is lost, wholly or in part.
PASS, LOST, ANSWER_LOST, ANSWER_CUT = "pass", "lost", "answer lost", "answer cut"


class FlakyProxy:
    """Forwards connections to a port of this machine; `fate` decides what happens to each message."""

    def __init__(self, port: int, fate: Callable[[], str]) -> None:
        self._target, self._fate = port, fate
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.connections = 0

    @property
    def url(self) -> str:
        """The address of the service for the client."""
        return f"http://127.0.0.1:{self.port}"

    def run(self) -> None:
        """Accept connections until closed."""
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self.connections += 1
                threading.Thread(target=self._connection, args=[client], daemon=True).start()

    def close(self) -> None:
        """Accept no more connections."""
        # A close alone does not wake up who waits for connections.
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _connection(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._target)) as server:
            fate = [PASS]
            answers = threading.Thread(target=self._answers, args=[client, server, fate], daemon=True)
            answers.start()
            with suppress(OSError):
                while sent := client.recv(1 << 20):
                    fate[0] = self._fate()
                    if fate[0] == LOST:
                        break
                    server.sendall(sent)
            _hang_up(client, server)
            # Both are closed when nobody uses them: their numbers are given to other connections at once.
            answers.join()

    @staticmethod
    def _answers(client: socket.socket, server: socket.socket, fate: list[str]) -> None:
        with suppress(OSError):
            while answer := server.recv(1 << 20):
                if fate[0] == ANSWER_CUT:
                    client.sendall(answer[: len(answer) // 2])
                if fate[0] in (ANSWER_CUT, ANSWER_LOST):
                    break
                client.sendall(answer)
        _hang_up(client, server)


def _hang_up(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def flaky(port: int, fate: Callable[[], str]) -> Iterator[FlakyProxy]:
    """Run a proxy on a free port."""
    proxy = FlakyProxy(port, fate)
    thread = threading.Thread(target=proxy.run, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.close()
        thread.join()


def planned(*fates: str) -> Callable[[], str]:
    """Make a source of these fates, one after the other, and of success from then on."""
    left = list(fates)
    return lambda: left.pop(0) if left else PASS
