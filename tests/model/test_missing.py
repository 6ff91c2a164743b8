"""Missing and unseen event types, missing values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from keydyn import HMM, POHMM, Sequences
from tests.model.enumeration import Truth


@pytest.fixture(scope="module")
def data():
    truth = Truth.random(np.random.default_rng(71), m=3, n_states=2, families=("lognormal", "lognormal"))
    X, events, _ = POHMM.from_parameters(*truth.arguments()).sample(lengths=[40] * 5, random_state=1)
    return Sequences.from_arrays(X, events, [40] * 5)


def test_without_events_it_is_the_hmm(data):
    """No events, or none that has a type: one event type, and the HMM's numbers to the last digit."""
    hmm = HMM(tol=1e-3).fit(data)
    for events in (None, [None] * 200, np.full(200, np.nan)):
        model = POHMM(tol=1e-3).fit(data.X, events=events, lengths=data.lengths)
        assert model.log_likelihood_ == hmm.log_likelihood_
        np.testing.assert_array_equal(model.transmat_, hmm.transmat_)
        assert model.score(data) == hmm.score(data)


def test_unseen_missing_and_no_events_score_alike(data):
    model = POHMM(tol=1e-3).fit(data)
    X = data.X[:40]
    unseen = model.score_samples(X, events=["never"] * 40)
    np.testing.assert_array_equal(unseen, model.score_samples(X))
    np.testing.assert_array_equal(unseen, model.score_samples(X, events=[None] * 40))
    # That is what the marginal model says of it.
    np.testing.assert_allclose(unseen, model.to_hmm().score_samples(X), rtol=1e-12)


def test_the_marginal_model_keeps_the_names_of_the_features(data):
    frame = pd.DataFrame(data.X, columns=["tau", "duration"])
    model = POHMM(tol=1e-3).fit(frame, events=data.labels(), lengths=data.lengths)
    assert np.isfinite(model.to_hmm().score(frame, lengths=data.lengths))


def test_an_hmm_does_not_even_look_at_events(data):
    hmm = HMM(tol=1e-3).fit(data.X, events=[0.5] * 7, lengths=data.lengths)
    assert hmm.score(data, events=["a"]) == hmm.score(data)


def test_a_masked_value_is_missing(data):
    masked = np.ma.masked_array(data.X[:40], mask=np.random.default_rng(0).random((40, 2)) < 0.2)
    model = POHMM(tol=1e-3).fit(data)
    assert model.score(masked) == model.score(masked.filled(np.nan))


def test_an_event_without_a_type_adds_to_no_type(data):
    """Counts, chain and pairs are those of the events that have a type; a gap makes no pair."""
    events = data.labels().astype(object)
    events[[3, 50, 51, 120]] = None
    model = POHMM(tol=1e-3).fit(data.X, events=events, lengths=data.lengths)
    typed = np.array([e is not None for e in events])
    names, counts = np.unique(events[typed].astype(str), return_counts=True)
    assert model.event_types_.tolist() == names.tolist()
    np.testing.assert_allclose(model.event_prob_, counts / counts.sum())
    pairs = np.zeros((3, 3))
    for n in range(1, 200):
        if n % 40 and typed[n] and typed[n - 1]:
            pairs[list(names).index(events[n - 1]), list(names).index(events[n])] += 1
    np.testing.assert_allclose(model.event_transmat_, pairs / pairs.sum(axis=1, keepdims=True))


def test_the_marginal_start_counts_sequences_without_a_first_type(data):
    events = data.labels().astype(object)
    events[data.offsets[:-1]] = None
    truth = Truth.random(np.random.default_rng(72), m=3, n_states=2, families=("lognormal", "lognormal"))
    model = POHMM.from_parameters(
        *truth.arguments(), warm_start=True, max_iter=1, order_states=False, smoothing="frequency"
    )
    first = model.predict_proba(data.X, events=events, lengths=data.lengths)[data.offsets[:-1]]
    with pytest.warns(ConvergenceWarning):
        model.fit(data.X, events=events, lengths=data.lengths)
    np.testing.assert_allclose(model.marginal_.startprob, first.mean(axis=0), rtol=1e-10)
    # No type began a sequence: all have the marginal.
    np.testing.assert_allclose(model.startprob_, np.tile(model.marginal_.startprob, (3, 1)), rtol=1e-12)


def test_a_missing_value_drops_its_factor(data):
    """A feature that is missing everywhere in a sequence leaves the likelihood of the other one."""
    model = POHMM(tol=1e-3).fit(data)
    hidden = data.X[:40].copy()
    hidden[:, 1] = np.nan
    one = POHMM.from_parameters(
        model.event_types_,
        model.startprob_,
        model.transmat_,
        [(e.family, e.params) for e in model.emission_[:1]],
    )
    events = data.labels()[:40]
    assert model.score(hidden, events=events) == pytest.approx(
        one.score(hidden[:, :1], events=events), rel=1e-12
    )
    # With nothing observed at all there is nothing to be surprised by.
    nothing = np.full((40, 2), np.nan)
    assert model.score(nothing, events=events) == pytest.approx(0.0, abs=1e-12)


def test_fitting_with_missing_values_ignores_them(data):
    """One state: the estimates are the means and deviations of the values that are there."""
    X = data.X.copy()
    X[::3, 0] = np.nan
    model = POHMM(1, smoothing=None).fit(X, events=data.labels(), lengths=data.lengths)
    for w, name in enumerate(model.event_types_):
        for k in range(2):
            logs = np.log(X[data.labels() == name, k])
            assert model.emission_[k].loc[w, 0] == pytest.approx(np.nanmean(logs), rel=1e-12)
            assert model.emission_[k].scale[w, 0] == pytest.approx(np.nanstd(logs), rel=1e-12)


def test_a_type_without_any_value_of_a_feature(data):
    """It keeps the start, which is that of all events, and nothing becomes NaN."""
    X = data.X.copy()
    X[data.labels() == "k1", 1] = np.nan
    for smoothing in ("frequency", None):
        model = POHMM(smoothing=smoothing, tol=1e-3).fit(X, events=data.labels(), lengths=data.lengths)
        assert np.isfinite(model.emission_[1].loc).all()
        assert np.isfinite(model.score(X, events=data.labels(), lengths=data.lengths))


def test_unseen_types_can_be_refused(data):
    model = POHMM(handle_unknown="error", tol=1e-3).fit(data)
    assert np.isfinite(model.score(data.X[:3], events=["k0", None, "k1"]))
    with pytest.raises(ValueError, match=r"sequence 0, row 1: event type 'zz' was not seen in fitting"):
        model.score(data.X[:3], events=["k0", "zz", "k1"])
