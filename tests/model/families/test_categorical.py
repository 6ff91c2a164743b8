"""The categorical family: its methods by hand and by scipy, and a discrete HMM against hmmlearn."""

from __future__ import annotations

import numpy as np
import pytest
from hmmlearn.hmm import CategoricalHMM
from scipy import stats

from keydyn import HMM, POHMM, load
from keydyn.model import Categorical
from keydyn.model.families.family import family

SHARES = np.array([0.5, 0.0, 0.3, 0.2])
TRUTH = stats.rv_discrete(values=(np.arange(4), SHARES))


def params(shares=SHARES):
    return {f"p{c}": np.array(share) for c, share in enumerate(shares)}


def test_probability_distribution_and_quantile_are_scipys():
    kind, x = Categorical(4), np.arange(4.0)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(kind.log_density(x, params()), np.log(SHARES), rtol=1e-15)
    between = np.array([-1.0, 0.0, 0.5, 1.0, 2.5, 3.0, 9.0])
    np.testing.assert_allclose(kind.cdf(between, params()), TRUTH.cdf(between), rtol=1e-15)
    q = np.array([1e-9, 0.3, 0.5, 0.50001, 0.8, 0.80001, 1.0])
    np.testing.assert_array_equal(kind.quantile(q, params()), TRUTH.ppf(q))
    assert kind.mean(params()) == pytest.approx(TRUTH.mean())
    assert kind.location(params()) == kind.mean(params())


def test_draws_have_the_distribution():
    many = {name: np.full(20_000, value) for name, value in params().items()}
    drawn = Categorical(4).draw(np.random.default_rng(1), many)
    counts = np.bincount(drawn.astype(int), minlength=4)
    assert counts[1] == 0
    used = SHARES > 0
    assert stats.chisquare(counts[used], 20_000 * SHARES[used]).pvalue > 1e-3


def test_update_is_the_weighted_share():
    """By event type and state; a missing value and an unknown type have no weight; no mass, no change."""
    kind, rng = Categorical(3), np.random.default_rng(2)
    x, rows, gamma = rng.integers(0, 3, 50).astype(float), rng.integers(0, 3, 50), rng.random((50, 2))
    x[::7] = np.nan
    gamma[rows == 1, 1] = 0.0
    current = kind.start(np.zeros((3, 1)), np.ones((3, 1)), np.array([0.0, 1.0]))
    found = kind.statistics(x, gamma, rows, 2, current)
    updated, floored = kind.update(found, {k: v[:2] for k, v in current.items()}, 1e-3, 0.0)
    for row, state, c in np.ndindex(2, 2, 3):
        used = (rows == row) & ~np.isnan(x)
        if (row, state) == (1, 1):
            assert updated[f"p{c}"][row, state] == current[f"p{c}"][row, state]
        else:
            share = gamma[used & (x == c), state].sum() / gamma[used, state].sum()
            assert updated[f"p{c}"][row, state] == pytest.approx(share, rel=1e-12)
    assert not floored.any()
    halves = [kind.statistics(x[s], gamma[s], rows[s], 2, current) for s in (slice(0, 20), slice(20, 50))]
    for name, value in kind.merge(*halves).items():
        np.testing.assert_allclose(value, found[name], rtol=1e-12)
    added, _ = Categorical(3, pseudocount=2.0).update(found, updated, 1e-3, 0.0)
    expected = (found["p1"][0, 0] + 2.0) / (found["count"][0, 0] + 6.0)
    assert added["p1"][0, 0] == pytest.approx(expected)


def test_a_discrete_hmm_is_hmmlearns():
    """Likelihood, posterior and Viterbi of given parameters; and one EM step from them."""
    start, trans = np.array([0.6, 0.4]), np.array([[0.8, 0.2], [0.3, 0.7]])
    shares = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
    table = {f"p{c}": shares[:, c] for c in range(3)}
    ours = HMM.from_parameters(start, trans, [(Categorical(3), table)])
    X, _, _ = ours.sample(lengths=[40, 60], random_state=3)
    theirs = CategoricalHMM(n_components=2, n_features=3, init_params="", n_iter=1, tol=0.0)
    theirs.startprob_, theirs.transmat_, theirs.emissionprob_ = start, trans, shares
    whole = X.astype(int)
    score, posterior = theirs.score_samples(whole, [40, 60])
    assert ours.score(X, lengths=[40, 60]) == pytest.approx(score, rel=1e-12)
    np.testing.assert_allclose(ours.predict_proba(X, lengths=[40, 60]), posterior, atol=1e-10)
    np.testing.assert_array_equal(ours.decode(X[:40])[1], theirs.decode(whole[:40])[1])


