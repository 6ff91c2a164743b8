"""The parametric bootstrap: against textbook standard errors, its coverage, its labels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from keydyn import HMM, POHMM, Sequences
from keydyn.model import LogStudent
from keydyn.model.check import bootstrap
from keydyn.model.fit.estimator import ModelState
from tests.model.enumeration import Truth


def test_standard_errors_of_one_normal_state():
    """σ/√N of the mean and σ/√(2N) of the deviation.

    From 400 refits a standard error is known to 1/√800 = 3.5 %; five times that are allowed, which a right
    implementation exceeds with a chance of 1e-6.
    """
    X = np.random.default_rng(0).normal(10.0, 2.0, (500, 1))
    model = HMM(n_states=1, emission="normal").fit(X)
    found = model.bootstrap(X, n_replicates=400, random_state=1)
    table = found.table().set_index("parameter")
    sigma = model.emission_[0].scale[0, 0]
    assert table.loc["loc", "standard_error"] == pytest.approx(sigma / np.sqrt(500), rel=0.175)
    assert table.loc["scale", "standard_error"] == pytest.approx(sigma / np.sqrt(1000), rel=0.175)
    # The mean is unbiased: the mean of 400 refits within five of its standard errors.
    assert abs(found.bias[list(found.names["parameter"]).index("loc")]) < 5 * sigma / np.sqrt(500 * 400)
    row = table.loc["loc"]
    assert row["low"] < row["estimate"] < row["high"]
    assert row["high"] - row["low"] == pytest.approx(2 * 1.96 * row["standard_error"], rel=0.25)


def test_standard_error_of_a_transition_probability():
    """States that cannot be mistaken: √(p(1 − p)/n) with n the visits; 5 times the chance share of 3.5 %."""
    model = HMM.from_parameters(
        [0.5, 0.5], [[0.9, 0.1], [0.3, 0.7]], [("normal", [0.0, 100.0], [1.0, 1.0])], tol=1e-2
    )
    X, _, states = model.sample(2000, random_state=2)
    found = model.bootstrap(X, n_replicates=400, random_state=3)
    steps = found.names.query("part == 'transition' and from_state == 0 and state == 1").index[0]
    visits = 2000 * 0.75
    assert found.standard_error[steps] == pytest.approx(np.sqrt(0.9 * 0.1 / visits), rel=0.19)
    assert found.estimate[steps] == 0.1
    assert states.mean() == pytest.approx(0.25, abs=0.1)


def test_coverage_of_the_intervals():
    """90 % intervals of 8 parameters in 40 simulated datasets hold the truth in about 90 % of cases.

    Quantiles of 39 refits give about 87 %. Counted as 160 independent cases (four of the eight parameters
    follow from the others or nearly so), fewer than 76 % has a chance of 7e-5.
    """
    truth = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [("normal", [0.0, 5.0], [1.0, 2.0])])
    held = []
    for seed in range(40):
        X, _, _ = truth.sample(200, random_state=seed)
        model = HMM(emission="normal", tol=1e-2).fit(X)
        found = model.bootstrap(X, n_replicates=39, random_state=seed)
        estimated = (found.names["part"] != "start").to_numpy()
        right = np.concatenate([[0.9, 0.1, 0.2, 0.8], [0.0, 5.0], [1.0, 2.0]])
        low, high = found.interval(0.9)[estimated].T
        held.append((low <= right) & (right <= high))
    assert 0.76 < np.mean(held) < 0.99


def test_states_are_matched_whatever_their_numbers():
    """State 0 of this model is the slow one; `fit` would number them the other way."""
    model = HMM.from_parameters(
        [0.5, 0.5], [[0.7, 0.3], [0.1, 0.9]], [("normal", [50.0, 0.0], [2.0, 1.0])], tol=1e-2
    )
    X, _, _ = model.sample(400, random_state=0)
    found = model.bootstrap(X, n_replicates=20, random_state=0)
    table = found.table()
    loc = table[table["parameter"] == "loc"]
    np.testing.assert_allclose(loc["low"], loc["estimate"], atol=2.0)
    np.testing.assert_allclose(loc["high"], loc["estimate"], atol=2.0)


@pytest.fixture(scope="module")
def truth():
    return Truth.random(np.random.default_rng(31), m=3, n_states=2, families=("normal",))


def test_renumbering_states_type_by_type_changes_nothing_but_the_numbers(truth):
    model = POHMM.from_parameters(*truth.arguments())
    X, events, _ = model.sample(200, random_state=1)
    order = np.array([[1, 0], [0, 1], [1, 0]])
    other = POHMM.from_parameters(*truth.arguments())
    other._state = ModelState.of(bootstrap.relabelled(model._parameters, order))
    assert other.score(X, events=events) == pytest.approx(model.score(X, events=events), rel=1e-12)
    np.testing.assert_array_equal(other.startprob_[1], model.startprob_[1])
    np.testing.assert_array_equal(other.emission_[0].loc[0], model.emission_[0].loc[0, ::-1])
    # The states behind the data are found again from the renumbered model's posteriors.
    codes = np.searchsorted(truth.types, events)
    states = model.predict(X, events=events)
    found = bootstrap.match_states(codes, 3, states, other.predict_proba(X, events=events))
    np.testing.assert_array_equal(found, order)
    back = bootstrap.relabelled(other._parameters, found)
    np.testing.assert_array_equal(back.transmat, model._parameters.transmat)
    np.testing.assert_allclose(back.marginal.transmat, model.marginal_.transmat)


def test_every_fitted_parameter_has_a_row(truth):
    X, events, _ = POHMM.from_parameters(*truth.arguments()).sample(lengths=[80, 80], random_state=2)
    data = Sequences.from_arrays(X, events, [80, 80])
    model = POHMM(emission="normal", tol=1e-2).fit(data)
    found = model.bootstrap(data, n_replicates=4, random_state=0)
    assert found.replicates.shape == (4, len(found.names))
    assert len(found.names) == len(found.estimate) == found.interval().shape[0]
    table = found.table()
    for row in table[table["part"] == "emission"].itertuples():
        w = list(model.event_types_).index(row.event)
        assert row.estimate == model.emission_[0].params[row.parameter][w, row.state]
    for row in table[table["part"] == "transition"].itertuples():
        v, w = (list(model.event_types_).index(label) for label in (row.before, row.event))
        assert row.estimate == model.transmat_[v, w, row.from_state, row.state]
    for row in table[table["part"] == "start"].itertuples():
        assert row.estimate == model.startprob_[list(model.event_types_).index(row.event), row.state]
    # Rows of distributions add up to one in every refit.
    steps = found.replicates[:, (table["part"] == "transition").to_numpy()].reshape(4, -1, 2)
    np.testing.assert_allclose(steps.sum(axis=2), 1.0, rtol=1e-12)


def test_the_same_seed_gives_the_same_refits_whatever_the_jobs(truth):
    model = POHMM.from_parameters(*truth.arguments(), tol=1e-1)
    X, events, _ = model.sample(60, random_state=2)
    one = model.bootstrap(X, events=events, n_replicates=3, random_state=4)
    two = model.bootstrap(X, events=events, n_replicates=3, random_state=4, n_jobs=2)
    np.testing.assert_array_equal(one.replicates, two.replicates)


def test_only_what_was_estimated_is_listed(truth):
    X = np.random.default_rng(0).lognormal(5.0, 0.4, (60, 1))
    held = HMM(fixed=("transitions", "start"), tol=1e-1).fit(X)
    assert set(held.bootstrap(X, n_replicates=2, random_state=0).names["part"]) == {"emission"}
    estimated = HMM(emission=LogStudent(estimate_df=True), tol=1e-1).fit(X)
    names = estimated.bootstrap(X, n_replicates=2, random_state=0).names["parameter"]
    assert (names == "df").sum() == 1
    fixed = HMM(emission="logstudent", tol=1e-1).fit(X)
    assert "df" not in set(fixed.bootstrap(X, n_replicates=2, random_state=0).names["parameter"])
    # Types and pairs that do not occur in these events have no refits.
    model = POHMM.from_parameters(*truth.arguments(), tol=1e-1)
    X, _, _ = model.sample(5, random_state=0)
    names = model.bootstrap(X, events=["k2", "k0", "k2", None, "new"], n_replicates=2, random_state=0).names
    assert set(names["event"]) == {"k0", "k2"}
    pairs = names.loc[names["part"] == "transition", ["before", "event"]].drop_duplicates()
    assert sorted(map(tuple, pairs.to_numpy())) == [("k0", "k2"), ("k2", "k0")]


def test_basic_intervals_mirror_the_percentiles():
    X = np.random.default_rng(0).normal(size=(30, 1))
    found = HMM(emission="normal", tol=1e-1).fit(X).bootstrap(X, n_replicates=9, random_state=0)
    low, high = found.interval(0.8).T
    emission = (found.names["part"] == "emission").to_numpy()
    basic = found.interval(0.8, "basic")
    np.testing.assert_allclose(basic[emission, 0], (2 * found.estimate - high)[emission])
    assert (basic[~emission] >= 0).all()
    assert (basic[~emission] <= 1).all()
    assert (low <= high).all()
    assert repr(found) == f"Bootstrap({len(found.estimate)} parameters, 9 refits)"


def test_degenerate_data():
    for X, events in (([[100.0]], ["a"]), (np.full((9, 1), 100.0), list("aab") * 3)):
        model = POHMM().fit(X, events=events)
        found = model.bootstrap(X, events=events, n_replicates=3, random_state=0)
        assert np.isfinite(found.replicates).all()
        assert np.isfinite(found.standard_error).all()


def test_what_cannot_be_done():
    model = HMM.from_parameters([1.0], [[1.0]], [("normal", [0.0], [1.0])])
    with pytest.raises(ValueError, match="n_replicates must be a whole number, 2 or more"):
        model.bootstrap([[0.0]], n_replicates=1)
    with pytest.raises(NotFittedError):
        HMM().bootstrap([[1.0]])
    found = model.bootstrap([[0.0], [1.0]], n_replicates=2, random_state=0)
    with pytest.raises(ValueError, match="level"):
        found.interval(1.0)
    with pytest.raises(ValueError, match="'percentile' or 'basic'"):
        found.interval(method="normal")
