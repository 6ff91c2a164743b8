"""Serving an application on this machine while a block runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn


@contextmanager
def served(app: Any, **options: Any) -> Iterator[int]:
    """Serve an application, and yield its port."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, access_log=False, **options)
    socket = config.bind_socket()
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            thread.join(0.005)
        yield socket.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        socket.close()
