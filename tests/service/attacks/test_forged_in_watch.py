"""A watched session is locked if a machine types with times made up from a person's recordings."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

from keydyn.decisions.liveness.hands import REASONS
from keydyn.lab.forgeries import FORGERS
from keydyn.population import PopulationModel
from tests.service.attacks.watching import connected, heard, said

FRAME = 20
NAMES = (f"forged-{n}" for n in count())


@pytest.fixture(scope="module")
def service(attacked):
    return attacked


@pytest.fixture(scope="module")
def drawn():
    """Samples of a fictitious person, drawn from the population."""
    people = PopulationModel.shipped()
    return people.retyped(people.draw(1, 1), 8, 150, 1)


def rows_of(samples):
    """Keystrokes of samples in the form of a frame, one sample after the other."""
    of = samples.sequences
    tau, hold = (of.X[:, of.feature_names.index(name)] for name in ("tau", "duration"))
    press = np.cumsum(np.where(np.isnan(tau), 300.0, tau))
    names = of.event_types[of.codes].tolist()
    return [list(row) for row in zip(names, press.tolist(), (press + hold).tolist(), strict=True)]


@pytest.fixture
def key(service, drawn):
    """The key of a new tenant, as sessions stay locked; suspicion alone hardly locks its one person's."""
    key = service.key(next(NAMES))
    client = service.client(key)
    settings = client.get("/v1/settings").json() | {"lockouts_per_hour": 0.01}
    assert client.put("/v1/settings", json=settings).status_code == 200
    assert client.post("/v1/users", json={"id": "ada"}).status_code == 201
    for sample in range(5):
        names = ("keyname", "timepress", "timerelease")
        sent = {"keystrokes": [dict(zip(names, row, strict=True)) for row in rows_of(drawn[[sample]])]}
        assert client.post("/v1/users/ada/samples", json=sent).status_code == 201
    return key


def played(socket, rows, first):
    """Send keys in frames until one locks the session; return the answers and the lock."""
    answers = []
    for begin in range(first - 1, len(rows), FRAME):
        answers.append(said(socket, type="keys", first=begin + 1, keys=rows[begin : begin + FRAME]))
        if answers[-1]["locked"]:
            return answers, heard(socket)
    return answers, None


def test_averages_are_noticed_although_the_connection_drops(service, key, drawn):
    recorded, texts = drawn[[0, 1, 2]], drawn[[5, 6, 7]]
    rows = rows_of(FORGERS["averages by pair"].forge(recorded, texts, np.random.default_rng(0)))
    with connected(service, "ada", key) as socket:
        session = said(socket, type="hello")["session"]
        answers, lock = played(socket, rows[:60], 1)
        assert lock is None
        # It is not known before there are a hundred keys.
        assert not any("typed" in one for one in answers)
        said(socket, type="bye")
    with connected(service, "ada", key) as socket:
        assert said(socket, type="hello", session=session)["durable"] == 60
        answers, lock = played(socket, rows, 61)
        assert answers[-1]["typed"] == "no"
        assert 100 <= lock["at"] <= 300
        assert lock["reason"] in REASONS
        entries = service.client(key).get("/v1/audit", params={"action": "session.locked"}).json()["entries"]
        assert entries[0]["details"]["reason"] == lock["reason"]
        assert said(socket, type="unlock")["type"] == "unlocked"


def test_a_browser_is_told_that_no_hand_types_and_not_why(service, key, drawn):
    recorded, texts = drawn[[0, 1, 2]], drawn[[5, 6, 7]]
    rows = rows_of(FORGERS["averages by pair"].forge(recorded, texts, np.random.default_rng(1)))
    token = service.client(key).post("/v1/users/ada/token", json={"purpose": "watch"}).json()["token"]
    with connected(service, "ada") as socket:
        said(socket, type="hello", token=token)
        answers, lock = played(socket, rows, 1)
    assert answers[-1]["typed"] == "no"
    assert lock is not None
    assert "reason" not in lock
