"""Claims in matrix form against decisions one by one, and who enrols with what."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.datasets import make_typists
from keydyn.decisions import Verifier, shipped_background
from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.lab.transfer.claims import amounts_for, claims_of, meanings, split


@pytest.fixture(scope="module")
def samples():
    return recorded_samples(make_typists(4, 8, "free", 40, random_state=3))


def test_first_samples_enrol_and_the_same_later_ones_are_asked(samples):
    assert amounts_for(samples) == (1, 5)
    one, five = split(samples, 1), split(samples, 5)
    assert one.ask.names == five.ask.names == [(user, n) for user in range(4) for n in (5, 6, 7)]
    assert five.enrol.names == [(user, n) for user in range(4) for n in range(5)]
    assert one.keys.tolist() == [40] * 4
    assert five.keys.tolist() == [200] * 4
    assert five.typist.tolist() == np.repeat(np.arange(4), 3).tolist()
    assert [name[1] for name in split(samples, 5, most=2).ask.names] == [5, 7] * 4


def test_claims_are_what_a_verifier_decides(samples):
    """The same scores, rates and ratios as from `Verifier.verify_many`, person by person."""
    verifier = Verifier.shipped()
    found = split(samples, 5)
    claims = claims_of(shipped_background(), samples, 5)
    assert len(claims) == 4 * 12
    for user in range(4):
        # Alone in the verifier, so that nobody joins the cohort.
        verifier.enrol(str(user), samples[(samples.users == user) & (samples.numbers < 5)])
        decisions = verifier.verify_many(str(user), found.ask)
        verifier.remove(str(user))
        rows = claims[claims["claimed"] == user]
        assert rows["typist"].tolist() == found.typist.tolist()
        assert np.allclose(rows["score"], [one.score for one in decisions], rtol=1e-5, atol=1e-5)
        assert np.allclose(rows["rate"], [one.false_match_rate for one in decisions], rtol=1e-5)
        assert np.allclose(rows["llr"], [one.llr for one in decisions], rtol=1e-5, atol=1e-5)


def test_meanings_depend_on_how_much_each_person_enrolled_with():
    calibrations = shipped_background().calibrations
    scores = np.array([[0.2, 0.2, 1.0], [0.5, 0.5, 0.1]])
    keys, enrolled = np.array([30, 90]), np.array([50, 800, 50])
    llr, rates = meanings(calibrations, scores, keys, enrolled)
    for n in range(2):
        for u in range(3):
            calibration = calibrations.at(int(enrolled[u]))
            assert llr[n, u] == pytest.approx(calibration.ratio(scores[n, u], int(keys[n])))
            assert rates[n, u] == pytest.approx(
                calibration.false_match_rate(scores[n, u], int(keys[n])).value
            )
