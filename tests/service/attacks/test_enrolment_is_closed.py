"""Strangers who may enrol can neither replace a complete template nor dominate an incomplete one."""

from __future__ import annotations

import pandas as pd
import pytest

from keydyn.datasets import make_typists
from keydyn.decisions import Targets, Verifier

OWNER, STRANGER, ENROLLED = 0, 1, 5


@pytest.fixture(scope="module")
def service(attacked):
    return attacked


@pytest.fixture(scope="module")
def short():
    """Samples of 60 keys of both people, in order."""
    frame = make_typists(2, 30, "free", 60, random_state=5)
    return [[part for _, part in frame[frame["user"] == user].groupby("session")] for user in (0, 1)]


@pytest.fixture(scope="module")
def long(short):
    """A sample of 1,500 keys of the stranger."""
    parts, end = [], 0.0
    for part in short[STRANGER][:25]:
        times = part[["timepress", "timerelease"]]
        parts.append(part.assign(**(times + end - times["timepress"].iloc[0])))
        end = parts[-1]["timepress"].iloc[-1] + 150.0
    return pd.concat(parts, ignore_index=True).assign(session=0)


def body(frame, **more):
    return {"keystrokes": frame[["keyname", "timepress", "timerelease"]].to_dict("records"), **more}


def enrol(client, name, samples):
    client.post("/v1/users", json={"id": name})
    for sample in samples:
        answer = client.post(f"/v1/users/{name}/samples", json=body(sample))
        assert answer.status_code == 201, answer.text


def verified(client, name, sample):
    answer = client.post(f"/v1/users/{name}/verify", json=body(sample))
    assert answer.status_code == 200, answer.text
    return answer.json()


def offline(samples):
    verifier = Verifier.shipped(Targets(0.01))
    frames = [sample.assign(user="ada", session=n) for n, sample in enumerate(samples)]
    verifier.enrol("ada", pd.concat(frames, ignore_index=True))
    return verifier


def test_a_complete_enrolment_takes_no_samples_of_a_stranger(service, short, long):
    """The owner is recognised as one of whom nobody tried to take over the enrolment."""
    client, enrolling = service.client(), service.client(service.key(scopes=["enrol"]))
    for name in ("ada", "twin"):
        enrol(client, name, short[OWNER][:ENROLLED])
    token = client.post("/v1/users/ada/token", json={"purpose": "enrol"}).json()["token"]
    browser = service.client(token, origin=service.url)
    for sample in (long, *short[STRANGER][:20]):
        refused = enrolling.post("/v1/users/ada/samples", json=body(sample))
        assert refused.status_code == 409
        assert refused.json()["type"].endswith("enrolment-complete")
        assert browser.post("/v1/users/ada/samples", json=body(sample)).status_code in (401, 403, 409)
        assert browser.post("/v1/users/ada/samples", json=body(sample, add=True)).status_code in (401, 403)
    for sample in (long, *short[STRANGER][:3]):
        # It is an attempt to be the owner: few are answered.
        added = enrolling.post("/v1/users/ada/samples", json=body(sample, add=True))
        assert added.json()["type"].rpartition(":")[2] in ("not-recognised", "too-many-attempts")
    client.post("/v1/users/ada/unblock")
    for sample in short[OWNER][ENROLLED : ENROLLED + 6]:
        found = [verified(client, name, sample) for name in ("ada", "twin")]
        assert found[0]["answer"] == found[1]["answer"]
        assert found[0]["llr"] == found[1]["llr"]
    assert found[0]["answer"] == "accept"
    for sample in short[STRANGER][20:23]:
        assert verified(client, "ada", sample)["answer"] != "accept"


def test_a_sample_that_is_added_has_to_be_the_owners_and_moves_the_template_little(service, short):
    client = service.page("adding")
    enrol(client, "bea", short[OWNER][:ENROLLED])
    verifier = offline(short[OWNER][:ENROLLED])
    headers = {"idempotency-key": "added"}
    sent = body(short[OWNER][ENROLLED], add=True)
    added, again = (client.post("/v1/users/bea/samples", json=sent, headers=headers) for _ in range(2))
    assert added.status_code == 201, added.text
    assert again.json() == added.json()
    profile = added.json()["profile"]
    assert (profile["samples"], profile["complete"]) == (ENROLLED, True)
    assert 0.0 < profile["drift"] <= 1.0
    # The template is the one that an update gives.
    verifier.update("ada", short[OWNER][ENROLLED])
    expected = verifier.verify("ada", short[OWNER][ENROLLED + 1])
    assert verified(client, "bea", short[OWNER][ENROLLED + 1])["llr"] == pytest.approx(expected.llr, rel=1e-2)
    # A copy is none of the owner's.
    copied = client.post("/v1/users/bea/samples", json=sent)
    assert copied.json()["type"].endswith("not-typing")


def test_an_administrator_opens_it_again(service, short):
    client = service.client(service.key("resetting"))
    enrol(client, "cleo", short[OWNER][:ENROLLED])
    client.post("/v1/users/cleo/reset")
    enrol(client, "cleo", short[OWNER][ENROLLED : 2 * ENROLLED])
    assert client.get("/v1/users/cleo").json()["profiles"][0]["complete"]


def test_a_huge_sample_does_not_outweigh_the_others(service, short, long):
    """Before enrolment is complete: it counts with twice the keys of the middle sample."""
    client = service.page("outweighing")
    four = short[OWNER][: ENROLLED - 1]
    enrol(client, "dora", [*four, long])
    expected = offline([*four, long.head(120)]).verify("ada", short[OWNER][ENROLLED])
    found = verified(client, "dora", short[OWNER][ENROLLED])
    assert found["answer"] == expected.answer
    assert found["llr"] == pytest.approx(expected.llr, rel=1e-2)
