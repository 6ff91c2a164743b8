"""Processes that write to one SQLite file take turns."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import time

from keydyn.service.storage.sqlite import NEXT, WriteQueue
from tests.waiting import PATIENCE

WRITER = """
import sys
from keydyn.service.storage.sqlite import WriteQueue
file, log, letter = sys.argv[1:]
turns = WriteQueue(file, 600.0)
print("ready", flush=True)
for _ in sys.stdin:
    with turns.turn():
        with open(log, "a") as written:
            written.write(letter)
        print("my turn", flush=True)
        sys.stdin.readline()
"""
HOLDER = """
import sys
from keydyn.service.storage.sqlite import WriteQueue
turns = WriteQueue(sys.argv[1], 60.0)
with turns.turn():
    print("held", flush=True)
    sys.stdin.readline()
"""


def started(code, *arguments):
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline()
    return process


def tell(process, times=1):
    """Tell a process to take its turn, or to end it."""
    process.stdin.write(times * "go\n")
    process.stdin.flush()


def wait_until_next(file):
    """Wait until a process is waiting as the next one."""
    until = time.monotonic() + PATIENCE
    with file.open("r+b") as turns:
        while True:
            try:
                fcntl.lockf(turns, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, NEXT)
            except (BlockingIOError, PermissionError):
                return
            fcntl.lockf(turns, fcntl.LOCK_UN, 1, NEXT)
            assert time.monotonic() < until, "nobody waits"
            time.sleep(0.002)


def test_nobody_writes_twice_while_another_waits(tmp_path):
    turns, log = tmp_path / "turns", tmp_path / "log"
    writing, waiting = (started(WRITER, turns, log, letter) for letter in "ab")
    tell(writing)
    assert writing.stdout.readline()
    for _ in range(20):
        tell(waiting)
        wait_until_next(turns)
        # It gives up its turn and asks for another at once.
        tell(writing, 2)
        assert waiting.stdout.readline() == "my turn\n"
        wait_until_next(turns)
        # Now the other one does.
        tell(waiting)
        assert writing.stdout.readline() == "my turn\n"
    for writer in (writing, waiting):
        writer.communicate(timeout=PATIENCE)
        assert writer.returncode == 0
    assert log.read_text() == 20 * "ab" + "a"


def test_a_turn_ends_with_its_process_and_patience_ends_too(tmp_path):
    holder = started(HOLDER, tmp_path / "turns")
    with WriteQueue(str(tmp_path / "turns"), 0.2).turn():
        # Without the turn: it has waited long enough.
        assert holder.poll() is None
    holder.kill()
    holder.communicate()
    again = WriteQueue(str(tmp_path / "turns"), 60.0)
    with again.turn():
        pass
    again.close()


def test_without_its_file_there_are_no_turns(tmp_path):
    with WriteQueue(str(tmp_path / "no" / "folder" / "turns"), 60.0).turn():
        pass
