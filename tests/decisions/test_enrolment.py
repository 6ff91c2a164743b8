"""What is refused before somebody is enrolled with it, and what is only remarked."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.datasets import make_typists
from keydyn.decisions import Verifier, enrolling
from keydyn.decisions.calibration.background import shipped_background
from keydyn.decisions.calibration.calibration import open_set_scores
from keydyn.decisions.enrolled import EnrolmentQuality, enrolment_quality
from keydyn.decisions.liveness.copies import Fingerprints
from keydyn.keystrokes import Samples, one_sample
from keydyn.lab.forgeries import Robot
from tests.decisions import typed_samples

TEXT = "the quick brown fox jumps over the lazy dog again"
PRESS = [0, 90, 250, 330, 480, 600, 777, 900]
SECRET = bytes(range(32))


def sample(keys=None, interval=180.0, hold=90.0, spread=0.3, seed=0, grain=0.0):
    """Somebody's typing of a text, with log-normal times; on a clock with this grain, if there is one."""
    names = ["space" if key == " " else key for key in TEXT] if keys is None else keys
    random = np.random.default_rng(seed)
    press = np.cumsum(interval * np.exp(spread * random.normal(size=len(names))))
    release = press + hold * np.exp(spread * random.normal(size=len(names)))
    if grain:
        press, release = (np.round(times / grain) * grain for times in (press, release))
    return one_sample(names, press, release)


def quality(typed, **more):
    return enrolment_quality(typed, shipped_background(), **more)


def test_typing_is_taken():
    assert quality(sample()) == EnrolmentQuality(len(TEXT), len(TEXT), 0.0, (), ())
    assert quality(sample()).accepted


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        (lambda: sample(interval=3.0, hold=2.0), "pasted"),
        (lambda: Robot().forge(sample()[:0], sample(), np.random.default_rng(0)), "too regular"),
        (lambda: sample(keys=list("abcde")), "5 keystrokes, fewer than 6"),
        (lambda: sample(keys=["F13"] * 10), "0 keystrokes of known keys, fewer than 4"),
    ],
)
def test_what_is_no_typing_or_too_little_is_refused(typed, reason):
    found = quality(typed())
    assert not found.accepted
    assert any(reason in each for each in found.reasons)


@pytest.mark.parametrize(
    ("press", "release", "remark"),
    [
        ([0, *PRESS[:-1]], [None, *PRESS[1:]], "1 interval and 1 hold"),
        (PRESS, [0, *PRESS[1:]], "8 holds"),
        (PRESS, [*(time + 70 for time in PRESS[:-1]), PRESS[-1] + 9_000], "1 hold"),
    ],
)
def test_times_that_no_hand_makes_are_remarked_on(press, release, remark):
    """They do not refuse a sample: what else was typed is as good as ever."""
    found = quality(one_sample(list("abcdefgh"), press, release))
    assert found.accepted
    assert any(each.endswith(f"hand can produce them: {remark}") for each in found.remarks)


def test_a_copy_of_an_earlier_sample_is_refused():
    earlier = Fingerprints.of(sample(), SECRET)
    copied = quality(sample(), earlier=earlier, secret=SECRET)
    assert len(copied.reasons) == 1
    assert "a copy" in copied.reasons[0]
    assert quality(sample(seed=1), earlier=earlier, secret=SECRET).accepted
    # Keyed with another secret, nothing is recognised.
    assert quality(sample(), earlier=earlier, secret=bytes(32)).accepted
    with pytest.raises(ValueError, match="secret"):
        quality(sample(), earlier=earlier)


def test_what_is_remarked_does_not_refuse():
    coarse = quality(sample(grain=1000 / 60))
    assert coarse.tick == pytest.approx(1000 / 60)
    assert coarse.accepted
    assert "coarse clock" in coarse.remarks[0]
    strange = quality(sample(keys=[*TEXT.replace(" ", "")[:20], *["F13", "F14"] * 5]))
    assert (strange.keystrokes, strange.known) == (30, 20)
    assert strange.accepted
    assert "10 of 30 keystrokes are of keys never seen" in strange.remarks[0]


def test_without_a_population_every_key_counts():
    found = enrolment_quality(sample(keys=["F13", "F14"] * 8), typed_samples.background())
    assert (found.keystrokes, found.known, found.reasons) == (16, 16, ())
    assert enrolment_quality(sample(keys=["F13", "F14"] * 8), None) == found


def test_it_is_that_of_one_sample():
    from keydyn.keystrokes import Samples

    with pytest.raises(ValueError, match="of one sample, not of 2"):
        quality(Samples.joined([sample(), sample(seed=1)]))


def test_so_many_claims_are_scored_beside_everybody_but_the_two_concerned(monkeypatch):
    monkeypatch.setattr(enrolling, "MOST_CLAIMED", 2)
    monkeypatch.setattr(enrolling, "MOST_ASKED", 2)
    background, verifier = shipped_background(), Verifier.shipped()
    typing = make_typists(5, 3, "free", 40, random_state=4)
    samples = {
        str(user): Samples.of(typing[typing["user"] == user].reset_index(drop=True), first="missing")
        for user in range(5)
    }
    people = {user: verifier.enrolled(typed) for user, typed in samples.items()}
    found = enrolling.compared(background, people, samples)
    for user, own in found.items():
        # The first sample and the last, as claims to be two others.
        asked, claimed = samples[user][[0, 2]], own.claimed[:2]
        assert own.claimed == claimed * 2
        assert user not in claimed
        assert own.enrolled.tolist() == [people[name].keys for name in claimed] * 2
        assert own.keys.tolist() == [40] * 4
        templates = [one.template for one in people.values()]
        raw = type(templates[0]).score_many(templates, asked)
        for n, name in enumerate(claimed):
            others = [v for v, one in enumerate(people) if one not in (user, name)]
            beside = np.hstack([background.beside_scores(asked), raw[:, others]])
            expected = open_set_scores(raw[:, [int(name)]], beside, asked.sequences.lengths)
            np.testing.assert_allclose(own.scores[n::2], expected.ravel(), rtol=1e-9)
    # Not everybody is claimed by the same people.
    assert {name for own in found.values() for name in own.claimed} == set(people)
    few = {user: people[user] for user in ("0", "1")}
    assert len(enrolling.compared(background, few, {"0": samples["0"]})["0"]) == 0
