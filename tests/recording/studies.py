"""Recordings for tests: a study, its files, samples to send, and the page's server in this process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import uvicorn

from keydyn.recording.participants import COUNTS, Participants, RecorderQuality
from keydyn.recording.prompts import Study, read_study
from keydyn.recording.recorded import opened
from keydyn.recording.server import create_app
from keydyn.service.http.gate import HttpProtocol
from keydyn.service.wall_clock import wall_clock
from tests.waiting import PATIENCE

SECRET = "the-secret-of-this-test"
NOTHING: dict[str, Any] = dict.fromkeys(RecorderQuality.__struct_fields__, 0) | {"clock_tick_ms": None}


def typed(seed: int, n_keys: int = 30, **quality: int) -> dict[str, Any]:
    """A sample as the page sends it, a different one for each seed."""
    random = np.random.default_rng(seed)
    press = np.cumsum(random.lognormal(5, 0.4, n_keys))
    press -= press[:1]
    columns = {
        "keyname": random.choice(list("abcdefgh"), n_keys).tolist(),
        "timepress": press.round(3).tolist(),
        "timerelease": (press + random.uniform(40, 120, n_keys)).round(3).tolist(),
    }
    return {"keystrokes": columns, "quality": NOTHING | quality}


def study_of(folder: Path, text: str, name: str = "study.toml") -> Study:
    """The study that a file of prompts with these contents defines."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_study(path)[0]


@contextmanager
def participants_of(
    folder: Path, prompts: str, out: str = "typing.csv", users=("ann",), clock=wall_clock
) -> Iterator[Participants]:
    """The participants of a recording, new or continued."""
    path = folder / "study.toml"
    path.write_text(prompts, encoding="utf-8")
    study, sha256 = read_study(path)
    with opened(folder / out, path, sha256, COUNTS) as (recorded, about):
        yield Participants(study, recorded, about, users, clock)


@contextmanager
def served(participants: Participants, port: int = 0) -> Iterator[str]:
    """Serve the page, and yield its address, with the secret."""
    with socket.create_server(("127.0.0.1", port)) as listening:
        app = create_app(participants, SECRET)
        config = uvicorn.Config(app, log_config=None, lifespan="off", http=HttpProtocol)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/#{SECRET}"
        finally:
            server.should_exit = True
            thread.join(PATIENCE)


class Page:
    """The requests of the page, without a browser."""

    def __init__(self, address: str, user: str = "ann", **headers: str) -> None:
        url, _, secret = address.partition("#")
        own = {"authorization": f"Bearer {secret}", **headers}
        self.client, self.user = httpx.Client(base_url=url, headers=own, timeout=PATIENCE), user

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()

    def state(self) -> dict[str, Any]:
        """The state that the page would show."""
        answer = self.client.post("/state", json={"user": self.user})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def consent(self) -> httpx.Response:
        """Consent to the text that is shown."""
        body = {"user": self.user, "consent_sha256": self.state()["consent_sha256"]}
        return self.client.post("/consent", json=body)

    def send(self, place: int, sample: dict[str, Any]) -> httpx.Response:
        """Send a sample."""
        return self.client.post("/samples", json={"user": self.user, "place": place, **sample})
