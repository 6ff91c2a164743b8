"""Simulated people, whose samples are sent to the service."""

from __future__ import annotations

from functools import lru_cache

from keydyn.datasets import make_typists

N_USERS, N_SAMPLES = 4, 12


@lru_cache(maxsize=1)
def _everybody():
    frame = make_typists(n_users=N_USERS, n_samples=N_SAMPLES, text="free", n_keys=60, random_state=5)
    return dict(iter(frame.groupby(["user", "session"], sort=False)))


def frame_of(user: int, session: int):
    """One sample in the schema."""
    keys = list(_everybody())
    return _everybody()[keys[user * N_SAMPLES + session]]


def keystrokes_of(user: int, session: int):
    """One sample in the form of a request."""
    frame = frame_of(user, session)
    columns = ("keyname", "timepress", "timerelease")
    rows = zip(*(frame[name].tolist() for name in columns), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def enrol(client, name, user, samples=5, **body):
    """Create a person, and enrol their first samples."""
    made = client.post("/v1/users", json={"id": name})
    assert made.status_code == 201, made.text
    for session in range(samples):
        sent = {"keystrokes": keystrokes_of(user, session), **body}
        answer = client.post(f"/v1/users/{name}/samples", json=sent)
        assert answer.status_code == 201, answer.text
    return answer.json()
