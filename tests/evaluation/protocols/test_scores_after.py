"""Scores of the first keys of queries."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.datasets import make_typists
from keydyn.detectors import PopulationDetector
from keydyn.evaluation.protocols.protocol import LeaveOneOut, MonacoTappert
from keydyn.evaluation.protocols.running import enrolments, scores_after, scores_of
from keydyn.keystrokes import Samples


@pytest.fixture(scope="module")
def keystrokes():
    return make_typists(3, 3, random_state=2)


@pytest.mark.parametrize("n", [1, 7])
def test_they_are_the_scores_of_samples_that_end_there(keystrokes, n):
    protocol = MonacoTappert((0, 2), (2, 3))
    place = keystrokes.groupby(["user", "session"]).cumcount()
    short = Samples.of(
        keystrokes[(keystrokes["session"] < 2) | (place < n)], kind="long text", first="missing"
    )
    whole = Samples.of(keystrokes, first="missing")
    enrolled = enrolments(protocol, "pohmm", whole)
    (first,) = scores_after(protocol, enrolled, whole, [n])
    np.testing.assert_allclose(first.raw, scores_of(protocol, enrolled, short).raw, rtol=1e-9)


@pytest.mark.parametrize("detector", ["pohmm", PopulationDetector()])
def test_of_all_keys_they_are_those_of_whole_samples(keystrokes, detector):
    samples = Samples.of(keystrokes)
    enrolled = enrolments(LeaveOneOut(), detector, samples)
    whole = scores_of(LeaveOneOut(), enrolled, samples)
    some, every = scores_after(LeaveOneOut(), enrolled, samples, [5, 10_000])
    np.testing.assert_allclose(every.raw, whole.raw, rtol=1e-9)
    assert not np.allclose(some.raw, whole.raw)
    np.testing.assert_array_equal(every.trials, whole.trials)
