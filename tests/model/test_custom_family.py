"""A family that a user adds: subclass `Family`, `register`, and everything else works with it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy import stats

from keydyn import POHMM, load
from keydyn.model import Family, ModelFileError, family_names, register
from keydyn.model.families.family import _FAMILIES, families_of
from keydyn.model.moments import add_stats


@dataclass(frozen=True)
class Rayleigh(Family):
    """x²/2 is exponential with mean scale²: an independent truth for everything a model does with it."""

    name: ClassVar[str] = "rayleigh"
    parameters: ClassVar[tuple[str, ...]] = ("scale",)
    lowest: ClassVar[float] = 1e-100
    domain: ClassVar[str] = "greater than zero"

    def log_density(self, x, params):
        return np.log(x) - 2.0 * np.log(params["scale"]) - 0.5 * (x / params["scale"]) ** 2

    def cdf(self, x, params):
        return -np.expm1(-0.5 * (np.maximum(x, 0.0) / params["scale"]) ** 2)

    def quantile(self, q, params):
        return params["scale"] * np.sqrt(-2.0 * np.log1p(-np.asarray(q)))

    def mean(self, params):
        return params["scale"] * np.sqrt(0.5 * np.pi)

    def location(self, params):
        return params["scale"]

    def draw(self, generator, params):
        return generator.rayleigh(params["scale"])

    def start(self, mean, scale, shift):
        return {"scale": np.maximum(mean, scale) * np.exp(np.clip(shift / scale, -3.0, 3.0))}

    def statistics(self, x, posterior, rows, n_rows, params):
        known = (rows < n_rows) & ~np.isnan(x)
        count, half_square = np.zeros((2, n_rows, posterior.shape[1]))
        np.add.at(count, rows[known], posterior[known])
        np.add.at(half_square, rows[known], 0.5 * posterior[known] * x[known, None] ** 2)
        return {"count": count, "half_square": half_square}

    def merge(self, a, b):
        return add_stats(a, b)

    def update(self, stats, current, min_scale, count_floor):
        some = stats["count"] > max(1e-250, count_floor)
        scale = np.sqrt(stats["half_square"] / np.where(some, stats["count"], 1.0))
        floored = some & (scale < min_scale)
        return {"scale": np.where(some, np.maximum(scale, min_scale), current["scale"])}, floored

    def marginal(self, params, weights):
        return {"scale": np.sqrt(np.sum(weights * params["scale"] ** 2, axis=0))}

    def interpolate(self, params, marginal, keep):
        return {"scale": np.sqrt(keep * params["scale"] ** 2 + (1.0 - keep) * marginal["scale"] ** 2)}

    def check(self, params):
        if (params["scale"] <= 0).any():
            raise ValueError("scale must be greater than zero")


@pytest.fixture
def rayleigh():
    register(Rayleigh)
    yield "rayleigh"
    del _FAMILIES["rayleigh"]


def typist(kind, scale):
    rng = np.random.default_rng(2)
    return POHMM.from_parameters(
        ["a", "b"],
        rng.dirichlet([2, 2], 2),
        rng.dirichlet([2, 2], (2, 2, 2)),
        [(kind, {"scale": scale})],
        event_transmat=[[0.3, 0.7], [0.6, 0.4]],
    )


SCALE = np.array([[1.0, 4.0], [2.0, 9.0]])


def test_scores_by_change_of_variables(rayleigh):
    """ln p(x) under the Rayleigh is ln p(x²/2) under the exponential plus Σ ln x, missing types and all."""
    model, twin = typist(rayleigh, SCALE), typist("exponential", SCALE**2)
    X, events, _ = model.sample(300, random_state=4)
    events = events.astype(object)
    events[::9] = None
    X[5] = np.nan
    transformed = twin.score(X**2 / 2, events=events) + np.nansum(np.log(X))
    assert model.score(X, events=events) == pytest.approx(transformed, rel=1e-12)
    future = model.predict_next(X, events=events, next_event="a")
    assert future.cdf(future.quantile(0.9)) == pytest.approx(0.9, abs=1e-12)


def test_samples_have_the_distribution(rayleigh):
    X, events, states = typist(rayleigh, SCALE).sample(20_000, random_state=1)
    chosen = (events == "b") & (states == 1)
    assert stats.kstest(X[chosen, 0], stats.rayleigh(scale=9.0).cdf).pvalue > 1e-3


def test_fit_recovers_the_model_and_beside_other_families(rayleigh):
    """Scales come back within 15 %, some five standard errors of a few hundred events of each kind."""
    model = typist(rayleigh, SCALE)
    X, events, _ = model.sample(6000, random_state=3)
    fitted = POHMM(emission=rayleigh, smoothing=None, tol=1e-4).fit(X, events=events)
    np.testing.assert_allclose(fitted.emission_[0].params["scale"], SCALE, rtol=0.15)
    assert fitted.score(X, events=events) > model.score(X, events=events)
    both = POHMM(emission=["normal", rayleigh], tol=1e-1).fit(np.hstack([X, X]), events=events)
    assert np.isfinite(both.score(np.hstack([X, X]), events=events))


def test_a_file_with_it_needs_it(rayleigh, tmp_path):
    """Round trip while it is registered; without it the error names the family."""
    model = typist(rayleigh, SCALE)
    model.save(tmp_path / "model.keydyn")
    again = load(tmp_path / "model.keydyn")
    np.testing.assert_array_equal(again.emission_[0].params["scale"], SCALE)
    kept = _FAMILIES.pop("rayleigh")
    with pytest.raises(ModelFileError, match="emission 'rayleigh' is not known"):
        load(tmp_path / "model.keydyn")
    register(kept)


def test_a_name_is_registered_once(rayleigh):
    """The same class again is harmless; another of the same name is an error."""
    register(Rayleigh)

    @dataclass(frozen=True)
    class Impostor(Rayleigh):
        name: ClassVar[str] = "normal"

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
