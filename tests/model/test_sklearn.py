"""scikit-learn's conventions: its own checks, cloning, pipelines, cross-validation, metadata routing."""

from __future__ import annotations

import copy
import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from keydyn import HMM, POHMM, Sequences
from tests.model.enumeration import Truth

WEIGHTS = "a weight belongs to a sequence, and the check's one array is one sequence"
EXPECTED_FAILURES = {
    "check_methods_sample_order_invariance": "events of a sequence have an order",
    "check_methods_subset_invariance": "a state's probability depends on the whole sequence",
    "check_sample_weights_pandas_series": WEIGHTS,
    "check_sample_weights_not_an_array": WEIGHTS,
    "check_sample_weights_list": WEIGHTS,
    "check_all_zero_sample_weights_error": WEIGHTS,
    "check_sample_weights_shape": WEIGHTS,
    "check_sample_weights_not_overwritten": WEIGHTS,
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
}


@pytest.mark.parametrize("model", [POHMM(emission="normal"), HMM(emission="normal")], ids=["POHMM", "HMM"])
def test_check_estimator(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(model, expected_failed_checks=EXPECTED_FAILURES, on_skip=None)
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(EXPECTED_FAILURES), "an expected failure that passes is no longer expected"
    assert sum(result["status"] == "passed" for result in results) > 30


@pytest.fixture(scope="module")
def sequences():
    truth = Truth.random(np.random.default_rng(41), m=3, n_states=2, families=("lognormal", "lognormal"))
    X, events, _ = POHMM.from_parameters(*truth.arguments()).sample(lengths=[25] * 12, random_state=1)
    return Sequences.from_arrays(X, events, [25] * 12)


def arrays(sequences):
    """The same as lists of arrays, one item per sequence."""
    return [s.X for s in sequences], [s.labels() for s in sequences]


def test_clone_and_parameters():
    for model in (
        POHMM.published(),
        POHMM(3, smoothing={"start": 0.5}, fixed=("start",)),
        HMM(emission="gamma"),
    ):
        copied = clone(model)
        assert copied.get_params() == model.get_params()
        assert type(copied) is type(model)
    assert POHMM().set_params(n_states=4).n_states == 4
    assert "n_states=4" in repr(POHMM(4))


def test_cross_validation_over_sequences(sequences):
    """A Sequences has one item per sequence; each fold's score is that of its held-out sequences."""
    model = POHMM(tol=1e-2)
    scores = cross_val_score(model, sequences, cv=KFold(3))
    for score, (train, test) in zip(scores, KFold(3).split(np.arange(12)), strict=True):
        expected = clone(model).fit(sequences[train]).score(sequences[test])
        assert score == pytest.approx(expected, rel=1e-12)


def test_grid_search_over_lists_of_arrays(sequences):
    """HMMs need no events, so a plain list of arrays does."""
    X, _ = arrays(sequences)
    search = GridSearchCV(HMM(tol=1e-2), {"n_states": [1, 2]}, cv=3).fit(X)
    assert search.best_params_["n_states"] in (1, 2)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.score(X) == pytest.approx(search.score(X))


def test_metadata_routing(sequences):
    """events reach fit and score, cut into the same folds as the sequences."""
    X, events = arrays(sequences)
    with sklearn.config_context(enable_metadata_routing=True):
        model = POHMM(tol=1e-2).set_fit_request(events=True).set_score_request(events=True)
        scores = cross_val_score(model, X, params={"events": events}, cv=KFold(3))
    np.testing.assert_allclose(scores, cross_val_score(POHMM(tol=1e-2), sequences, cv=KFold(3)), rtol=1e-12)


def test_pipeline(sequences):
    """A transformer before the model; lengths and events routed past it."""
    flat = {"events": sequences.labels(), "lengths": sequences.lengths}
    with sklearn.config_context(enable_metadata_routing=True):
        request = {"events": True, "lengths": True}
        model = POHMM(tol=1e-2).set_fit_request(**request).set_score_request(**request)
        pipeline = make_pipeline(FunctionTransformer(lambda X: X / 1000), model)
        pipeline.fit(sequences.X, **flat)
        score = pipeline.score(sequences.X, **flat)
    direct = POHMM(tol=1e-2).fit(sequences.X / 1000, **flat)
    assert score == pytest.approx(direct.score(sequences.X / 1000, **flat), rel=1e-12)


def test_weighted_score(sequences):
    model = POHMM(tol=1e-2).fit(sequences)
    weights = np.arange(12.0)
    expected = sum(w * model.score(item) for w, item in zip(weights, sequences, strict=True))
    assert model.score(sequences, sample_weight=weights) == pytest.approx(expected, rel=1e-12)


def test_feature_names(sequences):
    frame = pd.DataFrame(sequences.X, columns=["duration", "tau"])
    model = POHMM(tol=1e-2).fit(frame, events=sequences.labels(), lengths=sequences.lengths)
    assert model.feature_names_in_.tolist() == ["duration", "tau"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.score(frame[["tau", "duration"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.score(sequences.X)


def test_input_forms_agree(sequences):
    X, events = arrays(sequences)
    labels, lengths = sequences.labels(), sequences.lengths
    model = POHMM(tol=1e-2).fit(sequences)
    forms = [
        ((sequences,), {}),
        ((X,), {"events": events}),
        ((X,), {"events": labels}),
        ((sequences.X,), {"events": labels, "lengths": lengths}),
        ((list(sequences),), {}),
    ]
    for args, kwargs in forms:
        refit = POHMM(tol=1e-2).fit(*args, **kwargs)
        assert refit.log_likelihood_ == model.log_likelihood_
        np.testing.assert_array_equal(model.predict_proba(*args, **kwargs), model.predict_proba(sequences))


def test_scoring_never_changes_a_model(sequences):
    model = POHMM(tol=1e-2).fit(sequences)
    before = model.__dict__.copy()
    frozen = [values.copy() for e in model.emission_ for values in e.params.values()]
    X = sequences.X[:5]
    for call in (
        model.score,
        model.predict_proba,
        model.decode,
        model.predict_next,
        model.bic,
        model.score_samples,
    ):
        call(X, events=["new", None, "k0", "k1", "new"])
    model.predict_events(X)
    model.sample(10, random_state=0)
    model.online().update(X[0], "new")
    assert model.__dict__ == before
    after = [values for e in model.emission_ for values in e.params.values()]
    assert all(np.array_equal(a, b) for a, b in zip(frozen, after, strict=True))


def test_information_criteria(sequences):
    """AIC and BIC from their definitions; a smoothed model's say that they are approximate."""
    plain = POHMM(smoothing=None, tol=1e-2).fit(sequences)
    score = plain.score(sequences)
    starts = {item.labels()[0] for item in sequences}
    pairs = {pair for item in sequences for pair in itertools.pairwise(item.labels())}
    # One a start row, two a pair; three types × two states × two features × two parameters.
    assert plain.n_parameters_ == len(starts) + 2 * len(pairs) + 3 * 2 * 2 * 2
    assert plain.n_parameters_full_ == 3 + 9 * 2 + 24
    assert plain.aic(sequences) == pytest.approx(2 * plain.n_parameters_ - 2 * score)
    assert plain.bic(sequences) == pytest.approx(plain.n_parameters_ * np.log(300) - 2 * score)
    assert "approximate" not in str(plain.bic(sequences))
    assert "approximate" in str(POHMM(tol=1e-2).fit(sequences).bic(sequences))
    assert "approximate" not in str(HMM(tol=1e-2).fit(sequences).bic(sequences))
    floored = copy.deepcopy(POHMM(tol=1e-2, smoothing=None, density_floor=1e-5).fit(sequences).aic(sequences))
    assert floored.approximate
