"""Maximum a posteriori classification, and many models at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold, cross_val_score

import keydyn
from keydyn import HMM, POHMM, POHMMClassifier, Sequences, fit_many
from keydyn.files import packed
from keydyn.model.classifier import CLASSIFIER, _contents
from tests.model.enumeration import Truth

CLASSES = ["ann", "bob", "eve"]


@pytest.fixture(scope="module")
def people():
    """Three people who type the same keys, six sequences each."""
    rng = np.random.default_rng(81)
    parts = []
    for _ in CLASSES:
        truth = Truth.random(rng, m=3, n_states=2, families=("lognormal",))
        truth.types = ["x", "y", "z"]
        X, events, _ = POHMM.from_parameters(*truth.arguments()).sample(lengths=[40] * 6, random_state=rng)
        parts.append(Sequences.from_arrays(X, events, [40] * 6))
    return Sequences.concatenate(parts), np.repeat(CLASSES, 6)


def test_it_is_bayes_rule(people):
    """Posterior = prior × likelihood of each class's own model, normalised."""
    sequences, labels = people
    priors = {"ann": 0.7, "bob": 0.2, "eve": 0.1}
    classifier = POHMMClassifier(POHMM(tol=1e-3), priors=priors).fit(sequences, labels)
    own = [clone(POHMM(tol=1e-3)).fit(sequences[labels == name]) for name in CLASSES]
    joint = np.stack([m.score_sequences(sequences) for m in own], axis=1) + np.log(list(priors.values()))
    expected = np.exp(joint - joint.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(classifier.predict_proba(sequences), expected, rtol=1e-9, atol=1e-300)
    assert classifier.predict(sequences).tolist() == [CLASSES[c] for c in np.argmax(expected, axis=1)]
    assert classifier.score(sequences, labels) == np.mean(classifier.predict(sequences) == labels)
    np.testing.assert_allclose(
        classifier.predict_log_proba(sequences), np.log(expected), rtol=1e-9, atol=1e-9
    )


def test_it_tells_people_apart(people):
    """On held-out sequences, far better than the one in three of guessing."""
    sequences, labels = people
    scores = cross_val_score(POHMMClassifier(POHMM(tol=1e-3)), sequences, labels, cv=StratifiedKFold(3))
    assert scores.mean() > 0.8


def test_priors(people):
    sequences, labels = people
    few = sequences[:13], labels[:13]
    assert POHMMClassifier(POHMM(tol=1)).fit(*few).priors_.tolist() == [1 / 3] * 3
    assert POHMMClassifier(POHMM(tol=1), priors="empirical").fit(*few).priors_.tolist() == [
        6 / 13,
        6 / 13,
        1 / 13,
    ]
    assert POHMMClassifier(POHMM(tol=1), priors=[0.5, 0.5, 0]).fit(*few).predict(sequences[12]).tolist() != [
        "eve"
    ]
    for wrong in ("even", [0.5, 0.5], [0.5, 0.6, 0.1], {"ann": 1.0}, [-0.1, 0.6, 0.5]):
        with pytest.raises(ValueError, match="priors"):
            POHMMClassifier(POHMM(tol=1), priors=wrong).fit(*few)


def test_labels_must_fit(people):
    sequences, labels = people
    classifier = POHMMClassifier(POHMM(tol=1)).fit(sequences, labels)
    for wrong in (["ann"], labels[:, None]):
        with pytest.raises(ValueError, match="y must be one label per sequence: 18 sequences"):
            classifier.score(sequences, wrong)
    for gap in (None, np.nan):
        with pytest.raises(ValueError, match="the label of sequence 1 is missing"):
            POHMMClassifier().fit(sequences, ["ann", gap] * 9)


def test_fit_many_is_many_fits_whatever_the_threads(people):
    sequences, labels = people
    items = [sequences[labels == name] for name in CLASSES]
    for model in (POHMM(tol=1e-3), HMM(tol=1e-3), POHMM.published()):
        alone = [clone(model).fit(item) for item in items]
        for n_jobs in (None, 1, 2):
            for a, b in zip(alone, fit_many(model, items, n_jobs=n_jobs), strict=True):
                assert type(b) is type(model)
                assert a.log_likelihood_ == b.log_likelihood_
                np.testing.assert_array_equal(a.transmat_, b.transmat_)
        assert not hasattr(model, "n_iter_"), "the model given is a pattern, not fitted itself"
    assert fit_many(POHMM(), []) == []


def test_weights_go_with_their_items(people):
    sequences, labels = people
    items = [sequences[labels == name] for name in CLASSES]
    weights = [[1, 2, 0, 1, 1, 1]] * 3
    found = fit_many(POHMM(tol=1e-3), items, sample_weight=weights)[1]
    assert found.log_likelihood_ == POHMM(tol=1e-3).fit(items[1], sample_weight=weights[1]).log_likelihood_
    with pytest.raises(ValueError, match="sample_weight has 1 items, data has 3"):
        fit_many(POHMM(), items, sample_weight=weights[:1])


def test_any_error_names_its_model(people):
    sequences, _ = people

    def fails(iteration):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        fit_many(POHMM(callback=fails), [sequences[0]])
    assert caught.value.__notes__ == ["model 0"]


def test_an_error_names_its_model(people):
    sequences, _ = people
    bad = Sequences.from_arrays(np.array([[1.0], [-1.0]]))
    for n_jobs in (1, 2):
        with pytest.raises(ValueError, match=r"model 2: sequence 0, row 1, column 0: -1\.0 is not a value"):
            fit_many(POHMM(), [sequences[0], sequences[1], bad], n_jobs=n_jobs)


@pytest.mark.parametrize(
    ("labels", "priors"),
    [
        (["ann", "bob"], "uniform"),
        ([3, -7], "empirical"),
        ([True, False], [0.25, 0.75]),
        ([0.5, 2.0], {0.5: 0.9, 2.0: 0.1}),
    ],
)
def test_a_classifier_in_a_file(tmp_path, labels, priors):
    """All that it says is the same after loading, to the last bit."""
    rng = np.random.default_rng(0)
    X = [rng.lognormal(4.5 + 0.3 * (s % 2), 0.3, (20, 1)) for s in range(9)]
    events = [rng.choice(["a", "b", "c"], 20).tolist() for _ in X]
    y = [labels[s % 2] for s in range(9)]
    classifier = POHMMClassifier(POHMM(n_states=2, tol=1e-3), priors=priors).fit(X, y, events=events)
    classifier.save(tmp_path / "who.keydyn")
    loaded = keydyn.load(tmp_path / "who.keydyn")
    assert isinstance(loaded, POHMMClassifier)
    assert loaded.classes_.tolist() == classifier.classes_.tolist()
    assert loaded.classes_.dtype == classifier.classes_.dtype
    np.testing.assert_array_equal(loaded.priors_, classifier.priors_)
    np.testing.assert_array_equal(
        loaded.predict_log_proba(X, events=events), classifier.predict_log_proba(X, events=events)
    )
    again = loaded.fit(X, y, events=events)
    np.testing.assert_array_equal(again.predict(X, events=events), classifier.predict(X, events=events))


def test_files_of_classifiers_are_checked(tmp_path):
    rng = np.random.default_rng(0)
    X = [rng.lognormal(4.5, 0.3, (20, 1)) for _ in range(4)]
    path = tmp_path / "who.keydyn"
    classifier = POHMMClassifier(HMM(n_states=1)).fit(X, ["a", "b"] * 2)
    with pytest.raises(NotFittedError):
        POHMMClassifier().save(path)
    classifier._state = replace(classifier._state, labels=np.array([None, None]))
    with pytest.raises(ValueError, match="labels of type object cannot be saved"):
        classifier.save(path)
    classifier._state = replace(classifier._state, labels=np.array(["a", "b"]))
    values, tensors = _contents(classifier)
    header = CLASSIFIER.header(values)
    for changes, message in [
        ({"labels": ["b", "a"]}, "different and in order"),
        ({"labels": ["a"]}, "two or more"),
        ({"labels": [1, 2]}, "different and in order"),
        ({"kind": "colour"}, "kind is 'colour', not one of text, whole, number, truth"),
        ({"models": [1, 2]}, r"models\[0\] is 1, not an object"),
        ({"extra": 1}, r"fields that are not known: \['extra'\]"),
    ]:
        path.write_bytes(packed(header | changes, tensors))
        with pytest.raises(keydyn.model.ModelFileError, match=message):
            keydyn.load(path)
    for name, values, message in [
        ("priors", np.array([0.5, 0.6]), "adds up to 1.1, not 1"),
        ("priors", np.array([0.5, np.nan]), "priors"),
        ("2.startprob", np.ones((1, 1)), "arrays that are not known: 2.startprob"),
        ("1.odd", np.ones(1), "arrays that are not known: odd"),
    ]:
        path.write_bytes(packed(header, tensors | {name: values}))
        with pytest.raises(keydyn.model.ModelFileError, match=message):
            keydyn.load(path)
