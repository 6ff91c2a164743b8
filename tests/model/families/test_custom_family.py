"""A family that a user adds: three methods and `register`, and everything else works with it."""

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from keydyn import POHMM, load
from keydyn.model import Family, ModelFileError, family_names, register
from keydyn.model.families import sums_by_type
from keydyn.model.families.family import _FAMILIES, families_of


class Rayleigh(Family):
    """As little as a family can be; x²/2 is exponential with mean `power`, a truth for everything."""

    name = "rayleigh"
    parameters = ("power",)
    lowest = 1e-100

    def log_density(self, x, params):
        return np.log(x) - np.log(params["power"]) - 0.5 * x**2 / params["power"]

    def statistics(self, x, posterior, rows, n_rows, params):
        count, total = sums_by_type(posterior, rows, n_rows, 0.5 * x**2)
        return {"count": count, "sum": total}

    def update(self, stats, current, min_scale, count_floor):
        some = stats["count"] > max(1e-250, count_floor)
        power = stats["sum"] / np.where(some, stats["count"], 1.0)
        floored = some & (power < min_scale**2)
        return {"power": np.where(some, np.maximum(power, min_scale**2), current["power"])}, floored


class Wald(Family):
    """The inverse Gaussian, of ln x's scale: two parameters whose maximum is in closed form."""

    name = "wald"
    parameters = ("mean", "shape")
    lowest = 1e-100
    on_log_scale = True

    def log_density(self, x, params):
        mean, shape = params["mean"], params["shape"]
        return 0.5 * np.log(shape / (2 * np.pi * x**3)) - 0.5 * shape * (x / mean - 1.0) ** 2 / x

    def statistics(self, x, posterior, rows, n_rows, params):
        count, total, inverse = sums_by_type(posterior, rows, n_rows, x, 1.0 / x)
        return {"count": count, "sum": total, "inverse": inverse}

    def update(self, stats, current, min_scale, count_floor):
        some = stats["count"] > max(1e-250, count_floor)
        count = np.where(some, stats["count"], 1.0)
        mean = np.where(some, stats["sum"], 1.0) / count
        spread, least = np.where(some, stats["inverse"], 2.0) / count - 1.0 / mean, min_scale**2 / mean
        params = {"mean": mean, "shape": 1.0 / np.maximum(spread, least)}
        return {name: np.where(some, params[name], current[name]) for name in params}, some & (spread < least)


def scipys(kind, params):
    if kind.name == "rayleigh":
        return stats.rayleigh(scale=np.sqrt(params["power"]))
    return stats.invgauss(params["mean"] / params["shape"], scale=params["shape"])


@pytest.fixture
def rayleigh():
    register(Rayleigh)
    yield "rayleigh"
    del _FAMILIES["rayleigh"]


def typist(kind, parameter, table):
    rng = np.random.default_rng(2)
    return POHMM.from_parameters(
        ["a", "b"],
        rng.dirichlet([2, 2], 2),
        rng.dirichlet([2, 2], (2, 2, 2)),
        [(kind, {parameter: table})],
        event_transmat=[[0.3, 0.7], [0.6, 0.4]],
    )


POWER = np.array([[1.0, 16.0], [4.0, 81.0]])
CELLS = [
    (Rayleigh(), {"power": np.array([1.0, 1e-12, 1e12, 4e30])}),
    (Wald(), {"mean": np.array([1.0, 3e-8, 1e5, 250.0]), "shape": np.array([2.0, 1e-3, 1e5, 1e9])}),
]
KINDS = pytest.mark.parametrize(("kind", "params"), CELLS, ids=["rayleigh", "wald"])


@KINDS
def test_what_it_does_not_say_is_found_from_its_density(kind, params):
    """Distribution function, quantiles and mean are scipy's.

    Quadrature is asked for 1e-10. scipy's quantiles of a narrow inverse Gaussian are off by 1e-6 in
    probability, so ours are judged by its distribution function. Parameters go over many orders, so that
    nothing is in reach by chance.
    """
    q = np.array([1e-6, 0.01, 0.3, 0.5, 0.9, 0.999])[:, None]
    x = scipys(kind, params).ppf(q)
    np.testing.assert_allclose(kind.log_density(x, params), scipys(kind, params).logpdf(x), rtol=1e-6)
    np.testing.assert_allclose(kind.cdf(x, params), scipys(kind, params).cdf(x), rtol=0, atol=1e-10)
    back = scipys(kind, params).cdf(kind.quantile(q, params))
    np.testing.assert_allclose(back, np.broadcast_to(q, back.shape), rtol=0, atol=1e-10)
    np.testing.assert_allclose(kind.mean(params), scipys(kind, params).mean(), rtol=1e-10)
    np.testing.assert_array_equal(kind.location(params), kind.mean(params))
    ends = np.array([[0.0], [1.0]])
    np.testing.assert_array_equal(kind.quantile(ends, params)[:, 0], [kind.lowest, kind.highest])
    np.testing.assert_array_equal(kind.cdf(np.array([[-1.0], [0.0], [1e100]]), params)[:, 0], [0.0, 0.0, 1.0])


