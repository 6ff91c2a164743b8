"""The requests of the page: their origin, their contents, and two participants at once."""

from __future__ import annotations

import errno
import threading

import pytest

from keydyn.datasets import load_recordings
from keydyn.recording.recorded import CsvSamples
from tests.recording.studies import Page, participants_of, served, typed
from tests.service.running import MovedClock, http_get, http_post

PROMPTS = """sittings = 2
break_between_prompts = 5
break_between_sittings = 3600
[[prompts]]
text = "copied"
[[prompts]]
kind = "fixed"
text = "fixed"
[[prompts]]
kind = "password"
text = "secret"
[[prompts]]
kind = "free"
text = "Why?"
keystrokes = 20
"""
MANY = '[[prompts]]\ntext = "some text"\nrepetitions = 15\n'
KINDS = ["copy", "fixed", "password", "free"]


def positions(sample):
    names = [str(n + 1) for n in range(len(sample["keystrokes"]["keyname"]))]
    return {**sample, "keystrokes": sample["keystrokes"] | {"keyname": names}}


@pytest.fixture
def clock():
    return MovedClock()


@pytest.fixture
def page(tmp_path, clock):
    with (
        participants_of(tmp_path, PROMPTS, clock=clock) as participants,
        served(participants) as address,
        Page(address) as page,
    ):
        yield page


