"""`keydyn serve` on a terminal shows a key and a link, in a pipe neither."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys

import httpx

LINK = re.compile(r"(http://127\.0\.0\.1:\d+)/#link=(kdl_\S+)")


def test_the_link_that_is_shown_opens_the_page(tmp_path):
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "keydyn", "serve", "--port", "0"]
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "COLUMNS": "200"}
    log = (tmp_path / "log").open("w")
    with subprocess.Popen(command, env=environment, stdin=end, stdout=end, stderr=log) as process:
        os.close(end)
        shown, found = "", None
        try:
            while found is None:
                shown += os.read(terminal, 4096).decode()
                found = LINK.search(shown) if shown.endswith("\n") else None
            address, link = found.groups()
            own = {"origin": address}
            answer = httpx.post(f"{address}/v1/session", json={"link": link}, headers=own, timeout=120.0)
            assert answer.status_code == 201
            page = httpx.get(address, timeout=120.0)
            assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(180)
            os.close(terminal)
            log.close()
    assert "kdk_" in shown
    # What is secret is on the terminal only.
    assert "kdl_" not in (tmp_path / "log").read_text()
