"""A PostgreSQL server for tests in a temporary folder, on a free loopback port; it ends with its owner."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.ports import free_port
from tests.service.databases import make_tables

# Stops the server and removes its folder when the tests end, however they end: the pipe that it reads is
# then closed. Signals from a terminal do not reach it, because it has a session of its own.
WATCHDOG = 'read -r line; "$0" stop -D "$1/data" -m immediate -s; rm -rf "$1"'


def binary(name: str) -> str | None:
    """The path of the newest PostgreSQL program; on Debian those of a server are not in the PATH."""
    folders = Path("/usr/lib/postgresql").glob("*/bin")
    newest = sorted(folders, key=lambda folder: float(folder.parent.name), reverse=True)
    return shutil.which(name, path=os.pathsep.join([*map(str, newest), os.environ.get("PATH", "")]))


class PostgresServer:
    """A PostgreSQL server that is running."""

    def __init__(self) -> None:
        pg_ctl, initdb = binary("pg_ctl"), binary("initdb")
        assert pg_ctl
        assert initdb
        self._pg_ctl = pg_ctl
        self.password, self._has_tables = secrets.token_hex(8), False
        self.folder = Path(tempfile.mkdtemp(prefix="keydyn-postgres-"))
        # The server refuses to run as root.
        self._user = _unprivileged() if os.getuid() == 0 else None
        (self.folder / "password").write_text(self.password)
        if self._user:
            for path in (self.folder, self.folder / "password"):
                os.chown(path, self._user.pw_uid, self._user.pw_gid)
        self._watchdog = subprocess.Popen(
            ["sh", "-c", WATCHDOG, pg_ctl, str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            **self._as_user(),
        )
        self._run(
            initdb, "-N", "-D", self._data, "-U", "keydyn", "-A", "scram-sha-256",
            "--pwfile", str(self.folder / "password"), "-E", "UTF8", "--locale", "C",
        )  # fmt: skip
        self._choose_port_and_start()
        with psycopg.connect(self.url("postgres")) as connection:
            # As files: since version 15, all pages would go through the log otherwise, which takes longer.
            self._copied = " STRATEGY file_copy" if connection.info.server_version >= 150_000 else ""

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def start(self) -> None:
        """Start the server on its earlier port."""
        options = f"-c listen_addresses=127.0.0.1 -c port={self.port} -c unix_socket_directories="
        # What is written outlasts the processes, which tests kill, if not the machine, which none does.
        options += " -c fsync=off -c full_page_writes=off"
        self._run(
            self._pg_ctl, "start", "-w", "-s", "-D", self._data, "-l", str(self.folder / "log"), "-o", options
        )

    def ensure(self) -> None:
        """Start the server unless it is running."""
        try:
            self._run(self._pg_ctl, "status", "-s", "-D", self._data)
        except subprocess.CalledProcessError:
            self.start()

    def stop(self) -> None:
        """Stop the server in its fast mode, which ends sessions."""
        self._run(self._pg_ctl, "stop", "-w", "-s", "-m", "fast", "-D", self._data)

    def kill(self) -> None:
        """Kill all processes of the server at once."""
        postmaster = int((self.folder / "data/postmaster.pid").read_text().split()[0])
        # First the one that would notice that others are gone.
        os.kill(postmaster, signal.SIGSTOP)
        processes = [*_children(postmaster), postmaster]
        for process in processes:
            os.kill(process, signal.SIGKILL)
        while any(_alive(process) for process in processes):
            time.sleep(0.01)
        # If dead processes are not collected, the server takes itself for one that still runs.
        (self.folder / "data/postmaster.pid").unlink()

    def close(self) -> None:
        """Stop the server for good, and remove its files."""
        self._watchdog.communicate()

    def url(self, name: str) -> str:
        """The address of a database of the server."""
        return f"postgresql://keydyn:{self.password}@127.0.0.1:{self.port}/{name}"

    @contextmanager
    def new_database(self, folder: Path | None = None, template: str | None = None) -> Iterator[str]:
        """The address of a database that exists within the block, as a copy of another if one is named; its
        tables are in the folder, if given.
        """
        name, place = f"test_{secrets.token_hex(8)}", ""
        if folder is not None:
            tables = folder / "tables"
            tables.mkdir(mode=0o700)
            if self._user:
                os.chown(tables, self._user.pw_uid, self._user.pw_gid)
            self.execute(f"CREATE TABLESPACE {name} LOCATION '{tables}'")
            place = f" TABLESPACE {name}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template or 'template1'}{self._copied}{place}")
        try:
            yield self.url(name)
        finally:
            self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            if folder is not None:
                self.execute(f"DROP TABLESPACE {name}")

    def with_tables(self) -> str:
        """The name of a database with all tables, for copying, because migrating takes much longer."""
        if not self._has_tables:
            self.execute("CREATE DATABASE with_tables")
            make_tables(self.url("with_tables"))
            self._has_tables = True
        return "with_tables"

    def execute(self, statement: str) -> None:
        """Run a statement outside of any transaction."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())

    def _choose_port_and_start(self) -> None:
        for last in (False, False, False, True):
            self.port = free_port()
            try:
                self.start()
            except subprocess.CalledProcessError:
                # Another process may have taken the port meanwhile.
                if last:
                    raise
            else:
                break

    def _run(self, *arguments: str) -> None:
        # Through a file: the server keeps what it inherits open, and a pipe would not end.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", **self._as_user()
            )
            output.seek(0)
            if done.returncode:
                error = subprocess.CalledProcessError(done.returncode, arguments)
                error.add_note(output.read().decode(errors="replace"))
                raise error

    def _as_user(self) -> dict[str, object]:
        if self._user is None:
            return {}
        return {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}


def _unprivileged() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("there is no user postgres or nobody to run PostgreSQL as")


def _children(process: int) -> list[int]:
    found = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False
    )
    return [int(word) for word in found.stdout.split()]


def _alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
