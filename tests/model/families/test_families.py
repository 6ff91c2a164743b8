"""The emission families against scipy.stats, quadrature and numerical optimisation."""

import itertools

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from keydyn.model import Exponential, Gamma, LogNormal, LogStudent, Normal, Student
from keydyn.model.families.family import Family, family, family_names, sums_by_type
from keydyn.model.families.gamma import gamma_shape
from keydyn.model.families.student import even_cdf

NO_FLOOR = 1e-300


class LogOf:
    """The distribution of x when ln x has the given one; scipy has none for Student's t."""

    def __init__(self, of_log):
        self.of_log = of_log

    def logpdf(self, x):
        return self.of_log.logpdf(np.log(x)) - np.log(x)

    def cdf(self, x):
        return self.of_log.cdf(np.log(x))

    def ppf(self, q):
        return np.exp(self.of_log.ppf(q))


CASES = [
    (Normal(), {"loc": -3.0, "scale": 2.5}, stats.norm(-3.0, 2.5)),
    (Normal(), {"loc": 1e3, "scale": 1e-2}, stats.norm(1e3, 1e-2)),
    (LogNormal(), {"loc": 4.6, "scale": 0.3}, stats.lognorm(s=0.3, scale=np.exp(4.6))),
    (LogNormal(), {"loc": -1.0, "scale": 2.0}, stats.lognorm(s=2.0, scale=np.exp(-1.0))),
    (Gamma(), {"shape": 0.4, "scale": 3.0}, stats.gamma(0.4, scale=3.0)),
    (Gamma(), {"shape": 90.0, "scale": 1.2}, stats.gamma(90.0, scale=1.2)),
    (Exponential(), {"scale": 120.0}, stats.expon(scale=120.0)),
    (Student(), {"loc": 100.0, "scale": 15.0, "df": 4.0}, stats.t(4.0, 100.0, 15.0)),
    (Student(df=1.0), {"loc": 0.0, "scale": 1.0, "df": 1.0}, stats.cauchy(0.0, 1.0)),
    (Student(df=200.0), {"loc": 5.0, "scale": 0.1, "df": 200.0}, stats.t(200.0, 5.0, 0.1)),
    (LogStudent(), {"loc": 4.6, "scale": 0.3, "df": 4.0}, LogOf(stats.t(4.0, 4.6, 0.3))),
    (LogStudent(df=1.5), {"loc": 0.0, "scale": 1e-6, "df": 1.5}, LogOf(stats.t(1.5, 0.0, 1e-6))),
]
IDS = [f"{kind.name}-{n}" for n, (kind, _, _) in enumerate(CASES)]
SIX = [Normal(), LogNormal(), Gamma(), Exponential(), Student(), LogStudent()]
PROBABILITIES = np.concatenate(
    [10.0 ** np.arange(-12, -1), np.linspace(0.05, 0.95, 19), 1 - 1e-6 * np.ones(1)]
)


def arrays(params):
    return {name: np.array(value) for name, value in params.items()}


def six(test):
    return pytest.mark.parametrize("kind", SIX, ids=[kind.name for kind in SIX])(test)


def weighted_events(kind, seed=0, n=80, n_rows=2, n_states=2):
    """Values of the family, posterior weights, event types (some unknown), and arbitrary parameters."""
    rng = np.random.default_rng(seed)
    x = rng.normal(3.0, 2.0, n) + 4.0 * rng.integers(0, 2, n)
    if kind.lowest >= 0:
        x = np.exp(0.4 * x)
    params = kind.start(np.zeros((n_rows + 1, 1)), np.ones((n_rows + 1, 1)), rng.normal(size=n_states))
    return x, rng.dirichlet(np.ones(n_states), n), rng.integers(0, n_rows + 1, n), n_rows, params


def objective(kind, x, posterior, rows, n_rows, params):
    """Σγ ln f over events of known type, by the scipy-checked density."""
    known = (rows < n_rows) & ~np.isnan(x)
    at = {name: values[rows[known]] for name, values in params.items()}
    return np.sum(posterior[known] * kind.log_density(x[known][:, None], at))


