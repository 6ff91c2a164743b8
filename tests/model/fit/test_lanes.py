"""Models over the same event sequences, fitted side by side, against each fitted alone."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from keydyn import HMM, POHMM, Sequences, fit_many
from keydyn.model import Categorical
from keydyn.model.fit import many
from keydyn.model.fit.batch import Batch

LENGTHS = [1, 30, 11, 8]
N = sum(LENGTHS)


def items(n, seed=0, families=("lognormal", "normal"), types=5):
    """Values of their own over the same events; some have an outlier that makes densities underflow."""
    rng = np.random.default_rng(seed)
    events = rng.integers(0, types, N)
    made = []
    for k in range(n):
        slow = rng.random((N, 2)) < 0.3
        X = np.exp(5.0 + slow + 0.3 * rng.standard_normal((N, 2)))
        if k % 5 == 0:
            X[7] *= 1e6
        if families[1] == "normal":
            X[:, 1] -= 150.0
        made.append(Sequences.from_arrays(X, events, LENGTHS))
    return made


def positive(n, seed=1, families=("gamma", "gamma")):
    """Values of their own over the same events, such as each family can emit; nothing underflows."""
    rng = np.random.default_rng(seed)
    events = rng.integers(0, 5, N)
    made = []
    for _ in range(n):
        slow = rng.random((N, 2)) < 0.3
        X = np.exp(5.0 + slow + 0.3 * rng.standard_normal((N, 2)))
        for k, family in enumerate(families):
            if family == "categorical":
                X[:, k] = rng.integers(0, 3, N) // (1 + slow[:, k])
        made.append(Sequences.from_arrays(X, events, LENGTHS))
    return made


def fitted_both_ways(model, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit_many(model, data), fitted_alone(model, data)


def fitted_alone(model, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [fit_many(model, [item])[0] for item in data]


def assert_same_fit(one, other):
    assert (one.n_iter_, one.stop_reason_) == (other.n_iter_, other.stop_reason_)
    np.testing.assert_allclose(one.history_, other.history_, rtol=1e-9)
    assert one.log_likelihood_ == pytest.approx(other.log_likelihood_, rel=1e-9)
    np.testing.assert_allclose(one.startprob_, other.startprob_, atol=1e-6)
    np.testing.assert_allclose(one.transmat_, other.transmat_, atol=1e-5)
    np.testing.assert_allclose(one.stationary_, other.stationary_, atol=1e-6)
    np.testing.assert_allclose(
        one._state.result.statistics.first_seen, other._state.result.statistics.first_seen, atol=1e-5
    )
    for a, b in zip(one.emission_, other.emission_, strict=True):
        np.testing.assert_allclose(a.loc, b.loc, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(a.scale, b.scale, rtol=1e-4, atol=1e-7)
    assert one.event_types_.tolist() == other.event_types_.tolist()
    np.testing.assert_array_equal(one.event_prob_, other.event_prob_)


@pytest.mark.parametrize("kind", [POHMM, POHMM.published, HMM, HMM.published])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"smoothing": None},
        {"marginals": "exact"},
        {"max_iter": 3},
        {"emission": ["logstudent", "student"]},
        {"emission": ["lognormal", "student"], "fixed": ("start", "transitions")},
    ],
)
def test_lanes_give_what_each_fit_alone_gives(kind, changes, monkeypatch):
    """Every one stops by its own tolerance, with the same result, to rounding; more models than lanes."""
    model = kind(**({"emission": ["lognormal", "normal"], "tol": 1e-3} | changes))
    in_lanes = []
    shared = Batch.shared
    monkeypatch.setattr(Batch, "shared", lambda data, *a: in_lanes.append(len(data)) or shared(data, *a))
    together, alone = fitted_both_ways(model, items(many.FEW + 10))
    assert in_lanes == [many.FEW + 10]
    for one, other in zip(together, alone, strict=True):
        assert_same_fit(one, other)
    assert len({model.n_iter_ for model in together}) > 1 or changes == {"max_iter": 3}


def test_few_models_over_few_events(monkeypatch):
    """Most lanes stay free; no model goes the long way instead."""
    monkeypatch.setattr(many, "_fit_one", None)
    rng = np.random.default_rng(3)
    data = [
        Sequences.from_arrays(np.exp(5.0 + scale * rng.standard_normal((6, 1))), list("abaabb"), [1, 5])
        for scale in (0.01, 0.3, 1.0)
    ]
    model = POHMM(tol=0.1, max_iter=3)
    _, together = many._fit_some(model, data, [None] * 3, [0, 1, 2], True)
    for one, other in zip(together, fitted_alone(model, data), strict=True):
        assert_same_fit(one, other)


def test_results_do_not_depend_on_threads_or_company():
    """Bit for bit: the number of threads, and for lanes which other models there are."""
    data = items(many.FEW + 1)
    model = POHMM(tol=1e-3, emission=["lognormal", "normal"])
    one, two, other = fit_many(model, data), fit_many(model, data, n_jobs=2), fit_many(model, data[::-1])
    for a, b, c in zip(one, two, other[::-1], strict=True):
        assert a.log_likelihood_ == b.log_likelihood_ == c.log_likelihood_
        np.testing.assert_array_equal(a.history_, b.history_)
        np.testing.assert_array_equal(a.emission_[0].loc, c.emission_[0].loc)


def test_what_cannot_share_is_fitted_alone():
    """Other events, missing values or types, three states, several starts: the right result."""
    n = many.FEW + 4
    data = items(n)
    assert [len(group) for group in many.same_events(POHMM(), data)] == [n]
    assert many.same_events(POHMM(), data[: many.FEW - 1]) == []
    assert many.same_events(POHMM(n_states=3), data) == []
    gap = data[3].X.copy()
    gap[4, 0] = np.nan
    data[3] = Sequences.from_arrays(gap, data[3].labels(), LENGTHS)
    data[5] = Sequences.from_arrays(data[5].X, data[5].labels()[::-1], LENGTHS)
    labels = data[7].labels().astype(object)
    labels[2] = None
    data[7] = Sequences.from_arrays(data[7].X, labels, LENGTHS)
    (group,) = many.same_events(POHMM(), data)
    assert sorted(set(range(n)) - set(group)) == [3, 5, 7]
    model = POHMM(tol=1e-2, emission=["lognormal", "normal"])
    together, alone = fitted_both_ways(model, data)
    for one, other in zip(together, alone, strict=True):
        assert one.log_likelihood_ == pytest.approx(other.log_likelihood_, rel=1e-9)
    for changes in ({"n_init": 2, "random_state": 1}, {"callback": lambda iteration: None}, {"n_states": 3}):
        together, alone = fitted_both_ways(POHMM(tol=1.0, emission="gamma", **changes), positive(n))
        assert [m.log_likelihood_ for m in together] == [m.log_likelihood_ for m in alone]


def test_an_error_names_its_item():
    """Also where the item would have shared its events with others."""
    data = items(many.FEW + 4)
    data[13] = Sequences.from_arrays(-data[13].X, data[13].labels(), LENGTHS)
    with pytest.raises(ValueError, match=r"model 13: .*is not a value of a lognormal emission"):
        fit_many(
            POHMM(tol=1e-2),
            [Sequences.from_arrays(abs(d.X), d.labels(), LENGTHS) for d in data[:13]] + data[13:],
        )


def test_feature_names_come_along():
    """A fitted model knows the columns of its data."""
    data = [
        Sequences(item.X, item.codes, item.event_types, item.offsets, ("duration", "tau"))
        for item in items(many.FEW + 4)
    ]
    for model in fit_many(POHMM(tol=1e-1, emission=["lognormal", "normal"]), data):
        assert model.feature_names_in_.tolist() == ["duration", "tau"]


@pytest.mark.parametrize("family", ["normal", "lognormal", "student", "gamma", "exponential", "categorical"])
@pytest.mark.parametrize("kind", [POHMM, POHMM.published])
def test_every_family_in_lanes(family, kind, monkeypatch):
    """Ten iterations, to 1e-10: rounding of 1e-15 grows by some powers of ten where γ are divided by."""
    emission = [Categorical(n_categories=3) if family == "categorical" else family, "lognormal"]
    model = kind(emission=emission, max_iter=10, tol=0.0)
    data = positive(many.FEW + 3, families=(family, "lognormal"))
    in_lanes, shared = [], Batch.shared
    monkeypatch.setattr(Batch, "shared", lambda items, *a: in_lanes.append(len(items)) or shared(items, *a))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        together = fit_many(model, data)
        alone = [kind(**model.get_params()).fit(item) for item in data]
    assert in_lanes == [len(data)]
    for one, other in zip(together, alone, strict=True):
        close = {"rtol": 1e-10, "atol": 1e-13}
        assert (one.n_iter_, one.stop_reason_) == (other.n_iter_, other.stop_reason_)
        np.testing.assert_allclose(one.history_, other.history_, rtol=1e-10)
        assert one.log_likelihood_ == pytest.approx(other.log_likelihood_, rel=1e-10)
        for name in ("startprob_", "transmat_", "stationary_"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), err_msg=name, **close)
        for a, b in zip(
            one.emission_ + one.marginal_.emission, other.emission_ + other.marginal_.emission, strict=True
        ):
            for name in a.params:
                np.testing.assert_allclose(a.params[name], b.params[name], err_msg=name, **close)
        np.testing.assert_array_equal(one.scale_floored_, other.scale_floored_)
