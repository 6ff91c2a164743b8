"""Processes of the service that are killed: a parent that has loaded everything starts them by fork.

Loading takes several seconds, and forking none, so that processes can be killed often. A forked process runs
the code of `keydyn serve`. `python -m tests.service.faults.served`: each line of input is a deployment, and
answered with the process that serves it.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from base64 import b64encode

import httpx

from keydyn.service.settings import Deployment
from tests.ports import free_port
from tests.service.running import UNENCRYPTED
from tests.waiting import PATIENCE, wait_until

KEY = b"k" * 32
ENVIRONMENT = {
    "KEYDYN_MASTER_KEY": b64encode(KEY).decode(),
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}


class Loaded:
    """The parent of processes that serve."""

    def __init__(self):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        command = [sys.executable, "-m", "tests.service.faults.served"]
        self._parent = subprocess.Popen(command, text=True, env=os.environ | ENVIRONMENT, **pipes)
        assert self._parent.stdout.readline() == "ready\n"

    def start(self, deployment):
        """Start a process, and return its id."""
        self._parent.stdin.write(deployment.model_dump_json() + "\n")
        self._parent.stdin.flush()
        return int(self._parent.stdout.readline())

    def close(self):
        self._parent.stdin.close()
        self._parent.stdout.close()
        self._parent.wait(PATIENCE)


class Served:
    """A database that is served by one process after another at the same address."""

    def __init__(self, loaded, database_url):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._deployment = Deployment(
            database=database_url, port=self.port, private_webhooks=True, requests_per_second=1e6
        )
        self._loaded, self.process = loaded, None

    def start(self):
        """Start a process, and wait until it answers."""
        self.process = self._loaded.start(self._deployment)
        wait_for_answer(self.url)

    def kill(self):
        """Kill the process, and wait until it is gone."""
        os.kill(self.process, signal.SIGKILL)
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                break
            time.sleep(0.005)
        self.process = None

    def close(self):
        if self.process is not None:
            self.kill()


def wait_for_answer(url):
    def answers():
        try:
            return httpx.get(f"{url}/readyz", timeout=PATIENCE, verify=UNENCRYPTED).status_code == 200
        except httpx.TransportError:
            return False

    wait_until(answers, "the service does not answer")


def main():
    from keydyn.service.http import app
    from keydyn.service.serving import serve, warm

    assert app
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    warm()
    print("ready", flush=True)
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            serve(Deployment.model_validate_json(line), lambda address: None)
            break
        print(process, flush=True)
    # Without taking leave of all that is loaded.
    os._exit(0)


if __name__ == "__main__":
    main()
