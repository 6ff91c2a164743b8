"""Copies of samples that were enrolled or accepted are recognised as any kind of text."""

from __future__ import annotations

import pytest

from tests.service.typists import enrol, keystrokes_of

FIXED = {"text": {"kind": "fixed", "name": "a"}}
POSITIONS = {"text": {"kind": "positions", "name": "a"}}


@pytest.fixture(scope="module")
def client(attacked):
    """A client with ada, enrolled by five samples of free text and the next five as fixed text."""
    client = attacked.client()
    enrol(client, "ada", 0)
    for session in range(5, 10):
        sent = {"keystrokes": keystrokes_of(0, session), **FIXED}
        assert client.post("/v1/users/ada/samples", json=sent).status_code == 201
    return client


def verified(client, session, **body):
    client.post("/v1/users/ada/unblock")
    found = client.post("/v1/users/ada/verify", json={"keystrokes": keystrokes_of(0, session), **body})
    return found.json()


def is_copy(decision):
    return decision["answer"] == "reject" and any("a copy" in reason for reason in decision["reasons"])


def by_place(session):
    """A sample with positions in place of key names."""
    return [row | {"keyname": str(n)} for n, row in enumerate(keystrokes_of(0, session), 1)]


def test_what_was_enrolled_as_one_text_is_a_copy_as_another(client):
    assert all(is_copy(verified(client, session, **FIXED)) for session in range(5))
    assert all(is_copy(verified(client, session)) for session in range(5, 10))
    sent = {"keystrokes": keystrokes_of(0, 2), "text": {"kind": "fixed", "name": "another"}}
    assert "copy" in client.post("/v1/users/ada/samples", json=sent).json()["detail"]


def test_what_was_accepted_as_one_text_is_a_copy_as_another(client):
    assert verified(client, 10)["answer"] == "accept"
    assert is_copy(verified(client, 10, **FIXED))
    assert verified(client, 11, **FIXED)["answer"] == "accept"
    assert is_copy(verified(client, 11))


def test_keys_under_other_names_are_a_copy_too(client):
    for session in (0, 7):
        sent = {"keystrokes": by_place(session), **POSITIONS}
        assert "copy" in client.post("/v1/users/ada/samples", json=sent).json()["detail"]
    # Those of another person are not.
    client.post("/v1/users", json={"id": "bob"})
    sent = {"keystrokes": by_place(0), **POSITIONS}
    assert client.post("/v1/users/bob/samples", json=sent).status_code == 201
    # And the other way round.
    sent = {"keystrokes": keystrokes_of(0, 0)}
    assert "copy" in client.post("/v1/users/bob/samples", json=sent).json()["detail"]
