"""Learning in chunks, warm starts, weights, fixed parts, several starts."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from keydyn import POHMM, Sequences, load
from keydyn.model import Student
from tests.model.enumeration import Truth

LENGTHS = [30, 12, 1, 44, 20, 7]
FAMILIES = ("lognormal", "gamma", "student", "exponential")


@pytest.fixture(scope="module")
def data():
    truth = Truth.random(np.random.default_rng(31), m=4, n_states=2, families=FAMILIES)
    X, events, _ = POHMM.from_parameters(*truth.arguments()).sample(lengths=LENGTHS, random_state=3)
    X[np.random.default_rng(1).random(X.shape) < 0.05] = np.nan
    return Sequences.from_arrays(X, events, LENGTHS)


def quiet_fit(model, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*args, **kwargs)


def assert_same(a, b, **tolerance):
    """Every parameter of two models."""
    tolerance = tolerance or {"rtol": 1e-12, "atol": 1e-12}
    assert a.event_types_.tolist() == b.event_types_.tolist()
    for name in ("startprob_", "transmat_", "event_startprob_", "event_transmat_", "event_prob_"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), err_msg=name, **tolerance)
    for name in ("startprob", "transmat", "transmat_from", "transmat_to"):
        np.testing.assert_allclose(getattr(a.marginal_, name), getattr(b.marginal_, name), **tolerance)
    for e, f in zip(
        [*a.emission_, *a.marginal_.emission], [*b.emission_, *b.marginal_.emission], strict=True
    ):
        for name in e.params:
            np.testing.assert_allclose(e.params[name], f.params[name], err_msg=name, **tolerance)


@pytest.mark.parametrize("published", [True, False], ids=["published", "default"])
def test_chunks_are_one_iteration_of_fit(data, published):
    emission = ["lognormal", "gamma", Student(df=5.0, estimate_df=True), "exponential"]
    model = POHMM.published(emission=emission) if published else POHMM(emission=emission)
    quiet_fit(model.set_params(max_iter=3, order_states=False), data)
    once = copy.deepcopy(model).set_params(warm_start=True, max_iter=1)
    quiet_fit(once, data)
    chunked = copy.deepcopy(model)
    for chunk in (data[:2], data[2:3], data[3:]):
        chunked.accumulate(chunk)
    assert_same(chunked.update(), once)


def test_an_out_of_core_fit_equals_a_fit_in_memory(data):
    whole = quiet_fit(POHMM(emission=list(FAMILIES), max_iter=6, tol=0.0, order_states=False), data)
    parts = quiet_fit(POHMM(emission=list(FAMILIES), max_iter=1, order_states=False), data)
    for _ in range(5):
        for s in range(len(data)):
            parts.accumulate(data[s])
        parts.update(forget=True)
    assert_same(parts, whole, rtol=1e-9, atol=1e-11)


def test_partial_fit_is_accumulate_then_update(data):
    a, b = (POHMM(emission=list(FAMILIES)) for _ in range(2))
    for s in range(len(data)):
        a.partial_fit(data[s], event_types=data.event_types if s == 0 else None)
        b.accumulate(data[s], event_types=data.event_types if s == 0 else None).update()
    assert_same(a, b)
    assert a.event_prob_.sum() == pytest.approx(1.0)


def test_the_vocabulary_grows_unless_it_is_given():
    rng = np.random.default_rng(5)
    X = rng.lognormal(5, 0.5, (40, 1))
    grown = POHMM().partial_fit(X[:20], events=["a", "b"] * 10)
    grown.partial_fit(X[20:], events=["c", "a"] * 10)
    assert grown.event_types_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(grown.event_prob_, [0.5, 0.25, 0.25])
    given = POHMM().partial_fit(X[:20], events=["a", "b"] * 10, event_types=["b", "a"])
    given.partial_fit(X[20:], events=["c", "a"] * 10)
    assert given.event_types_.tolist() == ["b", "a"]
    np.testing.assert_allclose(given.event_prob_, [1 / 3, 2 / 3])
    with pytest.raises(ValueError, match="first call only"):
        given.partial_fit(X, events=["a", "b"] * 20, event_types=["a", "z"])
    # Given later, the types of a model are all that it will have.
    later = POHMM().fit(X[:20], events=["a", "b"] * 10)
    later.partial_fit(X[:20], events=["a", "b"] * 10, event_types=later.event_types_)
    later.partial_fit(X[20:], events=["c", "a"] * 10)
    assert later.event_types_.tolist() == ["a", "b"]


@pytest.mark.parametrize("settings", [{}, {"marginals": "exact"}, {"smoothing": None}], ids=str)
def test_chunks_are_one_iteration_though_the_vocabulary_grows(settings):
    """A type that an earlier chunk brought is as unknown to the parameters as one that comes now."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = [rng.lognormal(5, 0.6, (int(rng.integers(2, 20)), 2)) for _ in range(8)]
        events = [rng.choice(list("abcdef")[: 2 + s // 2], len(x)).astype(object) for s, x in enumerate(X)]
        for labels in events:
            labels[rng.random(len(labels)) < 0.1] = None
        weights = rng.uniform(0.2, 3, 8)
        begun = quiet_fit(POHMM(max_iter=2, order_states=False, **settings), X[:2], events=events[:2])
        once = copy.deepcopy(begun).set_params(warm_start=True, max_iter=1)
        quiet_fit(once, X, events=events, sample_weight=weights)
        for s in range(0, 8, 3):
            begun.accumulate(X[s : s + 3], events=events[s : s + 3], sample_weight=weights[s : s + 3])
        assert_same(begun.update(), once)


def test_a_model_can_be_saved_between_accumulate_and_update(tmp_path):
    X = np.random.default_rng(5).lognormal(5, 0.5, (40, 1))
    model = quiet_fit(POHMM(max_iter=3), X[:20], events=["a", "b"] * 10)
    model.accumulate(X[20:], events=["c", "a"] * 10)
    model.save(tmp_path / "m")
    assert load(tmp_path / "m").event_types_.tolist() == ["a", "b", "c"]
    assert np.isfinite(POHMM().accumulate(X).bic(X))


def test_going_on_with_other_states_is_refused():
    X = np.random.default_rng(5).lognormal(5, 0.5, (40, 1))
    with pytest.raises(ValueError, match="the model has 2 states, but n_states is 3"):
        POHMM().partial_fit(X).set_params(n_states=3).partial_fit(X)


def test_partial_fit_after_fit_keeps_what_was_learnt(data):
    """The totals hold the fit's statistics: adding the same data again moves hardly anything."""
    model = POHMM(emission=list(FAMILIES), smoothing=None).fit(data)
    again = copy.deepcopy(model).partial_fit(data)
    np.testing.assert_allclose(again.event_prob_, model.event_prob_)
    assert again.score(data) >= model.score(data) - 1e-6


def test_incremental_learning_tells_its_log_likelihood(data):
    """That of the data gathered, under the parameters they were gathered with; a fit's history is gone."""
    model = POHMM(emission=list(FAMILIES)).fit(data)
    expected = model.score(data)
    model.accumulate(data).update(forget=True)
    assert model.log_likelihood_ == pytest.approx(expected, rel=1e-12)
    assert not hasattr(model, "history_")
    assert not hasattr(model, "stop_reason_")


def test_update_without_data():
    truth = Truth.random(np.random.default_rng(0), m=2)
    with pytest.raises(ValueError, match="nothing to update from"):
        POHMM.from_parameters(*truth.arguments()).update()


@pytest.mark.parametrize("published", [True, False], ids=["published", "default"])
def test_a_weight_is_a_number_of_copies(data, published):
    weights = np.array([2, 1, 3, 0, 1, 2])
    copies = data[np.repeat(np.arange(len(data)), weights)]
    model = POHMM.published() if published else POHMM()
    model.set_params(emission=list(FAMILIES), max_iter=20, tol=0.0)
    weighted = quiet_fit(copy.deepcopy(model), data, sample_weight=weights)
    copied = quiet_fit(copy.deepcopy(model), copies)
    np.testing.assert_allclose(weighted.history_, copied.history_, rtol=1e-10)
    assert_same(weighted, copied, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(weighted.stationary_, copied.stationary_, rtol=1e-8)
    assert weighted.n_parameters_ == copied.n_parameters_


def test_fixed_parts_stay(data):
    truth = Truth.random(np.random.default_rng(7), m=4, n_states=2, families=FAMILIES)
    for fixed in (("start",), ("transitions",), ("emission",), ("start", "transitions", "emission")):
        model = POHMM.from_parameters(
            *truth.arguments(),
            warm_start=True,
            fixed=fixed,
            smoothing="frequency",
            order_states=False,
            max_iter=4,
        )
        quiet_fit(model, data)
        if "start" in fixed:
            np.testing.assert_array_equal(model.startprob_, truth.start)
        if "transitions" in fixed:
            np.testing.assert_array_equal(model.transmat_, truth.trans)
        if "emission" in fixed:
            np.testing.assert_array_equal(model.emission_[0].loc, truth.emission[0][1]["loc"])
        if fixed == ("start",):
            assert not np.allclose(model.transmat_, truth.trans)


def test_a_warm_start_goes_on(data):
    whole = quiet_fit(POHMM(emission=list(FAMILIES), max_iter=9, tol=0.0, order_states=False), data)
    model = POHMM(emission=list(FAMILIES), max_iter=5, tol=0.0, order_states=False, warm_start=True)
    quiet_fit(quiet_fit(model, data).set_params(max_iter=4), data)
    assert_same(model, whole)


def test_several_starts_keep_the_best_and_all_results(data):
    model = POHMM(emission=list(FAMILIES), n_init=4, random_state=8)
    quiet_fit(model, data)
    found = [result.log_likelihood for result in model.init_results_]
    assert len(found) == 4
    assert len(set(found)) > 1, "jittered starts must differ"
    assert model.log_likelihood_ == max(found)
    single = quiet_fit(POHMM(emission=list(FAMILIES)), data)
    assert found[0] == single.log_likelihood_
    repeated = quiet_fit(POHMM(emission=list(FAMILIES), n_init=4, random_state=8), data)
    assert [result.log_likelihood for result in repeated.init_results_] == found


def test_a_fit_says_why_it_stopped(data):
    model = POHMM(emission=list(FAMILIES), smoothing=None, tol=1e-3).fit(data)
    assert model.stop_reason_ == "tol"
    assert model.converged_
    assert 0 <= model.history_[-1] - model.history_[-2] < 1e-3
    assert model.log_likelihood_ == pytest.approx(model.score(data), rel=1e-12)
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol"):
        model.set_params(max_iter=3).fit(data)
    assert (model.stop_reason_, model.n_iter_, model.converged_) == ("max_iter", 3, False)
    assert model.log_likelihood_ == pytest.approx(model.score(data), rel=1e-12)
    assert model.log_likelihood_ > model.history_[-1]


def test_a_decrease_stops_and_is_named():
    """Smoothing is no EM on the likelihood: with rare types it falls, and the fit says so."""
    rng = np.random.default_rng(2)
    X = rng.lognormal(5, 0.6, (60, 1))
    model = POHMM().fit(X, events=rng.integers(0, 25, 60))
    assert model.stop_reason_ == "decrease"
    assert not model.converged_
    assert model.history_[-1] < model.history_[-2]


def test_a_callback_is_reported_and_can_stop(data, capsys):
    reported = []

    def enough(iteration):
        reported.append(iteration)
        return iteration.number == 3

    model = POHMM(emission=list(FAMILIES), callback=enough, verbose=1).fit(data)
    assert model.stop_reason_ == "callback"
    assert model.n_iter_ == 3
    assert [i.log_likelihood for i in reported] == model.history_.tolist()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[2].startswith("iteration 3: log-likelihood ")