@KINDS
def test_draws_are_the_generators(kind, params):
    """Kolmogorov–Smirnov on 5,000 draws; the same seed gives the same, and no other source is used."""
    many = {name: np.full(5000, values[0]) for name, values in params.items()}
    np.random.seed(0)  # noqa: NPY002 to see that it is left alone
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    drawn = kind.draw(np.random.default_rng(3), many)
    np.testing.assert_array_equal(kind.draw(np.random.default_rng(3), many), drawn)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    one = {name: values[0] for name, values in params.items()}
    assert stats.kstest(drawn, scipys(kind, one).cdf).pvalue > 1e-3


@KINDS
def test_a_start_is_valid_wherever_the_data_lie(kind, params):
    """Rows far apart, displaced far out of the domain, or without spread; states remain in order."""
    mean = np.array([[0.0], [5.0], [-3.0], [80.0]])
    scale = np.array([[1e-6], [1.0], [7.0], [0.5]])
    made = kind.start(mean, scale, scale * np.array([-2.0, 0.0, 2.0]))
    for values in made.values():
        assert values.shape == (4, 3)
        assert (np.isfinite(values) & (values > 0)).all()
    assert (np.diff(kind.location(made), axis=1) > 0).all()


@pytest.mark.parametrize("n_states", [1, 2, 3])
@pytest.mark.parametrize("kind", [Rayleigh(), Wald()], ids=["rayleigh", "wald"])
def test_expectation_maximisation_climbs(kind, n_states):
    """Without smoothing no step falls, up to rounding of the log-likelihood's sum; missing values and all."""
    rng = np.random.default_rng(n_states)
    X, events = rng.gamma(2.0, rng.choice([1.0, 20.0], 400))[:, None], rng.choice(list("abc"), 400)
    X[::17] = np.nan
    plain = POHMM(n_states, emission=kind, smoothing=None, tol=0.1).fit(X, events=events)
    assert np.diff(plain.history_).min(initial=0.0) >= -1e-9 * abs(plain.log_likelihood_)
    assert plain.score(X, events=events) == pytest.approx(plain.log_likelihood_, rel=1e-9)
    if n_states == 1:
        params = {n: v[np.searchsorted(list("abc"), events), 0] for n, v in plain.emission_[0].params.items()}
        truth = np.nansum(scipys(kind, params).logpdf(X[:, 0]))
        assert plain.log_likelihood_ == pytest.approx(truth, rel=1e-10)
    smooth = POHMM(n_states, emission=kind, tol=0.1).fit(X, events=events)
    unknown = np.where(np.arange(400) % 7 == 0, None, events.astype(object))
    unknown[5] = "new"
    assert np.isfinite(smooth.score(X, events=unknown))
    assert np.isfinite(POHMM(n_states, emission=kind, tol=0.1).fit(X, events=unknown).score(X))
    assert (np.diff(kind.location(smooth.emission_[0].params).mean(axis=0)) > 0).all()


def test_sampled_and_fitted_again():
    """Both parameters come back within 15 %, some five standard errors of ~1000 events of each kind."""
    table = {"mean": np.array([[1.0, 5.0], [2.0, 9.0]]), "shape": np.array([[20.0, 40.0], [30.0, 90.0]])}
    truth = POHMM.from_parameters(
        ["a", "b"], [[0.5, 0.5]] * 2, np.tile([[0.8, 0.2], [0.3, 0.7]], (2, 2, 1, 1)), [(Wald(), table)]
    )
    X, events, _ = truth.sample(5000, random_state=2)
    fitted = POHMM(emission=Wald(), tol=1e-3).fit(X, events=events)
    for name, values in table.items():
        np.testing.assert_allclose(fitted.emission_[0].params[name], values, rtol=0.15)


def test_merged_as_if_fitted_together(rayleigh):
    """Sums of two sets of events are those of all: an update from parts equals one from the whole."""
    model = typist(rayleigh, "power", POWER)
    X, events, _ = model.sample(lengths=[60, 60], random_state=1)
    parts = typist(rayleigh, "power", POWER)
    parts.accumulate(X[:60], events=events[:60]).accumulate(X[60:], events=events[60:]).update()
    whole = model.accumulate(X, events=events, lengths=[60, 60]).update()
    np.testing.assert_allclose(
        parts.emission_[0].params["power"], whole.emission_[0].params["power"], rtol=1e-12
    )


def test_a_density_that_is_none_is_refused():
    """Its integral is not one; what to do is said."""

    class Forgetful(Rayleigh):
        def log_density(self, x, params):
            return super().log_density(x, params) + np.log(3.0)

    with pytest.raises(ValueError, match=r"'rayleigh' with power = 4 integrates to 3.* not to 1; if it is"):
        Forgetful().cdf(np.array(1.0), {"power": np.array(4.0)})


def test_its_domain_in_words(rayleigh):
    assert Rayleigh.domain == "a number between 1e-100 and 1e+100"
    with pytest.raises(ValueError, match=r"row 1, column 0: -2\.0 .* a number between 1e-100"):
        POHMM(emission=rayleigh).fit([[1.0], [-2.0]])


