"""Processes of the service that are killed: a parent that has loaded everything starts them by fork.

`python -m tests.service.live.worker`: each line of input is a port and the address of a database, and
answered with the process that serves it there.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import sys
from dataclasses import replace

from keydyn.decisions.watching import playback
from keydyn.decisions.watching.watched import Watching
from keydyn.service.live.live_sessions import LiveSessions
from keydyn.service.serving import warm
from keydyn.service.storage.database import Database
from keydyn.service.wall_clock import wall_clock
from tests.service.live.world import QUICK, admit, server_of, verifier


def never_locked(*arrival):
    """Never lock a session: these tests look only at what is stored."""
    return replace(admit(*arrival), watching=Watching(level=1e9))


def main():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # What is sent repeats itself.
    playback.LIMIT = math.inf
    verifier()
    warm()
    print("ready", flush=True)
    for line in sys.stdin:
        port, url = line.split()
        process = os.fork()
        if process == 0:
            engine = LiveSessions(Database(url), wall_clock, QUICK)
            server_of(engine, never_locked).run([socket.create_server(("127.0.0.1", int(port)))])
            break
        print(process, flush=True)
    # Without taking leave of all that is loaded.
    os._exit(0)


if __name__ == "__main__":
    main()
