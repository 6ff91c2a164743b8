"""Pseudo-residuals: against enumeration of all paths, and as independent standard normals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from keydyn import HMM, POHMM
from keydyn.model import check_residuals
from tests.model.enumeration import FAMILIES, Truth, random_values

# The chance of a false alarm of each statistical test below, with its seed fixed once.
ALPHA = 1e-4


def cdf(family, x, p):
    """F by scipy."""
    if family == "normal":
        return stats.norm.cdf(x, p["loc"], p["scale"])
    if family == "lognormal":
        return stats.lognorm.cdf(x, s=p["scale"], scale=np.exp(p["loc"]))
    if family == "gamma":
        return stats.gamma.cdf(x, a=p["shape"], scale=p["scale"])
    if family == "exponential":
        return stats.expon.cdf(x, scale=p["scale"])
    if family == "student":
        return stats.t.cdf(x, p["df"], p["loc"], p["scale"])
    return stats.t.cdf(np.log(x), p["df"], p["loc"], p["scale"])


def enumerated(truth, x, events, from_later, rosenblatt):
    """Residuals by summing over every path, the event's own values hidden and then shown one by one."""
    residuals = np.full(x.shape, np.nan)
    for n in range(len(x)):
        seen = x.copy() if from_later else x[: n + 1].copy()
        seen[n] = np.nan
        for k in range(x.shape[1]):
            if np.isnan(x[n, k]):
                continue
            paths = truth.paths(seen, events[: len(seen)])
            total = special.logsumexp(list(paths.values()))
            residuals[n, k] = sum(
                np.exp(value - total)
                * cdf(truth.emission[k][0], x[n, k], truth.params(k, events[n], path[n]))
                for path, value in paths.items()
            )
            if rosenblatt:
                seen[n, k] = x[n, k]
    return stats.norm.ppf(residuals)


