"""Answers are read as types, and keystrokes in any form become requests."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from keydyn.client import Levels, NotFound, Profile, Settings, Text, User
from tests.client.conftest import Client, Running

PROFILE = {
    "text": {"kind": "fixed", "name": "pin"},
    "device": "keyboard",
    "samples": 3,
    "samples_needed": 5,
    "keystrokes": 180,
    "known_keystrokes": 175,
    "clock_tick_ms": 0,
    "complete": False,
    "template_at": None,
    "template_age_s": None,
    "drift": 0.25,
}
USER = {"id": "ada", "created_at": 1_000, "profiles": [PROFILE], "failed_attempts": 0, "wait_s": 0}
EVIDENCE = {
    "keystrokes": 60,
    "known_keystrokes": 59,
    "pairs": 50,
    "known_pairs": 40,
    "spoke_for": [{"key": "a", "feature": "hold", "nats": 2}],
    "spoke_against": [],
}
DECISION = {
    "id": "d1",
    "claimed": "ada",
    "answer": "accept",
    "level": "high",
    "judged_level": "high",
    "wait_s": 0,
    "advice": "",
    "receipt": "kdr_",
    "llr": 7,
    "false_match_rate": 0.001,
    "false_match_rate_interval": [0.0005, 0.002],
    "evidence": EVIDENCE,
    "reasons": ["enough"],
    "target_false_match_rate": 0.001,
    "updated": True,
}
SETTINGS = {
    "levels": {"low": 0.05, "standard": 0.01, "high": 0.001},
    "samples_needed": 5,
    "updating": True,
    "retention_days": 30,
    "lockouts_per_hour": 1.0,
    "learn_from_people": False,
    "origins": [],
    "compare_people": True,
    "takeover_chance": 0.05,
    "takeovers_per_day": None,
    "identifications_per_day": 1000,
    "alarms": 0.01,
}
KEYS = [
    {"keyname": "a", "timepress": 0.0, "timerelease": 90.0},
    {"keyname": "b", "timepress": 100.0, "timerelease": None},
]
# What has its default is not sent.
SENT = [KEYS[0], {"keyname": "b", "timepress": 100.0}]


def named(id: str) -> str:
    return json.dumps({**USER, "id": id})


def test_a_user(fake: Running) -> None:
    fake.service.answers["GET", "/v1/users/ada"] = {**USER, "added later": 1}
    with Client(fake.url, "key") as client:
        found = client.user("ada")
    profile = Profile(Text("fixed", "pin"), "keyboard", 3, 5, 180, 175, 0.0, False, None, None, 0.25)
    assert found == User("ada", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), (profile,), 0, 0)
    with pytest.raises(AttributeError):
        found.id = "ben"  # type: ignore[misc]


@pytest.mark.parametrize("id", ["a/b", "../settings", "ä b", "a?b", "a#b"])
def test_ids_cannot_lead_to_other_routes(fake: Running, id: str) -> None:
    fake.service.failures = [(404, {}, "")]
    with Client(fake.url, "key") as client, pytest.raises(NotFound):
        client.user(id)
    # The server shows the path unquoted: the whole id is in it, and nothing became a query.
    ((_, asked, _),) = fake.service.requests
    assert asked == f"/v1/users/{id}"
    assert fake.service.queries == [""]


def test_everybody_page_by_page(fake: Running) -> None:
    fake.service.failures = [
        (200, {}, f'{{"users": [{named("a")}, {named("b")}], "next": "abc"}}'),
        (200, {}, f'{{"users": [{named("c")}], "next": null}}'),
    ]
    with Client(fake.url, "key") as client:
        assert [user.id for user in client.users()] == ["a", "b", "c"]
    assert len(fake.service.requests) == 2
    assert fake.service.queries == ["limit=100", "limit=100&cursor=abc"]


def test_a_decision(fake: Running) -> None:
    fake.service.answers["POST", "/v1/users/ada/verify"] = DECISION
    with Client(fake.url, "key") as client:
        found = client.verify("ada", [("a", 0, 90), ("b", 100, None)], level="high", text="fixed:pin")
    assert found.accepted
    assert found.llr == 7.0
    assert found.false_match_rate_interval == (0.0005, 0.002)
    assert found.evidence.spoke_for[0].nats == 2.0
    assert found.reasons == ("enough",)
    assert fake.service.bodies == [
        {"keystrokes": SENT, "level": "high", "text": {"kind": "fixed", "name": "pin"}, "device": "keyboard"}
    ]


@pytest.mark.parametrize(
    "given",
    [
        [("a", 0, 90), ("b", 100, None)],
        (("a", np.float32(0), np.int64(90)), ["b", 100.0, float("nan")]),
        KEYS,
        [{"keyname": "a", "timepress": 0, "timerelease": 90}, {"keyname": "b", "timepress": 100}],
        iter([("a", 0, 90), ("b", 100, None)]),
        pd.DataFrame(KEYS),
        pd.DataFrame(
            {"user": "ada", "timerelease": [90, None], "timepress": [0, 100], "keyname": ["a", "b"]}
        ),
    ],
)
def test_keystrokes_in_any_form(fake: Running, given: Any) -> None:
    fake.service.answers["POST", "/v1/users/ada/samples"] = {
        "sample": "s1",
        "profile": PROFILE,
        "quality": {"keystrokes": 2, "known_keystrokes": 2, "clock_tick_ms": 1, "remarks": []},
    }
    with Client(fake.url, "key") as client:
        assert client.enrol("ada", given).quality.keystrokes == 2
    free = {"text": {"kind": "free", "name": None}, "device": "keyboard"}
    assert fake.service.bodies == [{"keystrokes": SENT, **free}]


def test_raw_events_are_sent_as_they_are(fake: Running) -> None:
    events = [{"type": "press", "key": "a", "time": 0}, {"type": "release", "key": "a", "time": 90}]
    fake.service.answers["POST", "/v1/identify"] = {
        "id": "d2",
        "receipt": "kdr_",
        "candidates": [{"user": "ada", "probability": 0.9, "llr": 5, "false_match_rate": 0.01}],
        "nobody": False,
        "nobody_probability": 0.1,
        "evidence": {
            name: EVIDENCE[name] for name in ("keystrokes", "known_keystrokes", "pairs", "known_pairs")
        },
        "reasons": [],
    }
    with Client(fake.url, "key") as client:
        found = client.identify(events, most=3)
    assert [one.user for one in found.candidates] == ["ada"]
    assert fake.service.bodies[0]["events"] == events
    assert fake.service.bodies[0]["most"] == 3


@pytest.mark.parametrize(
    "given",
    [
        pd.DataFrame({"keyname": ["a"], "timepress": [0]}),
        [("a", 0)],
        [{"type": "press", "key": "a", "time": 0}, ("a", 0, 90)],
        [("a", "soon", 90)],
        [{"key": "a"}],
    ],
)
def test_what_are_no_keystrokes_is_not_sent(fake: Running, given: Any) -> None:
    with Client(fake.url, "key") as client, pytest.raises((ValueError, KeyError)):
        client.enrol("ada", given)
    assert fake.service.requests == []


@pytest.mark.parametrize("text", ["", "fixed", "fixed:", "free:x", "typed"])
def test_what_is_no_text(fake: Running, text: str) -> None:
    with Client(fake.url, "key") as client, pytest.raises(ValueError, match="a text is"):
        client.enrol("ada", [("a", 0, 90)], text=text)


def test_settings_that_are_not_named_stay(fake: Running) -> None:
    fake.service.answers["GET", "/v1/settings"] = SETTINGS
    fake.service.answers["PUT", "/v1/settings"] = SETTINGS
    with Client(fake.url, "key") as client:
        assert client.settings() == Settings(Levels(0.05, 0.01, 0.001), 5, True, 30, 1.0, False, ())
        client.update_settings(retention_days=0, levels={"high": 0.0005})
    levels = {"low": 0.05, "standard": 0.01, "high": 0.0005}
    assert fake.service.bodies[-1] == {**SETTINGS, "retention_days": 0, "levels": levels}


def test_secrets_are_not_shown_by_accident(fake: Running) -> None:
    webhook = {"id": "w1", "url": "https://x.example/", "events": ["session.locked"], "created_at": 0}
    fake.service.answers["POST", "/v1/webhooks"] = {**webhook, "secret": "whsec_x"}
    token = {"token": "kdt_x", "purpose": "watch", "session": None, "expires_at": 0}
    fake.service.answers["POST", "/v1/users/ada/token"] = token
    with Client(fake.url, "kdk_x") as client:
        created = client.create_webhook("https://x.example/", ["session.locked"])
        made = client.token("ada", "watch", session="5e55")
        shown = f"{created!r} {made!r} {client!r} {client.watch('ada')!r}"
    assert (created.secret, made.token) == ("whsec_x", "kdt_x")
    for secret in ("whsec_x", "kdt_x", "kdk_x"):
        assert secret not in shown
