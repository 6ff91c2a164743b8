"""Accuracy of recorded times: `python -m tests.service.pages.timing` types recordings in a browser.

Simulated samples are typed twice: with the times in the events themselves, as an operating system passes
them on; and in real time, in which case each event has the time at which it reaches the browser. In real time
the page is idle first, and then busy for 50 ms in every 100. The times that the recorder has are compared
with those of the recording, or with the moments at which the events were sent, both counted from the first
press; beside them stand the times that a page sees if it reads the clock when it handles an event.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from websockets.sync.client import ClientConnection, connect

from keydyn.datasets import make_typists
from tests.service.pages.chromium import FLAGS, chromium
from tests.service.pages.keyboard import KEYS
from tests.waiting import PATIENCE

SAMPLES, N_KEYS = 5, 60
PAGE = b"<!doctype html><title>Timing</title><textarea></textarea>"
SET_UP = """import("/recorder.js").then(({Recorder}) => {
    const field = document.querySelector("textarea");
    window.recorder = new Recorder(field);
    window.handled = [];
    const note = () => handled.push(performance.now());
    for (const kind of ["keydown", "keyup"]) field.addEventListener(kind, note);
    field.focus();
})"""
BUSY = """setInterval(() => { const end = performance.now() + 50; while (performance.now() < end); }, 100)"""
Event = tuple[float, bool, str]


class Devtools:
    """A page of a browser over the DevTools protocol, so that sending does not wait for the page."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection, self._number = connection, 0

    def send(self, method: str, **parameters: Any) -> int:
        """Send a command, and return its number."""
        self._number += 1
        self._connection.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        return self._number

    def answer(self, number: int) -> Any:
        """The answer to the command of this number."""
        while True:
            frame = json.loads(self._connection.recv(timeout=PATIENCE))
            if frame.get("id") == number:
                return frame["result"]

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page."""
        number = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        return self.answer(number)["result"].get("value")

    def key(self, event: Event, timestamp: float | None) -> int:
        """Send a key event, at this time in seconds since 1970 or as it comes."""
        _, down, key = event
        code, text, number = KEYS[key]
        pressed = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
        kind = pressed if down else {"type": "keyUp"}
        when = {} if timestamp is None else {"timestamp": timestamp}
        return self.send(
            "Input.dispatchKeyEvent",
            code=code,
            key=text or code,
            windowsVirtualKeyCode=number,
            **kind,
            **when,
        )


class Handler(SimpleHTTPRequestHandler):
    """Serves the recorder and an empty page, without a log."""

    def do_GET(self) -> None:
        """Answer with the recorder or the page."""
        module = self.path == "/recorder.js"
        self.send_response(200)
        self.send_header("content-type", "text/javascript" if module else "text/html")
        self.end_headers()
        self.wfile.write((files("keydyn.service") / "pages" / "recorder.js").read_bytes() if module else PAGE)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@contextmanager
def opened(program: str) -> Iterator[Devtools]:
    """A page with a recorder in a browser of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        address = f"http://127.0.0.1:{server.server_port}/"
        flags = [
            "--headless",
            "--no-sandbox",
            "--remote-debugging-port=0",
            f"--user-data-dir={folder}",
            *FLAGS,
        ]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen([program, *flags, address], **quiet) as process:
            try:
                with connect(_page_of(Path(folder) / "DevToolsActivePort"), max_size=None) as connection:
                    page = Devtools(connection)
                    page.evaluate(SET_UP)
                    yield page
            finally:
                process.terminate()
                process.wait(PATIENCE)
                server.shutdown()
                server.server_close()


def _page_of(file: Path) -> str:
    """The address at which the browser's page is controlled, once there is one."""
    for _ in range(600):
        time.sleep(0.05)
        if file.exists() and (lines := file.read_text().splitlines()):
            with urllib.request.urlopen(f"http://127.0.0.1:{lines[0]}/json") as answer:
                pages = [page for page in json.load(answer) if page["type"] == "page"]
            if pages and pages[0]["title"] == "Timing":
                return str(pages[0]["webSocketDebuggerUrl"])
    raise TimeoutError("the browser did not start")


def recordings(n_samples: int = SAMPLES) -> list[list[Event]]:
    """The events of simulated samples: time in milliseconds, whether it is a press, and the key."""
    frame = make_typists(n_users=n_samples, n_samples=1, text="free", n_keys=N_KEYS, random_state=2)
    found = []
    for _, sample in frame.groupby("user", sort=False):
        presses = zip(sample["timepress"], [True] * len(sample), sample["keyname"], strict=True)
        releases = zip(sample["timerelease"], [False] * len(sample), sample["keyname"], strict=True)
        found.append(sorted([*presses, *releases]))
    return found


def recorded(page: Devtools) -> np.ndarray[Any, Any]:
    """All times of the page's sample, in order, from its first press; this empties the recorder."""
    rows = page.evaluate(
        "(() => { const {keystrokes} = recorder.sample(); recorder.clear(); return keystrokes; })()"
    )
    times = [row[name] for row in rows for name in ("timepress", "timerelease")]
    return np.sort(np.array(times, dtype=float))


def with_given_times(page: Devtools, events: list[Event]) -> np.ndarray[Any, Any]:
    """Errors of recorded times if the events carry the times of the recording."""
    now = time.time() + 1.0
    numbers = [page.key(event, now + event[0] / 1000) for event in events]
    page.answer(numbers[-1])
    return recorded(page) - np.array([at for at, _, _ in events])


def in_real_time(page: Devtools, events: list[Event]) -> dict[str, np.ndarray[Any, Any]]:
    """Errors against the times of sending, of recorded times and of times that the page reads itself."""
    page.evaluate("handled.length = 0")
    began, sent = time.perf_counter(), []
    for event in events:
        time.sleep(max(0.0, began + event[0] / 1000 - time.perf_counter()))
        sent.append(time.perf_counter())
        number = page.key(event, None)
    page.answer(number)
    moments = 1000 * (np.array(sent) - sent[0])
    handled = np.array(page.evaluate("handled"), dtype=float)
    return {"recorder": recorded(page) - moments, "handler": handled - handled[0] - moments}


def spread(errors: np.ndarray[Any, Any], around: bool = True) -> list[str]:
    """Sizes of errors, `around` their median if they share a delay, which does not change the rhythm."""
    away = np.abs(errors - np.median(errors)) if around else np.abs(errors)
    return [f"{np.median(away):.2f}", f"{np.quantile(away, 0.99):.2f}", f"{away.max():.2f}"]


def main() -> None:
    """Measure, and print a table in Markdown."""
    program = chromium()
    if program is None:
        sys.exit("Chromium is not installed")
    samples = recordings()
    with opened(program) as page:
        given = np.concatenate([with_given_times(page, events) for events in samples])
        rows = [["with the recording's own times", "the recorder", *spread(given, around=False)]]
        for state in ("idle", "busy"):
            if state == "busy":
                page.evaluate(BUSY)
            found = [in_real_time(page, events) for events in samples[:2]]
            for who, name in (("recorder", "the recorder"), ("handler", "a clock read by the handler")):
                errors = np.concatenate([each[who] for each in found])
                rows.append([f"in real time, page {state}", name, *spread(errors)])
    print("| events | times of | median, ms | 99 % below, ms | largest, ms |")
    print("| --- | --- | ---: | ---: | ---: |")
    for row in rows:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
