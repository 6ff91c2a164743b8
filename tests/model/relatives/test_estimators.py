"""The relatives as estimators: scikit-learn's conventions, input checks, degenerate data."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from keydyn import HMM, ContextHMM, PartiallyHMM, PartlyHMM, POHMMClassifier, Sequences, fit_many
from keydyn.model import Bins
from tests.model.test_sklearn import EXPECTED_FAILURES

MODELS = {
    "context": ContextHMM(tol=1e-2),
    "partly": PartlyHMM(tol=1e-2),
    "partially": PartiallyHMM(tol=1e-2),
}


def every(test):
    return pytest.mark.parametrize("kind", MODELS)(test)


@pytest.fixture(scope="module")
def sequences():
    truth = HMM.from_parameters(
        [0.5, 0.5],
        [[0.9, 0.1], [0.3, 0.7]],
        [("lognormal", [4.6, 6.0], [0.3, 0.5]), ("lognormal", [4.4, 4.6], [0.2, 0.2])],
    )
    X, _, _ = truth.sample(lengths=[25] * 9, random_state=1)
    return Sequences.from_arrays(X, lengths=[25] * 9)


@pytest.fixture(scope="module", name="fitted")
def fitted_models(sequences):
    models = {name: clone(model).fit(sequences) for name, model in MODELS.items()}
    labels = np.where(sequences.X[:, 0] > 200, "slow", "fast").astype(object)
    labels[::3] = None
    models["partially, labelled"] = PartiallyHMM(tol=1e-2).fit(
        sequences.X, lengths=sequences.lengths, labels=labels
    )
    return models


@every
def test_check_estimator(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(MODELS[kind]).set_params(emission="normal")
        results = check_estimator(model, expected_failed_checks=EXPECTED_FAILURES, on_skip=None)
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(EXPECTED_FAILURES), "an expected failure that passes is no longer expected"
    assert sum(result["status"] == "passed" for result in results) > 30


def test_clone_and_parameters():
    for model in (
        ContextHMM(3, emission_context=Bins((1.0, 2.0)), transition_context=None, fixed=("start",)),
        PartlyHMM(previous_feature=1, density_floor=1e-5),
        PartiallyHMM(p_observed=None, p_true=1.0, state_labels=("a", "b")),
    ):
        copied = clone(model)
        assert copied.get_params() == model.get_params()
        assert type(copied) is type(model)


@every
def test_cross_validation(sequences, kind):
    model = MODELS[kind]
    scores = cross_val_score(model, sequences, cv=KFold(3))
    for score, (train, test) in zip(scores, KFold(3).split(np.arange(9)), strict=True):
        expected = clone(model).fit(sequences[train]).score(sequences[test])
        assert score == pytest.approx(expected, rel=1e-12)
    search = GridSearchCV(clone(model), {"n_states": [1, 2]}, cv=2).fit([s.X for s in sequences])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@every
def test_input_forms_agree(sequences, kind):
    model = clone(MODELS[kind]).fit(sequences)
    X, lengths = sequences.X, sequences.lengths
    events = ["k"] * len(X)
    for form, given in (
        (X, {"lengths": lengths}),
        ([s.X for s in sequences], {}),
        (list(sequences), {}),
        (X, {"lengths": lengths, "events": events}),
        (Sequences.from_arrays(X, events, lengths), {}),
    ):
        np.testing.assert_array_equal(clone(MODELS[kind]).fit(form, **given).history_, model.history_)
        np.testing.assert_array_equal(model.predict_proba(form, **given), model.predict_proba(sequences))
    frame = pd.DataFrame(X, columns=["duration", "tau"])
    named = clone(MODELS[kind]).fit(frame, lengths=lengths)
    assert named.feature_names_in_.tolist() == ["duration", "tau"]
    with pytest.raises(ValueError, match="feature names should match"):
        named.score(frame[["tau", "duration"]])


@every
def test_wrong_input(sequences, fitted, kind):
    model, X = MODELS[kind], sequences.X
    for call in (clone(model).fit, fitted[kind].score):
        bad = X.copy()
        bad[30, 1] = -1.0
        with pytest.raises(
            ValueError, match=r"sequence 1, row 5 .*column 1: -1\.0 is not a value of a lognormal"
        ):
            call(bad, lengths=sequences.lengths)
        bad[30, 1] = np.inf
        with pytest.raises(ValueError, match=r"sequence 1, row 5.*infinite"):
            call(bad, lengths=sequences.lengths)
        with pytest.raises(ValueError, match="lengths add up to 2"):
            call(X, lengths=[2])
        with pytest.raises(ValueError, match="X is empty"):
            call([])
    with pytest.raises(ValueError, match="column 0 has no value at all"):
        clone(model).fit(np.where([True, False], np.nan, X))
    with pytest.raises(ValueError, match="2 features"):
        fitted[kind].score(X[:, :1])
    for name, wrong in (("n_states", 0), ("tol", -1), ("max_iter", 0.5), ("min_scale", "no"), ("fixed", "x")):
        with pytest.raises(ValueError, match=f"{name} must be"):
            clone(model).set_params(**{name: wrong}).fit(X)
    with pytest.raises(ValueError, match="sample_weight of sequence 0"):
        clone(model).fit(X, sample_weight=[-1.0])
    with pytest.raises(NotFittedError):
        clone(model).score(X)
    with pytest.raises(AttributeError, match="not fitted yet"):
        _ = clone(model).transmat_


@every
def test_many_models_and_classes(kind):
    """`fit_many` and the classifier take a relative where they take a POHMM."""
    rng = np.random.default_rng(0)
    slow, fast = ([rng.lognormal(mean, 0.3, (20, 1)) for _ in range(5)] for mean in (6.0, 5.0))
    models = fit_many(MODELS[kind], [slow, fast])
    np.testing.assert_array_equal(models[1].history_, clone(MODELS[kind]).fit(fast).history_)
    classifier = POHMMClassifier(MODELS[kind]).fit(slow[:3] + fast[:3], ["slow"] * 3 + ["fast"] * 3)
    assert classifier.predict(slow[3:] + fast[3:]).tolist() == ["slow", "slow", "fast", "fast"]


def test_a_failed_fit_leaves_the_model(sequences, fitted):
    """Also one that fails after the contexts were learnt."""
    model = clone(MODELS["context"]).fit(sequences)
    before = model.score(sequences)
    with pytest.raises(ZeroDivisionError):
        model.set_params(callback=lambda it: 1 / 0).fit(sequences.X * 3.0)
    assert model.set_params(callback=None).score(sequences) == before


def test_scoring_never_changes_a_model(sequences, fitted):
    for model in fitted.values():
        before = model.__dict__.copy()
        for call in (model.score, model.predict_proba, model.decode, model.bic, model.score_samples):
            call(sequences)
        assert model.__dict__ == before


def test_criteria(sequences, fitted):
    model = fitted["context"]
    assert model.n_parameters_ == 1 + 3 * 2 + 4 * 2 * 4
    assert model.aic(sequences) == pytest.approx(2 * model.n_parameters_ - 2 * model.score(sequences))
    penalty = model.n_parameters_ * np.log(sequences.n_events)
    assert model.bic(sequences) == pytest.approx(penalty - 2 * model.score(sequences))
    assert "approximate" not in str(model.bic(sequences))
    floored = ContextHMM(density_floor=1e-5, tol=1e-2).fit(sequences)
    assert "approximate" in str(floored.bic(sequences))
    # Start, transitions and their slopes; two features of locations, scales and slopes.
    assert fitted["partly"].n_parameters_ == 1 + 2 + 2 + 2 * 2 * 3


DEGENERATE = {
    "one event": (np.array([[100.0, 80.0]]), [1]),
    "sequences of one event": (np.linspace(50, 300, 20).reshape(10, 2), [1] * 10),
    "equal values": (np.full((30, 2), 120.0), [30]),
    "two values": (np.tile([[100.0, 50.0], [200.0, 50.0]], (15, 1)), [15, 15]),
    "mostly missing": (np.where(np.arange(60).reshape(30, 2) % 7 == 0, 100.0, np.nan), [10, 20]),
    "first values missing": (np.concatenate([np.full((3, 2), np.nan), np.full((9, 2), 90.0)] * 2), [12, 12]),
    "an outlier": (np.concatenate([np.full((30, 2), 100.0), [[1e7, 1e-7]], np.full((9, 2), 99.0)]), [40]),
}


@every
@pytest.mark.parametrize("data", DEGENERATE)
@pytest.mark.parametrize("n_states", [1, 2, 3])
def test_degenerate_data(kind, data, n_states):
    """A finite score and proper probabilities, whatever there is to learn from."""
    X, lengths = DEGENERATE[data]
    model = clone(MODELS[kind]).set_params(n_states=n_states, tol=1e-3, max_iter=50)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="not converged")
        model.fit(X, lengths=lengths)
    assert np.isfinite(model.score(X, lengths=lengths))
    gamma = model.predict_proba(X, lengths=lengths)
    np.testing.assert_allclose(gamma.sum(axis=1), 1.0, rtol=1e-9)
    np.testing.assert_allclose(model.transmat_.sum(axis=-1), 1.0, rtol=1e-9)
    other = np.array([[np.nan, 3.0], [1e5, np.nan], [40.0, 60.0]])
    assert np.isfinite(model.score(other))


def test_impossible_paths():
    """What cannot be scores −inf and has no states to speak of; underflow is no impossibility."""
    far = PartlyHMM.from_parameters(
        [1.0, 0.0], np.eye(2), [("normal", [[0.0, 100.0]], [[1.0, 1.0]])], transition_slopes=np.zeros((2, 2))
    )
    x = np.array([[0.0], [100.0], [0.0]])
    assert far.score(x) == pytest.approx(-0.5 * 100**2 - 1.5 * np.log(2 * np.pi))
    model = ContextHMM.from_parameters(
        [1.0],
        [[[1.0]]] * 3,
        [("categorical", {"p0": [[1.0], [1.0], [0.5]], "p1": [[0.0], [0.0], [0.5]]})],
        emission_context=Bins(()),
        transition_context=Bins(()),
    )
    assert model.score(np.array([[0.0], [1.0]])) == -np.inf
    with pytest.raises(ValueError, match="probability zero"):
        model.predict_proba(np.array([[0.0], [1.0]]))
    with pytest.raises(ValueError, match="no path is possible"):
        model.decode(np.array([[0.0], [1.0]]))


def test_given_parameters_are_checked():
    parts = ([0.5, 0.5], [[0.5, 0.5]] * 2, [("normal", [[0.0, 1.0]], [[1.0, 1.0]])])
    with pytest.raises(ValueError, match=r"emission_slopes must be finite numbers of shape \(1, 2\)"):
        PartlyHMM.from_parameters(*parts, emission_slopes=[[1.0, np.nan]])
    with pytest.raises(ValueError, match=r"transmat must have shape \(4, 2, 2\)"):
        ContextHMM.from_parameters(
            [0.5, 0.5],
            [[[0.5, 0.5]] * 2] * 2,
            [("normal", np.zeros((4, 2)), np.ones((4, 2)))],
            emission_context=Bins((1.0,)),
            transition_context=Bins((1.0,)),
        )
    with pytest.raises(ValueError, match="p_true must be"):
        PartiallyHMM.from_parameters(*parts, p_observed=0.5, p_true=1.2)
    with pytest.raises(ValueError, match="previous_feature"):
        PartlyHMM.from_parameters(*parts, previous_feature=3)