@pytest.mark.parametrize(("kind", "params", "truth"), CASES, ids=IDS)
def test_density_distribution_and_quantile_are_scipys(kind, params, truth):
    """Twelve decimal orders into the lower tail; 1e-9 is what scipy's own inverse functions keep there."""
    params = arrays(params)
    x = truth.ppf(PROBABILITIES)
    inside = x[x > kind.lowest]
    np.testing.assert_allclose(kind.log_density(inside, params), truth.logpdf(inside), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(kind.cdf(x, params), truth.cdf(x), rtol=1e-9)
    np.testing.assert_allclose(kind.quantile(PROBABILITIES, params), x, rtol=1e-9)
    np.testing.assert_allclose(
        kind.cdf(kind.quantile(PROBABILITIES, params), params), PROBABILITIES, rtol=1e-7
    )


@pytest.mark.parametrize("df", [2, 4, 8, 16])
def test_distribution_function_of_whole_even_degrees(df):
    """The short sum against scipy's general function, from the far tails to the middle."""
    far = np.logspace(-12, 16, 400)
    t = np.concatenate([-far[::-1], [0.0], far])
    found = Student(df=df).cdf(t, arrays({"loc": 0.0, "scale": 1.0, "df": df}))
    truth = special.stdtr(df, t)
    np.testing.assert_allclose(found, truth, rtol=1e-13, atol=1e-280)
    assert (np.diff(found) >= -1e-14).all()
    ends = np.array([-np.inf, -1e200, 1e200, np.inf, np.nan])
    np.testing.assert_array_equal(even_cdf(ends, df), [0.0, 0.0, 1.0, 1.0, np.nan])


@pytest.mark.parametrize(("kind", "params", "truth"), CASES, ids=IDS)
def test_density_integrates_to_the_distribution_function(kind, params, truth):
    """Piecewise quadrature between quantiles, on the log scale for positive values; the whole is one."""
    params = arrays(params)
    bounds = kind.quantile(np.array([1e-9, 1e-4, 0.05, 0.3, 0.5, 0.8, 0.99, 1 - 1e-5]), params)
    positive = kind.lowest >= 0

    def mass(u):
        x = np.exp(u) if positive else u
        return np.exp(kind.log_density(np.array(x), params) + (u if positive else 0.0))

    ends = np.log(bounds) if positive else bounds
    pieces = [integrate.quad(mass, a, b, epsabs=1e-13)[0] for a, b in itertools.pairwise(ends)]
    np.testing.assert_allclose(pieces, np.diff(kind.cdf(bounds, params)), rtol=1e-7, atol=1e-11)
    assert sum(pieces) == pytest.approx(1.0, abs=2e-5)


@pytest.mark.parametrize(("kind", "params", "truth"), CASES, ids=IDS)
def test_draws_have_the_distribution(kind, params, truth):
    """Kolmogorov–Smirnov on 20,000 draws with a fixed seed."""
    many = {name: np.full(20_000, value) for name, value in params.items()}
    drawn = kind.draw(np.random.default_rng(5), many)
    assert stats.kstest(drawn, truth.cdf).pvalue > 1e-3
    assert ((drawn >= kind.lowest) & (drawn <= kind.highest)).all()


@pytest.mark.parametrize(("kind", "params", "truth"), CASES, ids=IDS)
def test_mean(kind, params, truth):
    """The average; infinite for the log-Student and for a Student with one degree of freedom."""
    mean = kind.mean(arrays(params))
    if isinstance(truth, LogOf) or params.get("df") == 1.0:
        assert np.isposinf(mean)
    else:
        assert mean == pytest.approx(truth.mean(), rel=1e-12)


EXTREMES = [
    *((kind, params) for kind, params, _ in CASES),
    (Normal(), {"loc": 0.0, "scale": 1e50}),
    (Normal(), {"loc": -1e8, "scale": 1.0}),
    (LogNormal(), {"loc": -200.0, "scale": 1e-4}),
    (LogNormal(), {"loc": 5.0, "scale": 15.0}),
    (Gamma(), {"shape": 1e10, "scale": 1e-8}),
    (Gamma(), {"shape": 0.1, "scale": 1e6}),
    (Exponential(), {"scale": 1e-30}),
    (Student(df=0.5), {"loc": 7.0, "scale": 1e-3, "df": 0.5}),
]


@pytest.mark.parametrize(
    ("kind", "params"), EXTREMES, ids=[f"{kind.name}-{n}" for n, (kind, _) in enumerate(EXTREMES)]
)
def test_defaults_from_the_density_agree_with_closed_forms(kind, params):
    """To 1e-8 in probability, as promised; the mean to 1e-9 of itself or of the half-width at ¼ and ¾.

    Quadrature is asked for 1e-10; numbers far from zero beside their spread are rounded coarsely. The mean of
    a log-Student has no end, and that of a Student with one degree of freedom or less is no number.
    """
    params = arrays(params)
    q = np.array([1e-9, 1e-4, 0.05, 0.3, 0.5, 0.8, 0.99, 1 - 1e-6])
    x = kind.quantile(q, params)
    np.testing.assert_allclose(Family.cdf(kind, x, params), kind.cdf(x, params), rtol=0, atol=1e-8)
    np.testing.assert_allclose(kind.cdf(Family.quantile(kind, q, params), params), q, rtol=0, atol=1e-8)
    ends = Family.quantile(kind, np.array([0.0, 1.0]), params)
    np.testing.assert_array_equal(ends, [kind.lowest, kind.highest])
    np.testing.assert_array_equal(
        Family.cdf(kind, np.array([-np.inf, np.inf, np.nan]), params), [0, 1, np.nan]
    )
    width = float(np.diff(kind.quantile(np.array([0.25, 0.75]), params))[0])
    mean, truth = Family.mean(kind, params), kind.mean(params)
    assert mean == pytest.approx(truth, rel=1e-9, abs=1e-9 * width)
    middle = truth if np.isfinite(truth) else kind.quantile(np.array(0.5), params)
    assert Family.location(kind, params) == pytest.approx(middle, rel=1e-8, abs=1e-8 * width)


@pytest.mark.parametrize(("kind", "params", "truth"), CASES, ids=IDS)
def test_default_draws_have_the_distribution(kind, params, truth):
    many = {name: np.full(3000, value) for name, value in params.items()}
    drawn = Family.draw(kind, np.random.default_rng(6), many)
    assert stats.kstest(drawn, truth.cdf).pvalue > 1e-3


@pytest.mark.parametrize("kind", [Normal(), LogNormal(), Gamma(), Exponential()], ids=lambda kind: kind.name)
def test_default_start_has_the_mean_and_deviation(kind):
    """Points with a given mean and deviation give the normal exactly these.

    Of the gamma the deviation of ln x, √ψ′(shape), is near, for few points say little of tails; the
    exponential has the points' mean. Displaced beyond the domain, parameters are still valid.
    """
    mean, scale = np.array([[1.0], [4.0], [-2.0]]), np.array([[0.2], [0.5], [3.0]])
    shift = scale * np.array([-2.0, 0.0, 2.0])
    made = Family.start(kind, mean, scale, shift)
    kind.check(made)
    assert all(values.shape == (3, 3) and np.isfinite(values).all() for values in made.values())
    if kind.location_scale:
        own = kind.start(mean, scale, shift)
        for name, values in own.items():
            np.testing.assert_allclose(made[name], values, rtol=1e-12)
    elif kind.name == "gamma":
        np.testing.assert_allclose(
            np.sqrt(special.polygamma(1, made["shape"][:2])), np.repeat(scale[:2], 3, 1), rtol=0.05
        )
    else:
        np.testing.assert_allclose(made["scale"][:2, 1:], (mean + shift)[:2, 1:], rtol=1e-12)


def test_sums_by_type_by_hand():
    """Unknown types and events with a missing value are left out of all sums."""
    rows, posterior = np.array([0, 1, 2, 0, 1]), np.array([[0.5], [1.0], [1.0], [0.25], [1.0]])
    x = np.array([2.0, 3.0, 9.0, 4.0, np.nan])
    count, total, squares = sums_by_type(posterior, rows, 2, x, x**2)
    np.testing.assert_array_equal(count, [[0.75], [1.0]])
    np.testing.assert_array_equal(total, [[2.0], [3.0]])
    np.testing.assert_array_equal(squares, [[6.0], [9.0]])


def test_student_sums_log_precision_only_to_estimate_df():
    events = weighted_events(Student())
    fixed, free = (kind.statistics(*events) for kind in (Student(), Student(estimate_df=True)))
    assert free.keys() - fixed.keys() == {"log_precision"}
    merged = Student(estimate_df=True).merge(free, free)
    np.testing.assert_allclose(merged["log_precision"], 2.0 * free["log_precision"], rtol=1e-15)


@six
def test_ends_and_overflow_are_quiet(kind):
    """Quantiles 0 and 1 are the ends of the support; draws and means too large for a float do not warn."""
    params = kind.start(np.zeros(1), np.ones(1), np.zeros(1))
    assert kind.quantile(np.array(0.0), params) == (0.0 if kind.lowest >= 0 else -np.inf)
    assert np.isposinf(kind.quantile(np.array(1.0), params))
    assert kind.cdf(np.array(-np.inf if kind.lowest < 0 else 0.0), params) == 0.0
    if kind.on_log_scale and kind.location_scale:
        huge = params | {"loc": np.array([900.0, -900.0])}
        assert np.isposinf(kind.mean(huge)[0])
        drawn = kind.draw(np.random.default_rng(0), {name: np.full(2, v) for name, v in huge.items()})
        assert ((drawn > 0) & np.isfinite(drawn)).all()


@six
def test_update_maximises_the_weighted_likelihood(kind):
    """A quasi-Newton search that starts elsewhere ends where the update does, and no higher.

    What it may gain is rounding of a sum of ~100 terms of order 10; where it ends, the root of that. The t
    families maximise a bound in each step, so they are first iterated until nothing changes.
    """
    events = weighted_events(kind)
    params = events[-1]
    for _ in range(1 if "df" not in kind.parameters else 400):
        current = {name: values[:-1] for name, values in params.items()}
        updated, floored = kind.update(kind.statistics(*events[:4], params), current, NO_FLOOR, 0.0)
        params = {name: np.vstack([updated[name], params[name][-1:]]) for name in params}
    assert not floored.any()
    free = [name for name in kind.parameters if name != "df"]

    def loss(z):
        moved = dict(zip(free, z.reshape(len(free), *updated[free[0]].shape), strict=True))
        moved = {name: np.exp(v) if name in ("scale", "shape") else v for name, v in moved.items()}
        return -objective(kind, *events[:4], updated | moved)

    best = np.concatenate([(np.log(updated[n]) if n != "loc" else updated[n]).ravel() for n in free])
    found = optimize.minimize(loss, best + 0.1, method="BFGS", options={"gtol": 1e-7})
    assert loss(best) <= found.fun + 1e-9
    np.testing.assert_allclose(best, found.x, atol=1e-4)


@pytest.mark.parametrize("kind", [Student(), Student(estimate_df=True), LogStudent(df=9.0, estimate_df=True)])
def test_student_steps_never_lower_the_likelihood(kind):
    """EM with the precisions hidden: each step gains, and the end is the optimiser's, df included."""
    rng = np.random.default_rng(3)
    x = rng.standard_t(3.0, 400) * 2.0 + 1.0
    x = np.exp(x) if kind.on_log_scale else x
    posterior, rows = np.ones((400, 1)), np.zeros(400, dtype=np.int64)
    params = kind.start(np.zeros((2, 1)), np.full((2, 1), 3.0), np.zeros(1))
    history = []
    for _ in range(1500):
        history.append(objective(kind, x, posterior, rows, 1, params))
        current = {name: values[:1] for name, values in params.items()}
        updated, _ = kind.update(kind.statistics(x, posterior, rows, 1, params), current, NO_FLOOR, 0.0)
        params = {name: np.vstack([v, v]) for name, v in updated.items()}
    # Rounding of a sum of 400 terms.
    assert np.diff(history).min() > -1e-10 * abs(history[-1])
    working = np.log(x) if kind.on_log_scale else x

    def loss(z):
        df = np.exp(z[2]) if kind.estimate_df else kind.df
        return -stats.t.logpdf(working, df, z[0], np.exp(z[1])).sum()

    start = [0.8, 0.3, 1.5] if kind.estimate_df else [0.8, 0.3]
    found = optimize.minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10})
    # The optimum is flat: parameters are known to the root of the objective's precision.
    assert updated["loc"][0, 0] == pytest.approx(found.x[0], abs=1e-4)
    assert updated["scale"][0, 0] == pytest.approx(np.exp(found.x[1]), rel=1e-4)
    assert updated["df"][0, 0] == pytest.approx(np.exp(found.x[2]) if kind.estimate_df else kind.df, rel=1e-4)


