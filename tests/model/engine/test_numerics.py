"""Underflow, impossible paths, very long sequences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from keydyn import HMM, POHMM
from tests.model.enumeration import Truth, random_values

STAY = np.eye(2)


def two_normals(transmat, startprob=(0.5, 0.5), gap=100.0):
    """N(0, 1) and N(gap, 1)."""
    return HMM.from_parameters(startprob, transmat, [("normal", [0.0, gap], [1.0, 1.0])])


def staying(x, gap=100.0):
    """ln P of a model that never changes its state: two terms, in logs."""
    return special.logsumexp([np.log(0.5) + stats.norm.logpdf(x, loc).sum() for loc in (0.0, gap)])


@pytest.mark.parametrize(
    "x",
    [
        [0, 100, 0, 0],
        [0, 100],
        [0] + 20 * [55],
        [100] + 300 * [49],
        20 * [55] + 20 * [40] + [0],
        [0, 1e5, 0],
        [50.0] * 1000,
    ],
    ids=lambda x: f"{x[0]}..{x[-1]} ({len(x)})",
)
def test_what_underflows_is_done_in_logs(x):
    """The scaled recursion alone loses a state here, at once or little by little."""
    x = np.array(x, dtype=float)
    model = two_normals(STAY)
    expected = staying(x)
    assert model.score(x[:, None]) == pytest.approx(expected, rel=1e-12)
    # One state all along, so γ is the same at every event.
    terms = np.array([stats.norm.logpdf(x, loc).sum() for loc in (0.0, 100.0)])
    share = np.exp(terms - special.logsumexp(terms))
    np.testing.assert_allclose(model.predict_proba(x[:, None]), np.tile(share, (len(x), 1)), atol=1e-9)
    online = model.online()
    assert sum(online.update([v]) for v in x) == pytest.approx(expected, rel=1e-12)
    assert model.score_samples(x[:, None]).sum() == pytest.approx(expected, rel=1e-12)


def test_the_example_of_the_model_page():
    assert two_normals(STAY).score([[0.0], [100.0], [0.0], [0.0]]) == pytest.approx(-5004.37, abs=0.005)


def test_fitting_survives_underflow():
    """ξ in the log domain: one iteration under fixed emissions finds the counts that enumeration gives."""
    x = np.array([[0.0], [100.0], [100.0], [0.0]])
    model = two_normals([[1 - 1e-300, 1e-300], [1e-300, 1 - 1e-300]])
    model.set_params(warm_start=True, fixed=("emission", "start"), max_iter=2, tol=1e9)
    model.fit(x)
    # States must be 0 1 1 0: from 0 always to 1, from 1 as often to 1 as to 0.
    np.testing.assert_allclose(model.transmat_[0, 0], [[0.0, 1.0], [0.5, 0.5]], atol=1e-12)


def test_an_impossible_sequence():
    """Probability zero is −inf, never NaN, and there is no posterior to ask for."""
    always = HMM.from_parameters([1.0, 0.0], STAY, [("exponential", {"scale": [1.0, 2.0]})])
    assert np.isfinite(always.score([[1.0], [2.0]]))
    never = POHMM.from_parameters(
        ["a", "b"],
        [[1.0, 0.0], [0.0, 1.0]],
        np.tile(STAY, (2, 2, 1, 1)),
        [("normal", np.zeros((2, 2)), np.ones((2, 2)))],
        [1.0, 0.0],
        [[1.0, 0.0], [0.0, 1.0]],
    )
    # The event chain itself rules out b: the joint likelihood is zero, the conditional is not.
    assert never.score_joint([[0.0], [0.0]], events=["a", "b"]).tolist() == [-np.inf]
    assert np.isfinite(never.score([[0.0], [0.0]], events=["a", "b"]))
    with pytest.raises(ValueError, match=r"sequence 0 has probability zero .* from row 1"):
        never.predict_events([[0.0], [0.0]], events=["a", "b"])
    with pytest.raises(ValueError, match=r"sequence 0 has probability zero .* no path is possible"):
        never.decode_events([[0.0], [0.0]], events=["a", "b"])
    with pytest.raises(ValueError, match="no unique stationary distribution"):
        never.score([[0.0]], events=["c"])
    with pytest.raises(ValueError, match="no unique stationary distribution"):
        _ = never.event_prob_


def test_a_million_events():
    """Scaled recursions neither underflow nor drift: the halves of a renewed sequence add up."""
    truth = Truth.random(np.random.default_rng(1), m=3, n_states=2, families=("lognormal", "normal"))
    model = POHMM.from_parameters(*truth.arguments())
    X, events, _ = model.sample(1_000_000, random_state=2)
    samples = model.score_samples(X, events=events)
    assert np.isfinite(samples).all()
    # An ergodic model forgets: the second half alone differs from it given the first by a few nats.
    whole = samples.sum()
    halves = model.score(X, events=events, lengths=[500_000, 500_000])
    assert whole == pytest.approx(halves, abs=10.0)
    gamma = model.predict_proba(X, events=events)
    np.testing.assert_allclose(gamma.sum(axis=1), 1.0, atol=1e-12)
    fitted = POHMM(emission=["lognormal", "normal"], smoothing=None, max_iter=3, tol=1e9).fit(
        X, events=events
    )
    assert np.isfinite(fitted.log_likelihood_)
    # The last filtered state probabilities are the last smoothed ones.
    np.testing.assert_allclose(model.filter_proba(X, events=events)[-1], gamma[-1], atol=1e-12)


def test_scaled_and_log_recursions_agree():
    """A neighbour so unlikely that only logs can hold it changes nothing in the other sequence."""
    rng = np.random.default_rng(4)
    truth = Truth.random(rng, m=3, n_states=3, families=("normal",))
    model = POHMM.from_parameters(*truth.arguments())
    x = random_values(rng, ("normal",), 30)
    events = np.array(truth.types)[rng.integers(0, 3, 30)]
    usual = model.predict_proba(x, events=events)
    # A first event of its own sequence, so that nothing else depends on it.
    far = np.vstack([x, [[1e6]], [[-1e6]]])
    both = model.predict_proba(far, events=[*events, "k0", "k1"], lengths=[30, 2])
    np.testing.assert_allclose(both[:30], usual, atol=1e-12)
    assert np.isfinite(both).all()
    np.testing.assert_allclose(both.sum(axis=1), 1.0, atol=1e-12)
