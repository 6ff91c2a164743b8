"""Discriminative training: its gradient is that of its value, which never falls, and classes stand out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import keydyn
from keydyn import POHMM, POHMMClassifier
from keydyn.model import LogStudent
from keydyn.model.criteria import Discrimination, Labelled, TrainingCriterion

CRITERIA = ("conditional", "margin")


def two_classes(n=12, length=15, seed=0):
    """Sequences of two classes that differ little, with three event types and two features."""
    rng = np.random.default_rng(seed)
    labels = np.array(["calm", "hasty"] * (n // 2))
    events = [rng.choice(list("abc"), length) for _ in labels]
    X = []
    for label, types in zip(labels, events, strict=True):
        slow = rng.random(length) < 0.3
        loc = 5.0 + 0.8 * slow + 0.15 * (label == "hasty") * (types == "a")
        X.append(np.exp(np.column_stack([loc, 4.0 + 0.0 * loc]) + 0.3 * rng.standard_normal((length, 2))))
    return X, events, labels


def problem(criterion, emission="lognormal"):
    X, events, labels = two_classes()
    # A missing value, and a type that the other class's model does not know.
    X[0][3, 1] = np.nan
    events[0] = np.where(np.arange(len(events[0])) == 5, "only here", events[0])
    classifier = POHMMClassifier(POHMM(emission=emission)).fit(X, labels, events=events)
    sequences = keydyn.Sequences.from_arrays(np.concatenate(X), np.concatenate(events), [len(x) for x in X])
    target = np.searchsorted(classifier.classes_, labels)
    weights = np.linspace(0.5, 1.5, len(labels))
    log_priors = np.log([0.3, 0.7])
    return Discrimination(classifier.models_, Labelled(sequences, target, weights), log_priors, criterion)


@pytest.mark.parametrize("emission", ["lognormal", LogStudent(df=4.0)], ids=["lognormal", "logstudent"])
@pytest.mark.parametrize("name", CRITERIA)
def test_the_gradient_is_that_of_finite_differences(name, emission):
    function = problem(TrainingCriterion(name, sharpness=0.3, lean=0.2), emission)
    random = np.random.default_rng(1)
    moves = 0.2 * random.standard_normal(function.size)
    _, gradient = function.value_and_gradient(moves)
    for place in random.choice(function.size, 12, replace=False):
        step = np.zeros(function.size)
        step[place] = 1e-5
        above, below = (function.value_and_gradient(moves + sign * step)[0] for sign in (1, -1))
        # The error of a central difference is of the order of the step's square.
        np.testing.assert_allclose(gradient[place], (above - below) / 2e-5, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", CRITERIA)
def test_the_value_is_the_definition(name):
    """Worked out from the scores of each model, one sequence at a time."""
    criterion = TrainingCriterion(name, sharpness=0.3, lean=0.2)
    function = problem(criterion)
    moves = np.full(function.size, 0.1)
    models = function.moved(moves)
    expected = -0.5 * criterion.lean * 0.01 * function.size
    for s in range(len(function.sequences)):
        f = [
            criterion.sharpness * (model.score(function.sequences[s]) + prior)
            for model, prior in zip(models, function.log_priors, strict=True)
        ]
        right = f.pop(function.target[s])
        if name == "conditional":
            added = right - np.log(np.exp(right) + np.exp(f).sum())
        else:
            added = -np.log1p(np.exp(1.0 - right + np.log(np.exp(f).sum())))
        expected += function.weights[s] * added
    assert function.value_and_gradient(moves)[0] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", CRITERIA)
def test_the_criterion_never_falls_and_classes_stand_out(name):
    X, events, labels = two_classes(n=30)
    plain = POHMMClassifier().fit(X, labels, events=events)
    trained = POHMMClassifier(criterion=name).fit(X, labels, events=events)
    history = trained.criterion_history_
    assert len(history) > 2
    assert (np.diff(history) >= 0.0).all()
    assert history[-1] > history[0]
    right = np.searchsorted(plain.classes_, labels)

    def conditional(classifier):
        return classifier.predict_log_proba(X, events=events)[np.arange(len(right)), right].sum()

    assert conditional(trained) > conditional(plain)
    assert plain.criterion_history_ is None


def test_a_strong_lean_leaves_the_likelihoods_models():
    X, events, labels = two_classes()
    plain = POHMMClassifier().fit(X, labels, events=events)
    held = POHMMClassifier(criterion=TrainingCriterion("conditional", lean=1e9)).fit(X, labels, events=events)
    for one, other in zip(plain.models_, held.models_, strict=True):
        np.testing.assert_allclose(one.emission_[0].loc, other.emission_[0].loc, rtol=0, atol=1e-6)


def test_a_trained_classifier_in_a_file(tmp_path):
    X, events, labels = two_classes()
    trained = POHMMClassifier(criterion="margin").fit(X, labels, events=events)
    trained.save(tmp_path / "people.keydyn")
    again = keydyn.load(tmp_path / "people.keydyn")
    np.testing.assert_array_equal(
        again.log_likelihoods(X, events=events), trained.log_likelihoods(X, events=events)
    )


def test_what_has_no_gradient_is_refused():
    X, events, labels = two_classes()
    with pytest.raises(ValueError, match="density_floor"):
        POHMMClassifier(POHMM.published(), criterion="conditional").fit(X, labels, events=events)
    with pytest.raises(ValueError, match="family 'gamma'"):
        POHMMClassifier(POHMM(emission="gamma"), criterion="margin").fit(X, labels, events=events)
    for wrong in ("likely", 3):
        with pytest.raises(ValueError, match="criterion must be"):
            clone(POHMMClassifier(criterion=wrong)).fit(X, labels, events=events)
    for settings in ({"sharpness": 0.0}, {"lean": -1.0}, {"max_iter": 0}, {"lean": np.nan}):
        with pytest.raises(ValueError, match="sharpness"):
            TrainingCriterion("margin", **settings)