@six
def test_statistics_of_parts_merge_to_those_of_the_whole(kind):
    x, posterior, rows, n_rows, params = weighted_events(kind)
    halves = [
        kind.statistics(x[part], posterior[part], rows[part], n_rows, params)
        for part in (slice(0, 30), slice(30, None))
    ]
    whole = kind.statistics(x, posterior, rows, n_rows, params)
    merged = kind.merge(*halves)
    assert merged.keys() == whole.keys()
    for name in whole:
        np.testing.assert_allclose(merged[name], whole[name], rtol=1e-12, atol=1e-12)
    mass = [posterior[rows == row].sum(axis=0) for row in range(n_rows)]
    np.testing.assert_allclose(kind.mass(whole), mass, rtol=1e-12)


@six
def test_missing_values_and_empty_cells(kind):
    """A NaN counts for nothing; a type that never occurs keeps its parameters."""
    x, posterior, rows, n_rows, params = weighted_events(kind)
    holes = np.insert(x, [0, 40], np.nan)
    spread = [np.insert(a, [0, 40], a[0], axis=0) for a in (posterior, rows)]
    plain = kind.statistics(x, posterior, rows, n_rows, params)
    with_holes = kind.statistics(holes, *spread, n_rows, params)
    for name in plain:
        np.testing.assert_array_equal(with_holes[name], plain[name])
    current = {name: values[:n_rows] for name, values in params.items()}
    nobody = kind.statistics(x, posterior, np.full_like(rows, 0), n_rows, params)
    updated, floored = kind.update(nobody, current, 1e-3, 0.0)
    for name in kind.parameters:
        np.testing.assert_array_equal(updated[name][1], current[name][1])
    assert not floored[1].any()


