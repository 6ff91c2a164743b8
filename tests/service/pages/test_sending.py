"""Samples recorded in a browser and sent to the service by a page."""

from __future__ import annotations

import pandas as pd

from keydyn.decisions import Verifier
from tests.service.pages.guide import block
from tests.service.pages.keyboard import Keyboard
from tests.service.typists import frame_of, keystrokes_of

SEND = f"([url, token]) => ({block('js', 'async function send')})(recorder, url, token)"
ENROLLED = 5


def token_of(client, purpose):
    return client.post("/v1/users/ada/token", json={"purpose": purpose}).json()["token"]


def test_a_page_enrols_and_verifies_with_tokens(page, keyboard, client):
    client.post("/v1/users", json={"id": "ada"})
    enrol, verify = token_of(client, "enrol"), token_of(client, "verify")
    for session in range(ENROLLED):
        keyboard.type(keystrokes_of(0, session))
        answer = page.evaluate(SEND, ["/v1/users/ada/samples", enrol])
        assert answer["quality"]["known_keystrokes"] == answer["quality"]["keystrokes"] == 60
    assert answer["profile"]["complete"]
    verifier = Verifier.shipped()
    verifier.enrol("ada", pd.concat([frame_of(0, session) for session in range(ENROLLED)]))
    for user, expected in ((1, "unsure"), (0, "accept")):
        keyboard.type(keystrokes_of(user, 6))
        decision = page.evaluate(SEND, ["/v1/users/ada/verify", verify])
        # The same from the recordings themselves.
        assert decision["answer"] == verifier.verify("ada", frame_of(user, 6)).answer == expected, decision


def test_the_service_refuses_what_was_not_typed(open_page, client):
    client.post("/v1/users", json={"id": "ada"})
    page = open_page()
    Keyboard(page).tap([*"the quick brown fox".replace(" ", "")], pace=100.0)
    answer = page.evaluate(SEND, ["/v1/users/ada/samples", token_of(client, "enrol")])
    assert (answer["status"], answer["type"]) == (422, "urn:keydyn:problem:not-typing")
