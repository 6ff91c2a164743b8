"""What must hold where contexts get lost."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from keydyn.datasets import make_typists
from keydyn.detectors import make_detector
from keydyn.keystrokes import Samples
from keydyn.lab.frame.study_data import stream
from keydyn.lab.relatives.measurements import (
    NEW_NAME,
    WithholdingContext,
    WithholdingPartly,
    after_lost,
    log_likelihoods,
    losing_models,
    lost_events,
    lost_types,
    with_codes,
)

USERS = 4


@pytest.fixture(scope="module")
def samples() -> Samples:
    return Samples.of(make_typists(USERS, 4, random_state=3))


@pytest.mark.parametrize("withholding", [WithholdingContext, WithholdingPartly])
def test_with_all_names_a_withholding_model_is_the_detector_itself(samples, withholding):
    own = samples[samples.users == samples.users[0]]
    detector = make_detector(withholding.name).fit(own)
    np.testing.assert_allclose(withholding().fit(own).score(samples), detector.score(samples), rtol=1e-9)


def test_with_no_names_the_partly_hmm_and_the_partially_hmm_are_the_hmm(samples):
    own = samples[samples.users == samples.users[0]]
    nameless = with_codes(own, np.ones(own.sequences.n_events, dtype=bool))
    hmm = make_detector("hmm").fit(own).score(own)
    np.testing.assert_allclose(WithholdingPartly().fit(nameless).score(nameless), hmm, rtol=1e-7)
    np.testing.assert_allclose(make_detector("partially-hmm").fit(nameless).score(nameless), hmm, rtol=1e-9)
    np.testing.assert_allclose(make_detector("pohmm").fit(nameless).score(nameless), hmm, rtol=1e-12)


def test_what_the_partially_hmm_says_of_labels_is_taken_off(samples):
    own = samples[samples.users == samples.users[0]][:2]
    detector = make_detector("partially-hmm").fit(own)
    model, labels = detector.model_, detector.given(own)["labels"]
    # ln P(labels) by the forward algorithm over the labels alone.
    expected = []
    for first, last in zip(own.sequences.offsets[:-1], own.sequences.offsets[1:], strict=True):
        alpha, total = model.startprob_, 0.0
        for n in range(first, last):
            alpha = alpha if n == first else alpha @ model.transmat_
            right = model.state_labels_ == labels[n]
            alpha = alpha * np.where(right, model.p_true_, 1.0 - model.p_true_)
            total += np.log(alpha.sum())
            alpha = alpha / alpha.sum()
        expected.append(total)
    np.testing.assert_allclose(detector.score(own) - log_likelihoods(detector, own), expected, rtol=1e-9)


def test_which_events_lose_their_names(samples):
    sequences = samples.sequences
    masks = [lost_events(1000, share, stream(0, "x")) for share in (0.0, 0.25, 0.5, 1.0)]
    assert [mask.sum() for mask in masks] == [0, 250, 500, 1000]
    assert all((small <= large).all() for small, large in pairwise(masks))
    assert (lost_events(1000, 0.5, stream(1, "x")) != masks[2]).any()
    half = lost_types(sequences, 0.5, stream(0, "x"))
    names = sequences.labels()
    assert not set(names[half]) & set(names[~half]), "a key is lost everywhere or nowhere"
    assert lost_types(sequences, 1.0, stream(0, "x")).all()
    assert not lost_types(sequences, 0.0, stream(0, "x")).any()


def test_lost_names_are_missing_or_unseen_and_times_stay(samples):
    lost = lost_events(samples.sequences.n_events, 0.5, stream(0, "x"))
    before = samples.sequences.labels()
    missing, unseen = with_codes(samples, lost).sequences, with_codes(samples, lost, True).sequences
    assert all(name is None for name in missing.labels()[lost])
    assert all(name == NEW_NAME + old for name, old in zip(unseen.labels()[lost], before[lost], strict=True))
    for sequences in (missing, unseen):
        np.testing.assert_array_equal(sequences.labels()[~lost], before[~lost])
        np.testing.assert_array_equal(sequences.X, samples.sequences.X)
    firsts = samples.sequences.offsets[:-1]
    after = after_lost(missing)
    assert not after[firsts].any()
    inner = np.setdiff1d(np.arange(1, len(lost)), firsts)
    np.testing.assert_array_equal(after[inner], lost[inner - 1])


def test_the_models_are_the_five_and_one_more():
    names = [model.detector.name for model in losing_models()]
    assert names == ["hmm", "pohmm", "context-hmm", "context-hmm-key", "partly-hmm", "partially-hmm"]