@six
def test_scale_floor_acts_and_is_reported(kind):
    """Equal values have no spread: every scale is the floor (for the gamma 1/√shape), and it says so."""
    x = np.full(10, 0.0 if kind.name == "exponential" else 7.0)
    params = kind.start(np.zeros((2, 1)), np.ones((2, 1)), np.zeros(2))
    current = {name: values[:1] for name, values in params.items()}
    for _ in range(200):  # the t families shrink towards it
        stats_of_x = kind.statistics(x, np.full((10, 2), 0.5), np.zeros(10, dtype=np.int64), 1, params)
        current, floored = kind.update(stats_of_x, current, 0.25, 0.0)
        params = {name: np.vstack([v, v]) for name, v in current.items()}
    scale = current["shape"] ** -0.5 if kind.name == "gamma" else current["scale"]
    np.testing.assert_allclose(scale, 0.25, rtol=1e-12)
    assert floored.all()
    far = kind.statistics(*weighted_events(kind)[:4], weighted_events(kind)[4])
    assert not kind.update(far, {n: np.ones((2, 2)) for n in kind.parameters}, 1e-6, 0.0)[1].any()


@six
def test_marginal_has_the_moments_of_the_mixture(kind):
    """Mean and variance of a large mixed sample, on the scale on which the family's marginal is taken.

    The t families mix location and squared scale instead, as a normal with these would.
    """
    rng = np.random.default_rng(8)
    m, n = 3, 400_000
    weights = rng.dirichlet(np.ones(m), 2).T
    params = kind.start(rng.normal(1.0, 0.3, (m, 1)), np.full((m, 1), 0.5), np.array([0.0, 0.5]))
    marginal = kind.marginal(params, weights)
    normal = {"normal": Normal(), "lognormal": LogNormal(), "student": Normal(), "logstudent": LogNormal()}
    sampler = normal.get(kind.name, kind)
    for state in range(2):
        types = rng.choice(m, n, p=weights[:, state])
        drawn = sampler.draw(rng, {name: values[types, state] for name, values in params.items()})
        if kind.location_scale:
            drawn = np.log(drawn) if kind.on_log_scale else drawn
            have = marginal["loc"][state], marginal["scale"][state] ** 2
        else:
            have = (
                kind.mean(marginal)[state],
                marginal.get("shape", np.ones(2))[state] * marginal["scale"][state] ** 2,
            )
        # Five standard errors of the sample's moments.
        assert have[0] == pytest.approx(drawn.mean(), abs=5 * drawn.std() / n**0.5)
        if kind.name != "exponential":
            squares = (drawn - drawn.mean()) ** 2
            assert have[1] == pytest.approx(drawn.var(), abs=5 * squares.std() / n**0.5)