def test_a_model_recovers_its_symbols(tmp_path):
    """Two states with different alphabets; 4000 events, so shares are within 0.05 (over four deviations)."""
    shares = np.array([[0.8, 0.1, 0.1], [0.1, 0.2, 0.7]])
    table = {f"p{c}": shares[:, c] for c in range(3)}
    truth = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [(Categorical(3), table)])
    X, _, _ = truth.sample(4000, random_state=0)
    fitted = HMM(emission=Categorical(3)).fit(X)
    found = np.stack([fitted.emission_[0].params[f"p{c}"][0] for c in range(3)], axis=1)
    np.testing.assert_allclose(found, shares, atol=0.05)
    assert (np.diff(fitted.history_) >= -1e-9 * abs(fitted.log_likelihood_)).all()
    assert fitted.n_parameters_ == 1 + 2 + 2 * 2
    fitted.save(tmp_path / "symbols.keydyn")
    assert load(tmp_path / "symbols.keydyn").score(X) == fitted.score(X)
    following = fitted.predict_next(X)
    assert following.quantile(0.001)[0, 0] == 0.0
    assert following.quantile(0.999)[0, 0] == 2.0
    assert following.cdf(2.0)[0, 0] == pytest.approx(1.0)


def test_event_types_and_smoothing():
    """A POHMM of symbols: marginal and smoothed parameters are distributions again."""
    rng = np.random.default_rng(5)
    X, events = rng.integers(0, 3, (300, 1)).astype(float), rng.choice(list("ab"), 300)
    model = POHMM(emission=Categorical(3)).fit(X, events=events)
    for table in (model.emission_[0].params, model.marginal_.emission[0].params):
        total = sum(table.values())
        np.testing.assert_allclose(total, 1.0, rtol=1e-12)
    assert np.isfinite(model.score(X[:3], events=["a", None, "new"]))


def test_what_is_no_category():
    X = np.array([[0.0], [1.0], [0.5]])
    with pytest.raises(ValueError, match=r"row 2, column 0: 0\.5 is not a value of a categorical emission"):
        HMM(emission="categorical").fit(X)
    with pytest.raises(ValueError, match=r"whole number from 0 to 1 \(n_categories=2\)"):
        HMM(emission="categorical").fit(np.array([[0.0], [2.0]]))
    model = HMM(emission="categorical").fit(np.array([[0.0], [1.0]] * 20))
    with pytest.raises(ValueError, match="session 0, column 0"):
        model.online().update([1.5])
    for wrong in (0, 2.5, True):
        with pytest.raises(ValueError, match="n_categories must be a whole number"):
            Categorical(wrong)
    with pytest.raises(ValueError, match="pseudocount"):
        Categorical(2, -1.0)
    with pytest.raises(ValueError, match="p0, p1 must add up to one"):
        HMM.from_parameters([1.0], [[1.0]], [("categorical", {"p0": [0.5], "p1": [0.6]})])
    with pytest.raises(ValueError, match="negative"):
        HMM.from_parameters([1.0], [[1.0]], [("categorical", {"p0": [1.5], "p1": [-0.5]})])
    assert family("categorical", n_categories=3) == Categorical(3)


def test_a_category_never_seen_is_impossible_not_nan():
    """Or, with a pseudocount, improbable."""
    X = np.array([[0.0], [1.0]] * 20)
    model = HMM(1, emission=Categorical(3)).fit(X)
    assert model.score(np.array([[2.0]])) == -np.inf
    assert np.isfinite(HMM(1, emission=Categorical(3, pseudocount=0.5)).fit(X).score(np.array([[2.0]])))
