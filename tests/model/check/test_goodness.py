"""Goodness of fit: the area against brute force, p-values by hand, calibration and power."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import NotFittedError

from keydyn import HMM, POHMM, Sequences
from keydyn.model.check import areas, goodness, surrogates
from keydyn.model.check.areas import CLOSED_FORMS, Mixture
from keydyn.model.check.goodness import GoodnessOfFit
from keydyn.model.families.family import family
from tests.model.enumeration import FAMILIES, Truth, random_params

# The chance of a false alarm of each statistical test below, with its seed fixed once.
ALPHA = 1e-4


def cdf(name, y, params, c, over_log):
    """F of one component by scipy, at x = y or ln x = y."""
    p = {key: values[c] for key, values in params.items()}
    x = np.exp(np.minimum(y, 700.0)) if over_log else y
    if name == "normal":
        return stats.norm.cdf(x, p["loc"], p["scale"])
    if name == "lognormal":
        return stats.lognorm.cdf(x, s=p["scale"], scale=np.exp(p["loc"]))
    if name == "student":
        return stats.t.cdf(x, p["df"], p["loc"], p["scale"])
    if name == "logstudent":
        return stats.t.cdf(y, p["df"], p["loc"], p["scale"])
    if name == "gamma":
        return stats.gamma.cdf(x, a=p["shape"], scale=p["scale"])
    return stats.expon.cdf(x, scale=p["scale"])


def area_by_brute_force(name, values, params, weights, over_log):
    """∫ |F_D − F| over x or ln x by the trapezoidal rule: each piece, and both tails."""
    y = np.sort(np.log(values) if over_log else values)

    def difference(t, level):
        return np.abs(level - sum(w * cdf(name, t, params, c, over_log) for c, w in enumerate(weights)))

    total = 0.0
    for n in range(len(y) - 1):
        grid = np.linspace(y[n], y[n + 1], 20_001)
        total += np.trapezoid(difference(grid, (n + 1) / len(y)), grid)
    # The tail of a t with four degrees of freedom is below 1e-11 from here on.
    out = np.concatenate([[0.0], np.geomspace(1e-5, 1e4, 40_000)])
    above, below = y[-1] + out, (y[0] - out)[::-1]
    total += np.trapezoid(difference(above, 1.0), above)
    return total + np.trapezoid(difference(below, 0.0), below)


@pytest.mark.parametrize(
    ("name", "over_log"),
    [(name, name == "logstudent") for name in FAMILIES]
    + [(f, True) for f in ("lognormal", "gamma", "exponential")],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_area_against_brute_force(name, over_log, seed):
    rng = np.random.default_rng(seed)
    params = random_params(rng, name, (3,))
    weights = rng.dirichlet(np.ones(3))
    distribution = family(name)
    values = distribution.draw(rng, {k: v[rng.integers(0, 3, 9)] for k, v in params.items()})
    values[1] = values[0]  # a tie
    mixture = Mixture(distribution, params, weights, over_log)
    found = areas.area(mixture.points(values), mixture)
    # The rule's own error: steps of a tenth of a per cent in the tails.
    assert found == pytest.approx(area_by_brute_force(name, values, params, weights, over_log), abs=2e-6)


@pytest.mark.parametrize(("kind", "over_log"), list(CLOSED_FORMS))
def test_closed_forms_against_the_general_way(kind, over_log, monkeypatch):
    rng = np.random.default_rng(3)
    params = random_params(rng, kind.name, (4,))
    mixture = Mixture(kind(), params, np.full(4, 0.25), over_log)
    y = np.linspace(0.1, 6.0, 30)
    closed, mean = mixture.integral()
    monkeypatch.delitem(CLOSED_FORMS, (kind, over_log))
    general, general_mean = mixture.integral()
    # A t with four degrees of freedom has about 1e-11 of its integral beyond the outermost nodes.
    np.testing.assert_allclose(general(y), closed(y), rtol=0, atol=1e-9)
    assert general_mean == pytest.approx(mean, abs=1e-9)


def test_area_of_many_values_is_the_distance_between_quantile_functions():
    """∫ |F_D − F| dx = ∫ |Q_D − Q| dp, by a fine sum over p; N so large that ranges are halved many times."""
    rng = np.random.default_rng(4)
    values = rng.normal(0.1, 1.1, 2000)
    mixture = Mixture(family("normal"), {"loc": np.zeros(1), "scale": np.ones(1)}, np.ones(1), False)
    p = (np.arange(400 * 2000) + 0.5) / (400 * 2000)
    by_quantiles = np.mean(np.abs(np.repeat(np.sort(values), 400) - stats.norm.ppf(p)))
    assert areas.area(values, mixture) == pytest.approx(by_quantiles, abs=1e-5)


def test_area_of_one_value():
    """∫ |1(x ≥ 1) − F| is E|X − 1|."""
    mixture = Mixture(family("normal"), {"loc": np.zeros(1), "scale": np.ones(1)}, np.ones(1), False)
    expected = stats.foldnorm.mean(1.0)
    for n in (1, 3):
        assert areas.area(np.ones(n), mixture) == pytest.approx(expected, rel=1e-12)


def test_no_area_without_a_mean():
    params = {"loc": np.zeros(1), "scale": np.ones(1), "df": np.full(1, 0.9)}
    with pytest.raises(ValueError, match=r"0\.9 degrees of freedom has no finite mean"):
        areas.area(np.arange(3.0), Mixture(family("student"), params, np.ones(1), False))


def test_the_mixture_is_that_of_the_fitted_attributes():
    """Π[ω] Π[j | ω] of the training data."""
    truth = Truth.random(np.random.default_rng(5), m=3, n_states=2, families=("lognormal",))
    X, events, _ = POHMM.from_parameters(*truth.arguments()).sample(lengths=[40, 50], random_state=1)
    data = Sequences.from_arrays(X, events, [40, 50])
    model = POHMM(tol=1e-3).fit(data)
    index = surrogates.index_of(model._parameters, data)
    mixture = areas.feature_mixture(model._parameters, index, np.ones(len(X)), 0, False, "exact")
    expected = model.event_prob_[:, None] * model.stationary_
    order = np.argsort(mixture.params["loc"])
    np.testing.assert_array_equal(mixture.params["loc"][order], np.sort(model.emission_[0].loc.ravel()))
    by_location = expected.ravel()[np.argsort(model.emission_[0].loc.ravel())]
    np.testing.assert_allclose(mixture.weights[order], by_location, rtol=1e-12)


def test_p_values_by_hand():
    result = GoodnessOfFit(
        areas=np.array([5.0, 0.5]),
        surrogate_areas=np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [6.0, 4.0]]),
        second_areas=np.array([[2.0, 1.0]] * 4 + [[8.0, 1.0]] * 4),
        scales=["linear", "log"],
        feature=0,
        not_converged=0,
    )
    # Mean 3: distances 2, 1, 0, 3 against 2.
    assert result.p_value == (2 + 1) / 5
    assert result.p_one_sided == (1 + 1) / 5
    # The geometric mean of a surrogate's own surrogates is √(2 · 8) = 4, of the data's 36^¼ = 2.45. The
    # former scatter more than surrogates do among each other, so that all are drawn together, to 2.45 / 4;
    # the data stand at 5 / 2.45.
    np.testing.assert_allclose(
        goodness.measured_by_own_surrogates(np.array([1.0, 2.0, 3.0, 6.0]), np.array([[2.0] * 4, [8.0] * 4])),
        np.log(36**0.25 / 4),
    )
    assert result.p_double == (0 + 1) / 5
    other = result.of(1)
    assert (other.statistic, other.p_one_sided) == (0.5, 1.0)
    assert "p_double" in repr(result)
    plain = GoodnessOfFit(np.ones(1), np.ones((3, 1)), np.empty((0, 1)), ["linear"], 0, 0)
    assert plain.p_value == plain.p_one_sided == 1.0
    with pytest.raises(ValueError, match="n_second=2"):
        _ = plain.p_double
    with pytest.raises(ValueError, match="features are numbered 0 to 0"):
        plain.of(1)


def test_the_double_bootstrap_is_right_where_the_plug_in_is_not():
    """Areas exp(μ + ε), ε standard normal; a fit finds μ − 0.8 + 0.3 ε + 0.3 η in place of μ.

    All of it is known: the plug-in rejects with a chance of Φ((0.8 − 1.645) / √(0.7² + 0.3²)) = 0.13, a right
    test with one of 0.05.
    """
    generator, n_tests, n_first, n_second = np.random.default_rng(4), 1500, 99, 4
    plain, double = [], []
    for _ in range(n_tests):
        noise, own = generator.normal(size=(2, n_first + 1)), generator.normal(size=(n_second, n_first))
        fitted = noise[0, 0] * 0.3 - 0.8 + 0.3 * noise[1, 0]
        first = fitted + noise[0, 1:]
        again = fitted + 0.3 * noise[0, 1:] - 0.8 + 0.3 * noise[1, 1:]
        areas_found = (np.exp(x).reshape(-1, 1) for x in (first, again + own))
        found = GoodnessOfFit(np.exp(noise[0, :1]), *areas_found, ["linear"], 0, 0)
        plain.append(found.p_one_sided)
        double.append(found.p_double)
    assert np.mean(np.array(plain) <= 0.05) > 0.1
    size = np.count_nonzero(np.array(double) <= 0.05)
    assert stats.binomtest(size, n_tests, 0.05).pvalue > ALPHA
    assert stats.kstest(double, "uniform").pvalue > ALPHA


@pytest.fixture(scope="module")
def hmm():
    return HMM.from_parameters([0.6, 0.4], [[0.9, 0.1], [0.3, 0.7]], [("normal", [0.0, 4.0], [1.0, 1.5])])


def test_the_same_seed_gives_the_same_test_whatever_the_jobs(hmm):
    X, _, _ = hmm.sample(120, random_state=0)
    model = HMM(emission="normal", tol=1e-3)
    one = model.goodness_of_fit(X, n_surrogates=9, n_second=2, random_state=5)
    two = model.goodness_of_fit(X, n_surrogates=9, n_second=2, random_state=5, n_jobs=2)
    other = model.goodness_of_fit(X, n_surrogates=9, random_state=6)
    np.testing.assert_array_equal(one.surrogates, two.surrogates)
    np.testing.assert_array_equal(one.second_areas, two.second_areas)
    assert len(set(one.surrogates)) == 9
    assert not set(one.surrogates) & set(other.surrogates)
    assert one.statistic == goodness.areas_of(model.fit(X)._parameters, Sequences.from_arrays(X), [False])[0]
    assert not hasattr(HMM(emission="normal"), "_parameters")


def test_a_given_model_is_tested_exactly(hmm):
    """Without refitting, data and surrogates are exchangeable: the rank is uniform on 1 … S + 1."""
    ranks = []
    for seed in range(200):
        X, _, _ = hmm.sample(40, random_state=1000 + seed)
        found = hmm.goodness_of_fit(X, n_surrogates=9, refit=False, random_state=seed)
        ranks.append(round(found.p_one_sided * 10))
    counts = np.bincount(ranks, minlength=11)[1:]
    assert counts.sum() == 200
    assert stats.chisquare(counts).pvalue > ALPHA


def test_a_wrong_given_model_is_rejected(hmm):
    X, _, _ = hmm.sample(400, random_state=0)
    shifted = HMM.from_parameters([0.6, 0.4], [[0.9, 0.1], [0.3, 0.7]], [("normal", [2.0, 6.0], [1.0, 1.5])])
    result = shifted.goodness_of_fit(X, n_surrogates=49, refit=False, random_state=1)
    assert result.p_value == result.p_one_sided == 1 / 50


def test_size_of_the_test_of_a_fitted_hmm(hmm):
    """A true hypothesis is rejected at 0.05 in 5 % of cases; more than 8 of 30 has a chance of 1e-5.

    That is with exactly calibrated p-values in steps of 1/20. Their mean over 30 lies within 0.525 ± 0.2 but
    for a chance of 1e-4.
    """
    model = HMM(emission="normal", tol=1e-2)
    plain, double = [], []
    for seed in range(30):
        X, _, _ = hmm.sample(150, random_state=2000 + seed)
        found = model.goodness_of_fit(X, n_surrogates=19, n_second=2, random_state=seed)
        plain.append(found.p_one_sided)
        double.append(found.p_double)
    for p in (plain, double):
        assert np.count_nonzero(np.array(p) <= 0.05) <= 8
        assert abs(np.mean(p) - 0.525) < 0.2


def test_power(hmm):
    """A wrong number of states and a wrong family are found, the right ones are not.

    The right ones would fail with a chance of 1/50 each under another seed.
    """
    X, _, _ = hmm.sample(600, random_state=3)
    one_state = HMM(n_states=1, emission="normal", tol=1e-3)
    assert one_state.goodness_of_fit(X, n_surrogates=49, random_state=1).p_one_sided == 1 / 50
    right = HMM(emission="normal", tol=1e-3)
    assert right.goodness_of_fit(X, n_surrogates=49, random_state=1).p_one_sided > 1 / 50
    x = np.random.default_rng(0).lognormal(5.0, 0.3, (600, 1))
    wrong = HMM(n_states=1, emission="exponential")
    assert wrong.goodness_of_fit(x, n_surrogates=49, random_state=1).p_one_sided == 1 / 50
    right = HMM(n_states=1, emission="lognormal")
    assert right.goodness_of_fit(x, n_surrogates=49, random_state=1).p_one_sided > 1 / 50


def test_event_types_and_missing_values():
    """Surrogates keep event types and gaps; any family, any number of features."""
    truth = Truth.random(np.random.default_rng(8), m=2, n_states=2, families=("lognormal", "gamma"))
    X, events, _ = POHMM.from_parameters(*truth.arguments()).sample(lengths=[60, 60], random_state=2)
    X[3:9, 0] = np.nan
    X[5, 1] = np.nan
    events = events.astype(object)
    events[7] = None
    model = POHMM(emission=["lognormal", "gamma"], tol=1e-2)
    result = model.goodness_of_fit(X, events=events, lengths=[60, 60], n_surrogates=5, random_state=0)
    assert result.areas.shape == (2,)
    assert np.isfinite(result.surrogate_areas).all()
    assert (result.surrogate_areas > 0).all()
    assert result.of(1).p_value != 0
    data = Sequences.from_arrays(X, events, [60, 60])
    drawn = surrogates.draw(model.fit(data)._parameters, data, np.random.default_rng(0))
    np.testing.assert_array_equal(np.isnan(drawn.sequences.X), np.isnan(X))
    assert drawn.sequences.codes is data.codes


def test_published_settings_draw_from_the_plain_density():
    """Of a floored density nothing is said where it is floored; surrogates have no values from there."""
    x = np.random.default_rng(1).lognormal(5.0, 0.2, (200, 1))
    result = HMM.published().goodness_of_fit(x, n_surrogates=9, random_state=0)
    assert np.isfinite(result.surrogates).all()
    assert result.surrogates.max() < 20.0


def test_degenerate_data():
    constant = HMM().goodness_of_fit(np.full((20, 1), 100.0), n_surrogates=9, random_state=0)
    assert 0 < constant.p_value <= 1
    assert np.isfinite(constant.surrogates).all()
    one_event = POHMM().goodness_of_fit([[120.0]], events=["a"], n_surrogates=5, random_state=0)
    assert np.isfinite(one_event.statistic)
    one_state = POHMM(n_states=1).goodness_of_fit(
        np.random.default_rng(0).lognormal(5, 0.3, (50, 1)), events=list("ab") * 25, n_surrogates=5
    )
    assert 0 < one_state.p_value <= 1


def test_what_cannot_be_tested(hmm):
    X = np.ones((5, 1))
    for wrong in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match="n_surrogates must be a whole number, 1 or more"):
            hmm.goodness_of_fit(X, n_surrogates=wrong)
    with pytest.raises(ValueError, match="n_second"):
        hmm.goodness_of_fit(X, n_second=-1)
    with pytest.raises(ValueError, match="n_second must be 0, or 2 or more"):
        hmm.goodness_of_fit(X, n_second=1)
    with pytest.raises(ValueError, match="feature is 1"):
        hmm.goodness_of_fit(X, feature=1)
    with pytest.raises(ValueError, match="every entry is NaN"):
        HMM().goodness_of_fit(X * np.nan)
    with pytest.raises(ValueError, match="no value of feature 0"):
        hmm.goodness_of_fit(X * np.nan, refit=False)
    with pytest.raises(NotFittedError):
        HMM().goodness_of_fit(X, refit=False)
    with pytest.raises(ValueError, match="random_state"):
        hmm.goodness_of_fit(X, random_state="x")


def test_areas_over_x_or_over_ln_x():
    """A log-normal has both; a log-Student-t has no finite mean, a normal no logarithm."""
    x = np.random.default_rng(1).lognormal(5.0, 0.3, (60, 1))
    scales = {}
    for wanted in ("auto", "linear", "log"):
        found = HMM(n_states=1).goodness_of_fit(x, n_surrogates=3, scale=wanted, random_state=0)
        scales[wanted] = (found.scales, found.statistic)
    assert scales["auto"] == scales["linear"]
    assert scales["log"][0] == ["log"]
    # dx = x d(ln x), and x is about 150 throughout.
    assert scales["linear"][1] == pytest.approx(150 * scales["log"][1], rel=0.5)
    heavy = HMM(n_states=1, emission="logstudent").goodness_of_fit(x, n_surrogates=3, random_state=0)
    assert heavy.scales == ["log"]
    with pytest.raises(ValueError, match="logstudent emission has no finite mean"):
        HMM(emission="logstudent").goodness_of_fit(x, n_surrogates=1, scale="linear")
    with pytest.raises(ValueError, match="normal emission can be negative"):
        HMM(emission="normal").goodness_of_fit(x, n_surrogates=1, scale="log")
    with pytest.raises(ValueError, match="'auto' or 'linear' or 'log'"):
        HMM().goodness_of_fit(x, n_surrogates=1, scale="x")
    wide = HMM.from_parameters([1.0], [[1.0]], [("lognormal", [0.0], [40.0])])
    with pytest.raises(ValueError, match="scale='log'"):
        wide.goodness_of_fit(x, n_surrogates=1, refit=False, scale="linear")
    assert wide.goodness_of_fit(x, n_surrogates=1, refit=False).scales == ["log"]
    partly = Mixture(
        family("lognormal"), {"loc": np.zeros(2), "scale": np.array([1.0, 40.0])}, np.full(2, 0.5), False
    )
    with pytest.raises(ValueError, match="log-deviation of 40 has a mean too large"):
        areas.area(np.ones(1), partly)


def test_three_ways_to_make_the_marginal():
    """Weights and components by their formulas; for an HMM the three are one."""
    truth = Truth.random(np.random.default_rng(6), m=3, n_states=2, families=("normal",))
    model = POHMM.from_parameters(*truth.arguments())
    X, events, _ = model.sample(90, random_state=2)
    data = Sequences.from_arrays(X, events)
    theta = model._parameters
    index = surrogates.index_of(theta, data)
    exact, printed, states = (
        areas.feature_mixture(theta, index, np.ones(90), 0, False, marginal)
        for marginal in ("exact", "printed", "states")
    )
    shares = exact.weights.reshape(3, 2)
    np.testing.assert_allclose(
        printed.weights.reshape(3, 2), np.outer(shares.sum(axis=1), shares.sum(axis=0))
    )
    np.testing.assert_array_equal(printed.params["loc"], exact.params["loc"])
    np.testing.assert_allclose(states.weights, shares.sum(axis=0))
    np.testing.assert_array_equal(states.params["loc"], model.marginal_.emission[0].loc)
    with pytest.raises(ValueError, match="'exact' or 'printed' or 'states'"):
        model.goodness_of_fit(data, marginal="x")
    hmm = HMM(emission="normal", tol=1e-2)
    found = [
        hmm.goodness_of_fit(X, n_surrogates=3, marginal=marginal, random_state=0).surrogates
        for marginal in areas.MARGINALS
    ]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-9)