@six
def test_interpolation_ends_at_the_own_and_the_marginal(kind):
    params = kind.start(np.array([[0.0], [1.0], [2.0]]), np.full((3, 1), 0.7), np.array([-0.2, 0.4]))
    marginal = kind.marginal(params, np.full((3, 2), 1 / 3))
    mixed = kind.interpolate(params, marginal, np.array([[1.0], [0.0], [0.5]]))
    for name in kind.parameters:
        np.testing.assert_allclose(mixed[name][0], params[name][0], rtol=1e-12)
        np.testing.assert_allclose(mixed[name][1], marginal[name], rtol=1e-12)
    kind.check(mixed)


def test_gamma_shape_to_full_precision():
    """Against Binet's integral of ln a − ψ(a), which has no cancellation for large a."""
    excess = np.geomspace(1e-8, 200.0, 60)
    shape = gamma_shape(excess)

    def binet(a):
        # t = a·u; the integrand is smooth and decays like exp(−2πau)
        tail = integrate.quad(
            lambda u: u / ((u * u + 1.0) * np.expm1(2 * np.pi * a * u)) if u > 0 else 1 / (2 * np.pi * a),
            0.0,
            min(40.0 / (2 * np.pi * a), 1e4),
            epsabs=0.0,
            epsrel=1e-13,
            limit=500,
        )[0]
        return 0.5 / a + 2.0 * tail

    large = shape > 0.05
    np.testing.assert_allclose([binet(a) for a in shape[large]], excess[large], rtol=1e-12)
    small = shape[~large]
    np.testing.assert_allclose(np.log(small) - special.digamma(small), excess[~large], rtol=1e-12)


