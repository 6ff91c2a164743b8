"""`keydyn serve` shows a key and a link on a terminal, and in a pipe the commands to get them."""

from __future__ import annotations

import os
import pty
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.waiting import PATIENCE

LINK = re.compile(r"(http://127\.0\.0\.1:\d+)/#link=(kdl_\S+)")
# As `make serve` starts it, in the folder of the environment.
BIN = Path(sys.executable).parent
PROGRAM = f"{BIN.name}/keydyn"
INSTALLED = pytest.mark.skipif(not (BIN / "keydyn").exists(), reason="keydyn is not installed as a program")


def started(tmp_path, *options, **streams):
    """`keydyn serve` in a process of its own, with a database of its own."""
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "COLUMNS": "200"}
    return subprocess.Popen([PROGRAM, "serve", *options], cwd=BIN.parent, env=environment, **streams)


def pasted(tmp_path, command):
    """The output of a command that was shown."""
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}
    done = subprocess.run(
        ["sh", "-c", command], cwd=BIN.parent, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@INSTALLED
def test_the_link_that_is_shown_opens_the_page(tmp_path):
    terminal, end = pty.openpty()
    log = (tmp_path / "log").open("w")
    with started(tmp_path, "--port", "0", stdin=end, stdout=end, stderr=log) as process:
        os.close(end)
        printed, shown, found = b"", "", None
        try:
            while found is None or "keys create" not in shown:
                printed += os.read(terminal, 4096)
                # The last character may not have come as a whole.
                shown = printed.decode(errors="ignore")
                found = LINK.search(shown) if shown.endswith("\n") else None
            address, link = found.groups()
            own = {"origin": address}
            answer = httpx.post(f"{address}/v1/session", json={"link": link}, headers=own, timeout=PATIENCE)
            assert answer.status_code == 201
            page = httpx.get(address, timeout=PATIENCE)
            assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
            # A person of the page is seen with the key that the last line makes, pasted as it is.
            token = {"authorization": f"Bearer {answer.json()['token']}", **own}
            httpx.post(f"{address}/v1/users", json={"id": "ada"}, headers=token, timeout=PATIENCE)
            (command,) = re.findall(r"^ +(\S+ service keys create .*?)\r?$", shown, re.MULTILINE)
            assert command.startswith(f"{PROGRAM} ")
            (key,) = re.findall(r"kdk_\S+", pasted(tmp_path, command))
            bearer = {"authorization": f"Bearer {key}"}
            people = httpx.get(f"{address}/v1/users", headers=bearer, timeout=PATIENCE).json()["users"]
            assert [one["id"] for one in people] == ["ada"]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
            os.close(terminal)
            log.close()
    assert "kdk_" in shown
    assert 'of the tenant "default"' in shown
    # What is secret is on the terminal only.
    assert "kdl_" not in (tmp_path / "log").read_text()


@INSTALLED
def test_without_a_terminal_it_says_how_to_get_a_link(tmp_path):
    database = f"sqlite:///{tmp_path / 'a service.db'}"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with started(tmp_path, "--port", "0", "--database", database, **pipes) as process:
        try:
            lines = [process.stdout.readline() for _ in range(4)]
            link = LINK.search(pasted(tmp_path, lines[2]))
            assert link is not None
            assert lines[0].startswith(f"keydyn service on {link[1]} ")
            assert not re.search("kd[kl]_", "".join(lines))
            own = {"origin": link[1]}
            answer = httpx.post(
                f"{link[1]}/v1/session", json={"link": link[2]}, headers=own, timeout=PATIENCE
            )
            assert answer.status_code == 201
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)


def test_a_port_in_use_asks_whether_it_is_running_already(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        command = [sys.executable, "-m", "keydyn", "serve", "--port", str(other.getsockname()[1])]
        environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Is the service running already? Then `keydyn service link`" in " ".join(done.stderr.split())
    # Nothing was made, and no key was shown.
    assert not list(tmp_path.rglob("*.db"))
    assert done.stdout == ""