@pytest.mark.parametrize("families", [(f,) for f in FAMILIES] + [("normal", "gamma"), ("lognormal",) * 3])
def test_against_enumeration(families):
    rng = np.random.default_rng(21)
    truth = Truth.random(rng, m=2, n_states=2, families=families)
    x = random_values(rng, families, 6, missing=0.2)
    codes = [0, 1, 2, 1, 0, 0]  # 2 is unknown
    events = [*truth.types, None]
    model = POHMM.from_parameters(*truth.arguments())
    for rosenblatt in (True, False):
        forecast = model.forecast_residuals(x, events=[events[c] for c in codes], rosenblatt=rosenblatt)
        np.testing.assert_allclose(forecast, enumerated(truth, x, codes, False, rosenblatt), atol=1e-9)
        ordinary = model.ordinary_residuals(x, events=[events[c] for c in codes], rosenblatt=rosenblatt)
        np.testing.assert_allclose(ordinary, enumerated(truth, x, codes, True, rosenblatt), atol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_forecast_residuals_of_the_true_model_are_independent_standard_normal(family):
    truth = Truth.random(np.random.default_rng(22), m=3, n_states=2, families=(family,))
    model = POHMM.from_parameters(*truth.arguments())
    lengths = [700, 1300]
    X, events, _ = model.sample(lengths=lengths, random_state=3)
    residuals = model.forecast_residuals(X, events=events, lengths=lengths)
    found = check_residuals(residuals, lengths)
    assert found.n == 2000
    assert min(found.ks_p, found.shapiro_p, found.ljung_box_p) > ALPHA
    # Squares too: independence is more than no correlation.
    assert (
        check_residuals(stats.norm.ppf(stats.chi2.cdf(residuals[:, 0] ** 2, 1)), lengths).ljung_box_p > ALPHA
    )


def test_several_features_are_independent_given_those_before():
    """Each feature alone is standard normal too, but a common hidden state makes them correlated."""
    model = HMM.from_parameters(
        [0.5, 0.5],
        [[0.6, 0.4], [0.4, 0.6]],
        [("normal", [0.0, 3.0], [1.0, 1.0]), ("lognormal", [0.0, 3.0], [1.0, 1.0])],
    )
    X, _, _ = model.sample(3000, random_state=1)
    rosenblatt = model.forecast_residuals(X)
    alone = model.forecast_residuals(X, rosenblatt=False)
    for k in range(2):
        assert stats.kstest(rosenblatt[:, k], "norm").pvalue > ALPHA
        assert stats.kstest(alone[:, k], "norm").pvalue > ALPHA
    assert stats.pearsonr(*rosenblatt.T).pvalue > ALPHA
    assert stats.pearsonr(*alone.T).pvalue < 1e-12


def test_ordinary_residuals_of_the_true_model_are_standard_normal():
    truth = Truth.random(np.random.default_rng(23), m=3, n_states=2, families=("normal",))
    model = POHMM.from_parameters(*truth.arguments())
    # Every hundredth event of one long sequence: far enough apart to be all but independent.
    X, events, _ = model.sample(100_000, random_state=4)
    ordinary = model.ordinary_residuals(X, events=events)[::100, 0]
    assert stats.kstest(ordinary, "norm").pvalue > ALPHA


def test_a_model_without_memory_leaves_correlated_residuals():
    truth = HMM.from_parameters(
        [0.5, 0.5], [[0.95, 0.05], [0.05, 0.95]], [("normal", [0.0, 2.0], [1.0, 1.0])]
    )
    X, _, _ = truth.sample(500, random_state=5)
    one_state = HMM(n_states=1, emission="normal").fit(X)
    assert check_residuals(one_state.forecast_residuals(X)).ljung_box_p < 1e-12
    assert check_residuals(truth.forecast_residuals(X)).ljung_box_p > ALPHA


def test_outliers_are_finite_and_judged_by_the_others():
    """Between two sure neighbours in state 0 the event is in state 0, however unlike it is."""
    model = HMM.from_parameters([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], [("normal", [0.0, 1000.0], [1.0, 1.0])])
    x = np.array([[0.0], [5.0], [1000.0], [0.0]])
    for residuals in (model.forecast_residuals(x), model.ordinary_residuals(x)):
        np.testing.assert_allclose(residuals[[0, 1, 3], 0], [0.0, 5.0, 0.0], atol=1e-9)
        assert 8.0 < residuals[2, 0] < 8.3
    assert -8.3 < model.forecast_residuals([[-900.0]])[0, 0] < -8.0


def test_the_floor_of_scoring_does_not_count():
    x = np.random.default_rng(0).lognormal(5.0, 0.5, (40, 1))
    x[7] = 1e5
    floored = HMM.published().fit(x)
    plain = HMM.from_parameters(
        floored.startprob_[0],
        floored.transmat_[0, 0],
        [("lognormal", floored.emission_[0].loc[0], floored.emission_[0].scale[0])],
    )
    np.testing.assert_allclose(floored.forecast_residuals(x), plain.forecast_residuals(x), atol=1e-12)


def test_the_tests_against_their_formulas():
    rng = np.random.default_rng(1)
    z = rng.standard_normal(300)
    found = check_residuals(z, n_lags=5)
    assert found.ks_p == stats.kstest(z, "norm").pvalue
    assert found.shapiro_p == stats.shapiro(z).pvalue
    centred = z - z.mean()
    r = np.array([np.correlate(centred[k:], centred[:-k])[0] for k in range(1, 6)]) / np.sum(centred**2)
    np.testing.assert_allclose(found.autocorrelation, r, rtol=1e-12)
    q = 300 * 302 * sum(r[k - 1] ** 2 / (300 - k) for k in range(1, 6))
    assert found.ljung_box == pytest.approx(q)
    assert found.ljung_box_p == pytest.approx(stats.chi2.sf(q, 5))


def test_lags_stay_within_sequences():
    """Two sequences of opposite level: only a lag across the border could see an alternation."""
    z = np.array([1.0, -1.0, 1.0, -1.0, 1.0, np.nan])
    found = check_residuals(np.append(z, z), [6, 6], n_lags=1)
    centred = np.append(z, z) - np.nanmean(z)
    pairs = [centred[n] * centred[n + 1] for n in (0, 1, 2, 3, 6, 7, 8, 9)]
    assert found.autocorrelation[0] == pytest.approx(sum(pairs) / np.nansum(centred**2))
    assert check_residuals([0.1, -0.2, 0.3], [1, 1, 1]).ljung_box_p == 1.0


def test_many_residuals():
    assert check_residuals(np.random.default_rng(0).standard_normal(12_000)).shapiro_p > ALPHA


def test_degenerate_input():
    model = HMM.from_parameters([1.0], [[1.0]], [("normal", [0.0], [1.0])])
    np.testing.assert_allclose(model.forecast_residuals([[1.3]]), [[1.3]])
    assert np.isnan(model.ordinary_residuals([[np.nan]])).all()
    constant = HMM().fit(np.full((9, 1), 50.0)).forecast_residuals(np.full((9, 1), 50.0))
    assert np.isfinite(constant).all()
    with pytest.raises(ValueError, match="there is nothing to test"):
        check_residuals(np.zeros(9))
    with pytest.raises(ValueError, match="2 residuals; three or more"):
        check_residuals([0.1, np.nan, 0.3])
    with pytest.raises(ValueError, match="one feature"):
        check_residuals(np.zeros((4, 2)))
    with pytest.raises(ValueError, match="lengths add up to 3"):
        check_residuals(np.zeros(4), [3])
    stuck = HMM.from_parameters([1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]], [("normal", [0.0, 1.0], [1.0, 1.0])])
    assert np.isfinite(stuck.forecast_residuals(np.zeros((3, 1)))).all()
