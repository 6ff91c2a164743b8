"""Processes that write to one SQLite file take turns."""

from __future__ import annotations

import subprocess
import sys
from itertools import groupby

from keydyn.service.storage.sqlite import WriteQueue

WRITER = """
import os, sys, time
from keydyn.service.storage.sqlite import WriteQueue
file, log, letter = sys.argv[1:]
turns = WriteQueue(file, 60.0)
log = os.open(log, os.O_WRONLY | os.O_APPEND)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(60):
    with turns.turn():
        os.write(log, letter.encode())
        time.sleep(0.005)
"""
HOLDER = """
import sys, time
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


def test_nobody_writes_twice_while_another_waits(tmp_path):
    log = tmp_path / "log"
    log.touch()
    writers = [started(WRITER, tmp_path / "turns", log, letter) for letter in "ab"]
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=120)
        assert writer.returncode == 0
    written = log.read_text()
    assert sorted(written) == sorted(60 * "a" + 60 * "b")
    # Up to the end of the one that finished first, and from the start of the other.
    both = written[written.index("b") if written[0] == "a" else written.index("a") :]
    both = both[: min(both.rindex("a"), both.rindex("b"))]
    runs = [len(list(run)) for _, run in groupby(both)]
    assert len(runs) > 40
    # One that is not scheduled in time cannot ask in time.
    assert runs.count(1) >= 0.8 * len(runs)


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