def test_the_whole_course(page, clock, tmp_path):
    assert page.send(0, typed(0)).json()["type"] == "urn:keydyn:problem:no-consent"
    other = page.client.post("/consent", json={"user": "ann", "consent_sha256": "0" * 64})
    assert other.status_code == 409
    assert page.consent().json()["participant"]["consented"]
    for place, kind in enumerate(KINDS * 2):
        task = page.state()["participant"]["task"]
        assert (task["place"], task["kind"], task["sitting"]) == (place, kind, 1 + place // 4)
        assert task["first_of_sitting"] == (place == 4)
        if place:
            pause = 3600 if place == 4 else 5
            assert page.state()["participant"]["wait_s"] == pause
            assert page.send(place, typed(place)).json()["type"] == "urn:keydyn:problem:too-early"
            clock.now += 1000 * pause
        sample = typed(place)
        if kind == "password":
            assert "positions" in page.send(place, sample).json()["detail"]
            sample = positions(sample)
        answer = page.send(place, sample)
        assert answer.status_code == 200, answer.text
        assert answer.json()["reasons"] == []
        # The answer was lost, and the page sends it again.
        assert page.send(place, sample).status_code == 409
    state = page.state()["participant"]
    assert (state["done"], state["total"], state["task"]) == (8, 8, None)
    assert page.send(8, typed(8)).status_code == 409
    frame = load_recordings(tmp_path / "typing.csv")
    assert frame[frame["prompt"] == 3]["keyname"].tolist() == [str(n + 1) for n in range(30)] * 2
    assert frame.groupby("session")["sitting"].first().tolist() == [1] * 4 + [2] * 4


@pytest.mark.parametrize("what", ["pastes", "drops", "autofills", "undos", "virtual_keys", "forgotten"])
def test_what_was_not_typed_is_asked_for_again_and_noted(page, tmp_path, what):
    page.consent()
    answer = page.send(0, typed(0, n_keys=0 if what == "virtual_keys" else 30, **{what: 1})).json()
    assert len(answer["reasons"]) == 1
    assert answer["participant"]["done"] == 0
    assert (tmp_path / "typing.csv").read_bytes() == b""
    assert page.send(0, typed(0)).json()["participant"]["done"] == 1
    lines = (tmp_path / "typing.quality.csv").read_text().splitlines()
    names = lines[0].split(",")
    refused, kept = (dict(zip(names, line.split(","), strict=True)) for line in lines[1:])
    assert (refused["kept"], refused[what], kept["kept"], kept[what]) == ("0", "1", "1", "0")


def test_corrections_and_short_texts_by_kind(page, clock):
    page.consent()
    assert page.send(0, typed(0, n_keys=3)).json()["reasons"] == ["The text was too short."]
    assert page.send(0, typed(0, corrections=2)).json()["reasons"] == []
    clock.now += 5000
    assert "in one go" in page.send(1, typed(1, corrections=1)).json()["reasons"][0]
    # After a clock was set back, the wait is no longer than the break.
    assert page.send(1, typed(1)).json()["reasons"] == []
    clock.now -= 10**9
    assert page.state()["participant"]["wait_s"] == 5


def test_only_the_page_of_this_recording(page):
    bodies = {"/state": {}, "/consent": {"user": "ann", "consent_sha256": "0" * 64}, "/samples": {}}
    url = str(page.client.base_url).rstrip("/")
    for path, body in bodies.items():
        for headers, status in (
            ({}, 401),
            ({"authorization": "Bearer wrong"}, 401),
            ({"authorization": "Bearer ä".encode()}, 401),
            ({**page.client.headers, "origin": "https://elsewhere.example"}, 403),
            ({**page.client.headers, "host": "elsewhere.example"}, 421),
        ):
            answer = http_post(f"{url}{path}", json=body, headers=headers)
            assert answer.status_code == status, (path, headers)
            assert "access-control-allow-origin" not in answer.headers
    shown = http_get(url)
    assert "script-src 'self'" in shown.headers["content-security-policy"]
    assert "unsafe" not in shown.headers["content-security-policy"]
    for path in ("/docs", "/openapi.json", "/typing.csv", "/pages/..%2frecord.html", "/pages/record.html"):
        assert http_get(f"{url}{path}").status_code == 404


def hostile():
    """Bodies that no page sends, by the error in them."""
    sample = typed(0)
    keys = sample["keystrokes"]
    for name in ("=1+1", "a,b", "A", "ä", "a\nb", "", "x" * 33):
        yield f"key {name!r}", {"keystrokes": keys | {"keyname": [name, *keys["keyname"][1:]]}}
    for name in ("../ann", "=ann", "ann,1", "", "a\n", "ä", "x" * 65):
        yield f"user {name!r}", {"user": name}
    for time in (-1, 1e300, "0", None, True):
        yield f"time {time!r}", {"keystrokes": keys | {"timepress": [*keys["timepress"][:-1], time]}}
    yield "order", {"keystrokes": keys | {"timepress": keys["timepress"][::-1]}}
    yield "release", {"keystrokes": keys | {"timerelease": [0.0] * 30}}
    yield "lengths", {"keystrokes": keys | {"keyname": keys["keyname"][1:]}}
    yield "too many", typed(0, n_keys=5001)
    yield "text", {"text": "some text"}
    yield "quality", {"quality": sample["quality"] | {"pastes": -1}}
    yield "attempts", {"attempts": 0}


def test_hostile_bodies_change_nothing(page, tmp_path):
    page.consent()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for what, body in hostile():
        answer = page.client.post("/samples", json={"user": "ann", "place": 0, **typed(0), **body})
        assert answer.status_code == 422, what
        assert answer.headers["content-type"] == "application/problem+json"
    assert page.client.post("/samples", content=b"{" * 3_000_000).status_code == 413
    assert page.client.post("/samples", content=b"[" * 100_000).status_code in (400, 422)
    assert page.client.post("/state", json={"user": "eve"}).status_code == 404
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_two_participants_at_once_do_not_mix(tmp_path):
    people = {"ann": 0, "bob": 1000}
    with participants_of(tmp_path, MANY, users=None) as participants, served(participants) as address:

        def run(user, seed):
            with Page(address, user) as page:
                page.consent()
                found = (page.send(place, typed(seed + place)).json() for place in range(15))
                answers.extend(answer["participant"]["user"] == user for answer in found)

        answers: list[bool] = []
        threads = [threading.Thread(target=run, args=one) for one in people.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == 30
        assert all(answers)
        assert participants.finished()
    samples = dict(iter(load_recordings(tmp_path / "typing.csv").groupby(["user", "session"])))
    assert len(samples) == 30
    for (user, session), frame in samples.items():
        sent = typed(people[user] + session)["keystrokes"]
        assert {name: frame[name].tolist() for name in sent} == sent


def test_what_cannot_be_stored_can_be_sent_again(page, tmp_path, monkeypatch):
    page.consent()
    with monkeypatch.context() as full:
        full.setattr(CsvSamples, "add", lambda *_: refuse(OSError(errno.ENOSPC, "No space left")))
        answer = page.send(0, typed(0))
        assert (answer.status_code, answer.json()["type"]) == (507, "urn:keydyn:problem:not-stored")
        assert "No space left" in answer.json()["detail"]
    assert page.send(0, typed(0)).status_code == 200
    assert len(load_recordings(tmp_path / "typing.csv")) == 30


def refuse(error):
    raise error


def test_of_two_tabs_of_one_participant_one_is_first(page, tmp_path):
    page.consent()
    answers = []
    threads = [
        threading.Thread(target=lambda n=n: answers.append(page.send(0, typed(n)).status_code))
        for n in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200] + [409] * 5
    assert len(load_recordings(tmp_path / "typing.csv")) == 30
