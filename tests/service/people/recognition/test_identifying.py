"""Identification among people cached together: it is up to date, and ranks them as the library alone does."""

from __future__ import annotations

import httpx
import pandas as pd
import pytest

from keydyn.decisions import Verifier
from tests.service.typists import enrol, frame_of, keystrokes_of

NAMES = ("ada", "bo", "cy")


@pytest.fixture
def enrolled(client: httpx.Client):
    """Three enrolled people, not compared with each other, so that they do not change the calibration."""
    assert client.put("/v1/settings", json={"compare_people": False}).status_code == 200
    for user, name in enumerate(NAMES):
        enrol(client, name, user)
    return client


def identified(client, user, session, **body):
    answer = client.post("/v1/identify", json={"keystrokes": keystrokes_of(user, session), **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


def crowds(service):
    cache = service.app.state.context.crowds
    return [cache.latest(name) for name in cache.names()]


def test_everybody_is_ranked_as_the_library_ranks_them(service, enrolled):
    verifier = Verifier.shipped()
    for user, name in enumerate(NAMES):
        verifier.enrol(name, pd.concat([frame_of(user, session) for session in range(5)]))
    for user, name in enumerate(NAMES):
        # The second question is answered with the templates laid out side by side.
        for session in (7, 8):
            expected = verifier.identify(frame_of(user, session))
            found = identified(enrolled, user, session)
            assert found["nobody"] == expected.nobody
            if not found["nobody"]:
                assert found["candidates"][0]["user"] == expected.candidates[0].user == name


def test_a_copy_is_recognised_although_only_the_first_has_fingerprints(enrolled):
    found = identified(enrolled, 1, 2)
    assert found["nobody"]
    assert any("copy" in reason for reason in found["reasons"])


def test_people_are_kept_together_until_one_changes(service, enrolled):
    identified(enrolled, 0, 7)
    (first,) = crowds(service)
    identified(enrolled, 0, 8, level="high")
    assert crowds(service) == [first]
    assert enrolled.post("/v1/users/ada/verify", json={"keystrokes": keystrokes_of(0, 9)}).json()["updated"]
    identified(enrolled, 0, 10)
    (second,) = crowds(service)
    assert second is not first
    after = {name: person for verifier in second.verifiers for name, person in verifier._state.people.items()}
    before = {name: person for verifier in first.verifiers for name, person in verifier._state.people.items()}
    names = {name: user for user, name in second.names.items()}
    # Only the template that followed was read again.
    assert after[names["ada"]] is not before[names["ada"]]
    assert after[names["bo"]] is before[names["bo"]]


def test_an_erased_person_is_kept_nowhere(service, enrolled):
    identified(enrolled, 0, 7)
    assert enrolled.delete("/v1/users/ada").status_code == 200
    assert crowds(service) == []
    found = identified(enrolled, 0, 8)
    assert "ada" not in [one["user"] for one in found["candidates"]]
