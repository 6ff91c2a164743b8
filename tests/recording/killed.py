"""Recordings that are killed: a parent that has loaded everything starts their processes by fork.

`python -m tests.recording.killed PROMPTS OUT`: each line of input starts a process, which runs the code of
keydyn record; the answer is its number and the address of its page.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from keydyn.recording.participants import COUNTS, Participants
from keydyn.recording.prompts import read_study
from keydyn.recording.recorded import opened
from keydyn.recording.server import serve
from tests.waiting import PATIENCE


class Recordings:
    """One recording, made by one process after another."""

    def __init__(self, prompts: Path, out: Path) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        command = [sys.executable, "-m", "tests.recording.killed", str(prompts), str(out)]
        self._parent = subprocess.Popen(command, text=True, **pipes)
        self._process = None

    def start(self) -> str:
        """Start a process, and return the address of its page."""
        self._parent.stdin.write("\n")
        self._parent.stdin.flush()
        process, address = self._parent.stdout.readline().split()
        self._process = int(process)
        return address

    def kill(self) -> None:
        """Kill the process at once."""
        os.kill(self._process, signal.SIGKILL)
        self._process = None

    def close(self) -> None:
        """End all processes."""
        if self._process is not None:
            self.kill()
        self._parent.stdin.close()
        self._parent.wait(PATIENCE)
        self._parent.stdout.close()


def main() -> None:
    prompts, out = map(Path, sys.argv[1:])
    study, sha256 = read_study(prompts)
    for _ in sys.stdin:
        process = os.fork()
        if not process:
            with opened(out, prompts, sha256, COUNTS) as (recorded, about):
                serve(
                    Participants(study, recorded, about),
                    0,
                    lambda address: print(os.getpid(), address, flush=True),
                )
            os._exit(0)
        # Gone before the next one opens the files.
        os.waitpid(process, 0)


if __name__ == "__main__":
    main()
