"""Labels of the hidden state: how they are read, how they line up with states, and what they do to a fit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold, cross_val_score

from keydyn import HMM, PartiallyHMM
from keydyn.model.relatives.labels import labelled


@pytest.fixture(scope="module")
def typed():
    """Two well separated states; state 1 is slow."""
    truth = HMM.from_parameters([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], [("lognormal", [4.6, 6.0], [0.2, 0.3])])
    X, _, states = truth.sample(lengths=[50] * 8, random_state=3)
    return X, states


def named(states, names, seen=0.5, right=1.0, seed=0):
    rng = np.random.default_rng(seed)
    said = np.where(rng.random(len(states)) < right, states, 1 - states)
    labels = np.array(names, dtype=object)[said]
    labels[rng.random(len(states)) >= seen] = None
    return labels


@pytest.mark.parametrize("names", [("fast", "slow"), ("slow", "fast"), (0, 1), (1, 0), (7, -3)])
@pytest.mark.parametrize("order_states", [True, False])
def test_labels_keep_their_state(typed, names, order_states):
    """Whatever labels are called and however states are numbered, each names the state it was seen in."""
    X, states = typed
    labels = named(states, names)
    model = PartiallyHMM(order_states=order_states).fit(X, lengths=[50] * 8, labels=labels)
    said = model.state_labels_[model.predict(X, lengths=[50] * 8)]
    truth = np.array(names, dtype=object)[states]
    assert (said == truth).mean() > 0.97
    assert model.p_true_ > 0.95
    if order_states:
        assert model.state_labels_.tolist() == list(names)
        assert np.all(np.diff(model.emission_[0].loc[0]) > 0)
    else:
        assert model.state_labels_.tolist() == sorted(names)


def test_given_names_number_the_states(typed):
    """Without ordering, state j is the j-th of `state_labels`."""
    X, states = typed
    labels = named(states, ("fast", "slow"))
    model = PartiallyHMM(state_labels=("slow", "fast"), order_states=False)
    model.fit(X, lengths=[50] * 8, labels=labels)
    assert model.state_labels_.tolist() == ["slow", "fast"]
    assert model.emission_[0].loc[0, 0] > model.emission_[0].loc[0, 1]
    assert (model.predict(X, lengths=[50] * 8) == 1 - states).mean() > 0.97


def test_labels_against_the_grain(typed):
    """With p_true fixed below chance, a label means the other state."""
    X, states = typed
    labels = named(states, ("fast", "slow"), right=0.0)
    model = PartiallyHMM(p_true=0.05).fit(X, lengths=[50] * 8, labels=labels)
    assert model.state_labels_.tolist() == ["fast", "slow"]


def test_certain_labels_everywhere_are_supervised_learning(typed):
    """p_true = 1, all labelled: counts and moments of the labelled states, whatever the values say."""
    X, _ = typed
    rng = np.random.default_rng(1)
    states = rng.integers(0, 2, len(X))
    labels = np.array(["a", "b"])[states]
    model = PartiallyHMM(p_true=1.0, order_states=False).fit(X, lengths=[50] * 8, labels=labels)
    for j in range(2):
        logs = np.log(X[states == j, 0])
        assert model.emission_[0].loc[0, j] == pytest.approx(logs.mean(), rel=1e-12)
        assert model.emission_[0].scale[0, j] == pytest.approx(logs.std(), rel=1e-12)
        later = np.arange(len(X)) % 50 > 0
        before = states[np.flatnonzero(later) - 1] == j
        for i in range(2):
            share = (states[later][before] == i).mean()
            assert model.transmat_[j, i] == pytest.approx(share, rel=1e-12)
    np.testing.assert_allclose(model.startprob_, np.bincount(states[::50], minlength=2) / 8, rtol=1e-12)
    assert model.p_observed_ == 1.0
    posterior = model.predict_proba(X, lengths=[50] * 8, labels=labels)
    np.testing.assert_array_equal(posterior, np.eye(2)[states])
    np.testing.assert_array_equal(model.decode(X, lengths=[50] * 8, labels=labels)[1], states)


def test_certain_labels_somewhere(typed):
    """p_true = 1: a labelled event is in its state, surely."""
    X, states = typed
    labels = named(states, ("fast", "slow"), seen=0.3, right=0.9)
    model = PartiallyHMM(p_true=1.0).fit(X, lengths=[50] * 8, labels=labels)
    posterior = model.predict_proba(X, lengths=[50] * 8, labels=labels)
    for j, name in enumerate(model.state_labels_):
        np.testing.assert_allclose(posterior[labels == name, j], 1.0, rtol=1e-12)


def test_visibility_only_adds_a_constant(typed):
    """Whether a label is seen tells nothing of the state: p_observed moves the likelihood, not the states."""
    X, states = typed
    labels = named(states, ("fast", "slow"), seen=0.3, right=0.8)
    given = {"lengths": [50] * 8, "labels": labels}
    with_it = PartiallyHMM(order_states=False).fit(X, **given)
    without = PartiallyHMM(p_observed=None, order_states=False).fit(X, **given)
    seen = sum(label is not None for label in labels)
    share = seen / len(X)
    assert with_it.p_observed_ == pytest.approx(share, rel=1e-12)
    assert without.p_observed_ is None
    constant = seen * np.log(share) + (len(X) - seen) * np.log(1 - share)
    assert with_it.log_likelihood_ == pytest.approx(without.log_likelihood_ + constant, rel=1e-9)
    np.testing.assert_allclose(
        with_it.predict_proba(X, **given), without.predict_proba(X, **given), atol=1e-6
    )
    assert with_it.n_parameters_ == without.n_parameters_ + 1 == 1 + 2 + 4 + 2


def test_forms_of_labels(typed):
    """Flat, nested, numbers that a missing neighbour made floats; folds cut labels with their sequences."""
    X, states = typed
    labels = named(states, (0, 1))
    model = PartiallyHMM(tol=1e-2).fit(X, lengths=[50] * 8, labels=labels)
    parts, nested = np.split(X, 8), np.split(labels, 8)
    floats = np.array([np.nan if label is None else label for label in labels], dtype=float)
    for x, given in (
        (X, {"lengths": [50] * 8, "labels": floats}),
        (parts, {"labels": nested}),
        (parts, {"labels": labels}),
        (labelled(parts, nested, None), {}),
        (X, {"lengths": [50] * 8, "labels": labels.tolist(), "events": ["x"] * len(X)}),
    ):
        np.testing.assert_array_equal(
            PartiallyHMM(tol=1e-2).fit(x, **given).history_, model.history_, str(given)[:60]
        )
    together = labelled(X, labels, [50] * 8)
    np.testing.assert_array_equal(
        together[[2, 0]].codes, np.concatenate([together[2].codes, together[0].codes])
    )
    scores = cross_val_score(PartiallyHMM(tol=1e-2), together, cv=KFold(2))
    for score, (train, test) in zip(scores, KFold(2).split(np.arange(8)), strict=True):
        expected = PartiallyHMM(tol=1e-2).fit(together[train]).score(together[test])
        assert score == pytest.approx(expected, rel=1e-12)


def test_every_question_takes_labels(typed):
    X, states = typed
    labels = named(states, ("fast", "slow"), right=0.8)
    given = {"lengths": [50] * 8, "labels": labels}
    model = PartiallyHMM(tol=1e-2).fit(X, **given)
    assert model.score(X, **given) == pytest.approx(model.score_samples(X, **given).sum())
    assert model.score(X, **given) == pytest.approx(model.log_likelihood_, rel=1e-12)
    np.testing.assert_array_equal(model.predict(X, **given), model.predict_proba(X, **given).argmax(axis=1))
    assert model.aic(X, **given) == pytest.approx(2 * model.n_parameters_ - 2 * model.score(X, **given))
    penalty = model.n_parameters_ * np.log(len(X))
    assert model.bic(X, **given) == pytest.approx(penalty - 2 * model.score(X, **given))
    doubled = model.score(X, sample_weight=[2.0] * 8, **given)
    assert doubled == pytest.approx(2 * model.score(X, **given))
    # Without labels it is the HMM of the same parameters.
    tables = [("lognormal", model.emission_[0].loc[0], model.emission_[0].scale[0])]
    plain = HMM.from_parameters(model.startprob_, model.transmat_, tables)
    np.testing.assert_allclose(model.score_samples(X), plain.score_samples(X), atol=1e-12)


def test_wrong_labels(typed):
    X, _ = typed
    model = PartiallyHMM()
    with pytest.raises(ValueError, match="there are 3 different labels for 2 states"):
        model.fit(X[:3], labels=["a", "b", "c"])
    with pytest.raises(ValueError, match="there are 400 rows in X and 2 labels"):
        model.fit(X, labels=["a", "b"])
    with pytest.raises(ValueError, match="labels must be all text or all whole numbers"):
        model.fit(X[:2], labels=["a", 1])
    with pytest.raises(ValueError, match=r"sequence 0, row 1: labels must be text or whole numbers"):
        model.fit(X[:2], labels=[1, 0.5])
    fitted = PartiallyHMM(tol=1e-2).fit(X, labels=["a", "b"] * 200)
    with pytest.raises(ValueError, match=r"sequence 0, row 1: label 'z' names no state; labels are 'a', 'b'"):
        fitted.score(X[:2], labels=["a", "z"])
    without = PartiallyHMM(tol=1e-2).fit(X)
    with pytest.raises(ValueError, match="label 'a' names no state; labels are none"):
        without.score(X[:1], labels=["a"])
    with pytest.raises(ValueError, match="label 'c' names no state"):
        PartiallyHMM(state_labels=("a", "b")).fit(X[:2], labels=["a", "c"])
    with pytest.raises(ValueError, match="state_labels has 3 labels for 2 states"):
        PartiallyHMM(state_labels="abc").fit(X)
    for name, wrong in (("p_observed", 1.5), ("p_observed", "some"), ("p_true", None), ("p_true", True)):
        with pytest.raises(ValueError, match=f"{name} must be"):
            PartiallyHMM(**{name: wrong}).fit(X)
    with pytest.raises(ValueError, match="with one state there is no wrong label"):
        PartiallyHMM(1, p_true=0.9).fit(X)


def test_labels_that_cannot_be():
    """Seen where none can be seen, or missing where all are: probability zero, never NaN."""
    x = np.array([[1.0], [2.0], [1.5]])
    parts = ([0.5, 0.5], [[0.5, 0.5]] * 2, [("normal", [[1.0, 2.0]], [[1.0, 1.0]])])
    never = PartiallyHMM.from_parameters(*parts, p_observed=0.0, p_true=0.9)
    assert never.score(x, labels=[None, 1, None]) == -np.inf
    always = PartiallyHMM.from_parameters(*parts, p_observed=1.0, p_true=0.9)
    assert always.score(x, labels=[0, 1, None]) == -np.inf
    with pytest.raises(ValueError, match="sequence 0 has probability zero under the model from row 1 on"):
        never.predict_proba(x, labels=[None, 1, None])
    with pytest.raises(ValueError, match="probability zero"):
        PartiallyHMM(emission="normal", p_observed=0.0).fit(x, labels=[None, 1, None])


def test_few_labels(typed):
    """One state named, one label in all, one state: all have an answer."""
    X, states = typed
    labels = np.full(len(X), None, dtype=object)
    labels[states == 1] = "slow"
    model = PartiallyHMM(tol=1e-3).fit(X, lengths=[50] * 8, labels=labels)
    assert model.state_labels_.tolist() == [None, "slow"]
    assert np.isfinite(model.score(X, lengths=[50] * 8, labels=labels))
    single = PartiallyHMM(1).fit(X, labels=["only"] * len(X))
    assert single.p_true_ == 1.0
    assert single.n_parameters_ == 2 + 2
    one = np.full(len(X), None, dtype=object)
    one[5] = "x"
    assert np.isfinite(PartiallyHMM(tol=1e-2).fit(X, labels=one).log_likelihood_)
