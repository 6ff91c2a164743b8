"""The hybrid: its vectors are derivatives of the likelihood, and it learns from training samples alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from keydyn import POHMM
from keydyn.datasets import make_typists
from keydyn.detectors import HybridPOHMM, make_detector
from keydyn.detectors.hybrid import LEANS, posterior_statistics
from keydyn.evaluation.protocols.protocol import MonacoTappert
from keydyn.evaluation.protocols.running import score_protocol
from keydyn.evaluation.rates.verification import recognition
from keydyn.keystrokes.samples import Samples


@pytest.fixture(scope="module")
def samples():
    return Samples.of(make_typists(4, 5))


def test_vectors_are_derivatives_of_the_likelihood(samples):
    """(Σγ + 1) times the statistic is scale · ∂ ln P/∂loc: as finite differences have it, no residual is cut.

    Where a residual is beyond the clip, the statistic is smaller: those cells are left out.
    """
    model = POHMM(emission="lognormal").fit(samples.sequences)
    types, M, K = model.event_types_, model.n_states, len(model.emission_)
    one = samples[:1]
    vector = posterior_statistics(model, one)[0].reshape(2 * K + 1, len(types), M)
    posterior, codes = model.predict_proba(one.sequences), one.sequences.labels()
    compared = 0
    for w, key in enumerate(types):
        at = codes == key
        count = posterior[at].sum(axis=0) + LEANS
        np.testing.assert_allclose(vector[0, w], posterior[at].sum(axis=0) / (at.sum() + LEANS), rtol=1e-12)
        for k, emission in enumerate(model.emission_):
            z = (np.log(one.sequences.X[at, k])[:, None] - emission.loc[w]) / emission.scale[w]
            for j in range(M):
                if not (np.abs(z) < 3.0).all():
                    continue
                derivative = _derivative(model, one, k, w, j) * emission.scale[w, j]
                assert vector[1 + 2 * k, w, j] * count[j] == pytest.approx(derivative, rel=1e-4, abs=1e-6)
                compared += 1
    assert compared > 20


def _derivative(model, sample, k, w, j, step=1e-5):
    """∂ ln P(x | Ω) / ∂ loc of one cell, by a central difference."""
    scores = []
    for sign in (1.0, -1.0):
        emission = []
        for place, one in enumerate(model.emission_):
            params = {name: np.array(values) for name, values in one.params.items()}
            if place == k:
                params["loc"][w, j] += sign * step
            emission.append((one.family, params))
        moved = POHMM.from_parameters(
            model.event_types_, model.startprob_, model.transmat_, emission,
            model.event_startprob_, model.event_transmat_,
        )  # fmt: skip
        scores.append(moved.score(sample.sequences.X, events=sample.sequences.labels()))
    return (scores[0] - scores[1]) / (2 * step)


def test_it_tells_simulated_people_apart(samples):
    people = recognition(score_protocol(MonacoTappert(), HybridPOHMM(), samples))
    assert people["acc"].mean() > 0.5  # by chance 0.25


def test_missing_values_and_keys_never_seen_add_nothing(samples):
    detector = HybridPOHMM().prepare(samples).fit(samples[:5])
    sequences = samples[:1].sequences
    nothing = replace(samples[:1], sequences=sequences.with_values(np.full_like(sequences.X, np.nan)))
    assert np.isfinite(detector.score(nothing)).all()
    strange = Samples.of(make_typists(1, 1).assign(keyname="§"), kind="long text")
    assert np.isfinite(detector.score(strange)).all()
    np.testing.assert_array_equal(posterior_statistics(detector.prepared_model_, strange), 0.0)


def test_what_it_needs_is_said(samples):
    with pytest.raises(ValueError, match="call prepare before fit"):
        make_detector("pohmm-hybrid").fit(samples[:5])
    with pytest.raises(ValueError, match="needs samples of two or more"):
        HybridPOHMM().prepare(samples[:5])