def test_scores_by_change_of_variables(rayleigh):
    """ln p(x) under the Rayleigh is ln p(x²/2) under the exponential plus Σ ln x, missing types and all."""
    model, twin = typist(rayleigh, "power", POWER), typist("exponential", "scale", POWER)
    X, events, _ = model.sample(300, random_state=4)
    events = events.astype(object)
    events[::9] = None
    X[5] = np.nan
    transformed = twin.score(X**2 / 2, events=events) + np.nansum(np.log(X))
    assert model.score(X, events=events) == pytest.approx(transformed, rel=1e-12)
    for next_event in ("a", None):
        future = model.predict_next(X, events=events, next_event=next_event)
        other = twin.predict_next(X**2 / 2, events=events, next_event=next_event)
        # By quadrature, asked for 1e-10.
        assert future.cdf(3.0) == pytest.approx(other.cdf(4.5), abs=1e-9)
        assert future.quantile(0.9) == pytest.approx(np.sqrt(2.0 * other.quantile(0.9)), rel=1e-8)
    weights = twin.predict_next(X**2 / 2, events=events, next_event="a").weights
    mean = model.predict_next(X, events=events, next_event="a").mean()
    assert mean == pytest.approx(weights @ np.sqrt(0.5 * np.pi * POWER[:1].T), rel=1e-9)


def test_residuals_by_change_of_variables(rayleigh):
    """The distribution function does not care for the variable; residuals as Φ⁻¹ of it keep 1e-6."""
    model, twin = typist(rayleigh, "power", POWER), typist("exponential", "scale", POWER)
    X, events, _ = model.sample(200, random_state=4)
    X[7] = np.nan
    for name in ("forecast_residuals", "ordinary_residuals"):
        found = getattr(model, name)(X, events=events)
        np.testing.assert_allclose(found, getattr(twin, name)(X**2 / 2, events=events), atol=1e-6)


def test_samples_have_the_distribution(rayleigh):
    X, events, states = typist(rayleigh, "power", POWER).sample(20_000, random_state=1)
    chosen = (events == "b") & (states == 1)
    assert stats.kstest(X[chosen, 0], stats.rayleigh(scale=9.0).cdf).pvalue > 1e-3


def test_fit_recovers_the_model_and_beside_other_families(rayleigh):
    """Mean squares come back within 20 %, some five standard errors of a thousand events of each kind."""
    model = typist(rayleigh, "power", POWER)
    X, events, _ = model.sample(6000, random_state=3)
    fitted = POHMM(emission=rayleigh, smoothing=None, tol=1e-4).fit(X, events=events)
    np.testing.assert_allclose(fitted.emission_[0].params["power"], POWER, rtol=0.2)
    assert fitted.score(X, events=events) > model.score(X, events=events)
    both = POHMM(emission=["normal", rayleigh], tol=1e-1).fit(np.hstack([X, X]), events=events)
    assert np.isfinite(both.score(np.hstack([X, X]), events=events))


def test_a_file_with_it_needs_it(rayleigh, tmp_path):
    """Round trip while it is registered; without it the error names the family."""
    model = typist(rayleigh, "power", POWER)
    model.save(tmp_path / "model.keydyn")
    again = load(tmp_path / "model.keydyn")
    np.testing.assert_array_equal(again.emission_[0].params["power"], POWER)
    kept = _FAMILIES.pop("rayleigh")
    with pytest.raises(ModelFileError, match="emission 'rayleigh' is not known"):
        load(tmp_path / "model.keydyn")
    register(kept)


def test_a_name_is_registered_once(rayleigh):
    """The same class again is harmless; another of the same name is an error."""
    register(Rayleigh)

    class Impostor(Rayleigh):
        name = "normal"

    with pytest.raises(ValueError, match="there is an emission family 'normal' already"):
        register(Impostor)
    assert families_of("normal", 1)[0].name == "normal"
    assert "rayleigh" in family_names()


def test_unregistered_afterwards():
    assert "rayleigh" not in family_names()
    with pytest.raises(
        ValueError, match="emission 'rayleigh' is not known; families: categorical, exponential, gamma"
    ):
        POHMM(emission="rayleigh").fit([[1.0], [2.0]])


def test_an_update_is_told_the_current_parameters_of_each_type(own_registries):
    """Of each type and state, as the statistics are: without the marginals."""
    seen = []

    class Looking(Rayleigh):
        name = "looking"

        def update(self, stats, current, min_scale, count_floor):
            seen.append((stats["count"].shape, current["power"].copy()))
            return super().update(stats, current, min_scale, count_floor)

    register(Looking)
    X, events = np.random.default_rng(0).rayleigh(3.0, (60, 1)), [*"abc"] * 20
    with pytest.warns(ConvergenceWarning):
        POHMM(emission="looking", max_iter=3, tol=0.0, smoothing=None).fit(X, events=events)
    # Marginals are updated as well, in a table of their own.
    assert all(power.shape == shape for shape, power in seen)
    assert (3, 2) in {shape for shape, _ in seen}
