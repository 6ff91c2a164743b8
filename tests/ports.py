"""Ports of this machine to listen at."""

from __future__ import annotations

import contextlib
import random
import socket

CHANCE = random.SystemRandom()


def free_port() -> int:
    """A port that is free now and can be taken again later: the system gives none of this range by itself."""
    while True:
        port = CHANCE.randint(15_000, 30_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
