"""Data with hardly anything in them: a right answer, never a NaN."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from keydyn import HMM, POHMM
from tests.examples import examples
from tests.model.enumeration import FAMILIES

SMOOTHINGS = ["frequency", None, 0.5]


def assert_sound(model, X, events=None, lengths=None):
    """Every probability vector adds up to one, everything is finite."""
    for name in ("startprob_", "transmat_", "event_startprob_", "event_transmat_", "stationary_"):
        values = getattr(model, name)
        assert (values >= 0).all(), name
        np.testing.assert_allclose(values.sum(axis=-1), 1.0, atol=1e-9, err_msg=name)
    assert model.event_prob_.sum() == pytest.approx(1.0)
    marginal = model.marginal_
    for values in (marginal.startprob, marginal.transmat, marginal.transmat_from, marginal.transmat_to):
        np.testing.assert_allclose(values.sum(axis=-1), 1.0, atol=1e-9)
    for emission in [*model.emission_, *marginal.emission]:
        for name, values in emission.params.items():
            assert np.isfinite(values).all(), (emission.family, name)
    kwargs = {"events": events, "lengths": lengths}
    assert np.isfinite(model.history_).all()
    assert np.isfinite(model.score_samples(X, **kwargs)).all()
    for probabilities in (model.predict_proba(X, **kwargs), model.filter_proba(X, **kwargs)):
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-9)
    assert np.isfinite(model.decode(X, **kwargs)[0]).all()
    assert np.isfinite(model.score_samples(X, events=["?"] * len(X), lengths=lengths)).all()


def fitted(model, X, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, **kwargs)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("values", "events", "lengths"),
    [
        ([7.0], None, None),
        ([7.0], ["a"], None),
        ([7.0, 7.0, 7.0], ["a", "b", "a"], None),
        ([1.0, 2.0, 3.0], ["a", "b", "c"], [1, 1, 1]),
        ([5.0] * 9 + [6.0], ["a"] * 9 + ["b"], [4, 6]),
        ([1e-90, 1e90, 1.0, 2.0], ["a", "b", "a", "b"], None),
        ([100.0] * 20 + [2.904e5], ["a", "b", "c"] * 7, None),
        ([1.0, 1.0, 2.0, 2.0] * 5, ["a", "b"] * 10, None),
    ],
    ids=[
        "one event",
        "one typed event",
        "constant",
        "all of length one",
        "nearly constant",
        "1e±90",
        "outlier",
        "ties",
    ],
)
def test_hardly_any_data(family, smoothing, values, events, lengths):
    X = np.array(values)[:, None]
    for n_states in (1, 2, 3):
        model = fitted(
            POHMM(n_states, emission=family, smoothing=smoothing), X, events=events, lengths=lengths
        )
        assert_sound(model, X, events, lengths)


def test_the_scale_floor_acts_and_says_where():
    """A type with one value has no spread: the floor is a thousandth of the feature's, and is reported."""
    X = np.array([[10.0], [20.0], [30.0], [40.0], [25.0]])
    model = fitted(POHMM(1, emission="normal", smoothing=None), X, events=["a", "a", "a", "a", "b"])
    assert model.scale_floored_[0].tolist() == [[False], [True]]
    assert model.emission_[0].scale[1, 0] == pytest.approx(1e-3 * X.std())
    constant = fitted(POHMM(1, emission="lognormal"), np.full((5, 1), 300.0))
    assert constant.emission_[0].scale[0, 0] == pytest.approx(1e-3)
    assert constant.scale_floored_[0].all()
    linear = fitted(POHMM(1, emission="normal"), np.full((5, 1), 300.0))
    assert linear.emission_[0].scale[0, 0] == pytest.approx(1e-6 * 300.0)
    given_floor = fitted(POHMM(1, emission="normal", min_scale=2.0), np.full((5, 1), 300.0))
    assert given_floor.emission_[0].scale[0, 0] == 2.0


def test_a_state_that_loses_all_its_mass_keeps_its_parameters():
    """Start so far apart that no event can be of the last state."""
    X = np.random.default_rng(0).normal(0, 1, (50, 1))
    far = HMM.from_parameters(
        [0.5, 0.5],
        [[0.5, 0.5], [0.5, 0.5]],
        [("normal", [0.0, 1e6], [1.0, 1.0])],
        warm_start=True,
        order_states=False,
    )
    fitted(far, X)
    assert far.emission_[0].loc[0, 1] == 1e6
    assert far.emission_[0].loc[0, 0] == pytest.approx(X.mean())
    assert_sound(far, X)


def test_integer_types_and_one_type_per_event():
    X = np.random.default_rng(1).lognormal(5, 1, (30, 2))
    model = fitted(POHMM(), X, events=np.arange(30))
    assert model.event_types_.dtype.kind == "i"
    assert_sound(model, X, np.arange(30))


def test_many_event_types_cost_no_square():
    """50,000 types: their square would need 80 gigabytes for the transitions alone."""
    X = np.random.default_rng(2).lognormal(5, 1, (60_000, 1))
    events = np.concatenate([np.arange(50_000), np.random.default_rng(3).integers(0, 50_000, 10_000)])
    model = fitted(POHMM(max_iter=2), X, events=events)
    assert np.isfinite(model.score(X, events=events))
    assert len(model._parameters.transmat) < 60_000


numbers = {
    "normal": st.floats(-1e100, 1e100),
    "student": st.floats(-1e100, 1e100),
    "lognormal": st.floats(5e-324, 1.7e308),
    "logstudent": st.floats(5e-324, 1.7e308),
    "gamma": st.floats(1e-100, 1e100),
    "exponential": st.floats(0, 1e100),
}


@st.composite
def problems(draw):
    """A family, values it can emit and event types (some missing), lengths, settings."""
    family = draw(st.sampled_from(FAMILIES))
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    n = sum(lengths)
    values = draw(st.lists(st.one_of(numbers[family], st.none()), min_size=n, max_size=n))
    if all(v is None for v in values):
        values[0] = 1.0
    events = draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=n, max_size=n))
    settings_ = {
        "n_states": draw(st.integers(1, 3)),
        "smoothing": draw(st.sampled_from(SMOOTHINGS)),
        "marginals": draw(st.sampled_from(["printed", "exact"])),
    }
    X = np.array([np.nan if v is None else v for v in values])[:, None]
    return family, X, events, lengths, settings_


@settings(max_examples=examples(400), deadline=None)
@given(problems())
def test_no_finite_input_gives_a_result_that_is_not(problem):
    family, X, events, lengths, parameters = problem
    model = fitted(POHMM(emission=family, max_iter=20, **parameters), X, events=events, lengths=lengths)
    assert_sound(model, X, events, lengths)
    published = fitted(POHMM.published(emission=family, max_iter=20), X, events=events, lengths=lengths)
    assert_sound(published, X, events, lengths)


@pytest.mark.parametrize("family", ["normal", "student"])
def test_types_far_from_zero_that_agree_have_a_marginal(family):
    """All types start at the same place, near 1e17: rounding must not make their variance negative."""
    far = float.fromhex("0x1.377f79718f43bp+59")
    X = np.array([0.0, np.nan, 0.0, 0.0, far, np.nan, np.nan, np.nan, 0.0])[:, None]
    events = ["a", "a", "a", "b", None, "a", "c", None, "c"]
    published = fitted(POHMM.published(emission=family, max_iter=20), X, events=events, lengths=[3, 6])
    assert_sound(published, X, events, [3, 6])
