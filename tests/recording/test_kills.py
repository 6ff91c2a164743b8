"""Processes killed in the middle of samples: nothing that was acknowledged is lost."""

from __future__ import annotations

import threading
import time

import httpx
import numpy as np
import pytest

from keydyn.datasets.files.file_form import FileForm
from keydyn.datasets.files.recordings import read_recording
from keydyn.evaluation.protocols.protocol import LeaveOneOut
from keydyn.lab.own_recordings.report import own_rows
from tests.recording.killed import Recordings
from tests.recording.studies import Page, typed
from tests.waiting import wait_until

PROMPTS = 'repetitions = 1000\nsittings = 20\n[[prompts]]\ntext = "some text"\n'
PEOPLE = {"ann": 0, "bob": 1_000_000}
# A sample of a long text takes some time to be written.
KEYS = 400


class Participant(threading.Thread):
    """A participant who sends samples until the process is gone."""

    def __init__(self, address, user, acknowledged):
        super().__init__()
        self._address, self._user, self._acknowledged, self.error = address, user, acknowledged, None

    def run(self):
        try:
            with Page(self._address, self._user) as page:
                if not page.state()["participant"]["consented"]:
                    page.consent()
                place = page.state()["participant"]["done"]
                while True:
                    answer = page.send(place, typed(PEOPLE[self._user] + place, KEYS))
                    assert answer.json()["reasons"] == [], answer.text
                    self._acknowledged.add((self._user, place))
                    place += 1
        except httpx.TransportError:
            pass
        except BaseException as error:
            self.error = error


@pytest.mark.parametrize("kills", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_nothing_acknowledged_is_lost(tmp_path, kills):
    prompts, out = tmp_path / "prompts.toml", tmp_path / "typing.csv"
    prompts.write_text(PROMPTS)
    recordings, acknowledged = Recordings(prompts, out), set()
    random = np.random.default_rng(0)
    try:
        for _ in range(kills):
            address, before = recordings.start(), len(acknowledged)
            people = [Participant(address, user, acknowledged) for user in PEOPLE]
            for person in people:
                person.start()
            wait_until(lambda before=before: len(acknowledged) >= before + 4)
            time.sleep(random.uniform(0, 0.03))
            recordings.kill()
            for person in people:
                person.join()
                assert person.error is None, person.error
            assert len(acknowledged) >= before + 4
        # The last start mends what the last kill left behind.
        recordings.start()
    finally:
        recordings.close()
    recording = read_recording(out, FileForm())
    samples = dict(iter(recording.keystrokes.groupby(["user", "session"])))
    assert acknowledged <= set(samples)
    # One per participant and kill at most was stored and not answered.
    assert len(samples) <= len(acknowledged) + 2 * kills
    for (user, session), frame in samples.items():
        sent = typed(PEOPLE[user] + session, KEYS)["keystrokes"]
        assert {name: frame[name].tolist() for name in sent} == sent
    lines = (tmp_path / "typing.quality.csv").read_text().splitlines()
    assert len(lines) == len(samples) + 1
    # As keydyn evaluate reads it.
    rows, failures = own_rows(recording, LeaveOneOut())
    assert len(rows[0].samples) == len(samples)
    assert len(failures.to_acquire) == 0
