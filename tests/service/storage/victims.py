"""Processes that tests kill: each line of standard input names the work of the next one.

They are forked from one process that has imported everything, so that a hundred of them start in seconds.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import Connection, Engine, event

from keydyn.service.storage import audit, master_keys
from keydyn.service.storage.database import Database
from keydyn.service.storage.prepared import Prepared
from keydyn.service.storage.upgrading import upgrade
from tests.service.storage.rows import add_user

THREADS = 4


class Victims:
    """The parent process, which forks the others."""

    def __enter__(self) -> Self:
        self._parent = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._parent.communicate()

    def start(self, task: str, *arguments: str) -> int:
        """Start a process, and return its id."""
        assert self._parent.stdin
        assert self._parent.stdout
        self._parent.stdin.write("\t".join([task, *arguments]) + "\n")
        self._parent.stdin.flush()
        return int(self._parent.stdout.readline())


def kill(process: int) -> None:
    """Kill a process, which may have ended by itself, and wait until it is gone."""
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return
    wait_for(process)


def wait_for(process: int) -> None:
    """Wait until a process is gone."""
    while True:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        time.sleep(0.002)


def write(url: str, name: str, acknowledged: str) -> None:
    """Add people and entries of the audit log until killed, and note each number acknowledged.

    The process also ends if the tests have ended.
    """
    database, parent = Database(url), os.getppid()
    notes = os.open(acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def work(thread: int) -> None:
        number = 0
        while os.getppid() == parent:
            number += 1
            user = f"{name}-{thread}-{number}"

            def change(connection, user=user):  # type: ignore[no-untyped-def]
                add_user(connection, user, "t")
                audit.append(connection, "t", audit.Entry(0, "service", "added", user))

            database.write(change)
            os.write(notes, f"{user}\n".encode())

    for thread in range(THREADS - 1):
        threading.Thread(target=work, args=(thread,)).start()
    work(THREADS - 1)


def bring_up_to_date(url: str, last: str, steps: str) -> None:
    """Migrate a database."""
    with dying(int(last), Path(steps)):
        upgrade(Database(url))


def rotate(url: str, key_file: str, last: str, steps: str) -> None:
    """Replace the master key, in small steps."""
    with dying(int(last), Path(steps)):
        master_keys.rotate(Database(url), Path(key_file), {}, batch=5)


@contextmanager
def dying(last: int, steps: Path) -> Iterator[None]:
    """Kill this process before one of its steps: a statement, a commit, or the replacement of a file.

    If it reaches its end, it notes the number of steps.
    """
    count = 0

    def step(*_: object) -> None:
        nonlocal count
        count += 1
        if count == last:
            os.kill(os.getpid(), signal.SIGKILL)

    for name in ("before_cursor_execute", "commit"):
        event.listen(Engine, name, step)
    run = Prepared._run

    def running(self: Prepared, connection: Connection, values: dict[str, object]) -> object:
        step()
        return run(self, connection, values)

    Prepared._run = running  # type: ignore[method-assign]
    replace = os.replace

    def stepping(source: str, target: str) -> None:
        step()
        replace(source, target)
        step()

    os.replace = stepping  # type: ignore[assignment]
    yield
    steps.write_text(str(count))


TASKS: dict[str, Callable[..., None]] = {"write": write, "upgrade": bring_up_to_date, "rotate": rotate}


def main() -> None:
    """Fork a process for each line."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        task, *arguments = line.rstrip("\n").split("\t")
        process = os.fork()
        if process == 0:
            TASKS[task](*arguments)
            os._exit(0)
        print(process, flush=True)


if __name__ == "__main__":
    main()