def test_families_by_name():
    assert family_names() == (
        *("categorical", "exponential", "gamma", "lognormal", "logstudent", "normal", "student"),
    )
    assert family("student", df=3.0) == Student(df=3.0)
    for wrong in (0.4, 201.0, float("nan")):
        with pytest.raises(ValueError, match=r"df must be between 0\.5 and 200"):
            Student(df=wrong)


@pytest.mark.parametrize("shape", [1e3 + 1, 1e6, 1e9, 1e12])
def test_a_gamma_of_large_shape_is_nearly_normal(shape):
    """ln f(x) at mean + z standard deviations, by an expansion that has no cancelling terms."""
    mean = 250.0
    z = np.linspace(-3, 3, 13)
    x = mean * (1 + z / np.sqrt(shape))
    found = Gamma().log_density(x, {"shape": np.array(shape), "scale": np.array(mean / shape)})
    u = (x - mean) / mean
    # ln f = −½ ln(2π) + ½ ln a − ln x + a (ln(1 + u) − u), less 1/(12 a).
    exact = (
        -0.5 * np.log(2 * np.pi)
        + 0.5 * np.log(shape)
        - np.log(x)
        + shape * (np.log1p(u) - u)
        - 1 / (12 * shape)
    )
    # x itself is rounded: u to 1e-16, times a·u.
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-10 + 1e-15 * np.sqrt(shape))
