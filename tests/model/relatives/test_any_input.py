"""Whatever finite values a family can emit: a fit, a finite score, proper probabilities."""

from __future__ import annotations

import warnings

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from keydyn import ContextHMM, PartiallyHMM, PartlyHMM
from tests.examples import examples

NUMBERS = {
    "normal": st.floats(-1e100, 1e100),
    "student": st.floats(-1e100, 1e100),
    "lognormal": st.floats(5e-324, 1.7e308),
    "logstudent": st.floats(5e-324, 1.7e308),
    "gamma": st.floats(1e-100, 1e100),
    "exponential": st.floats(0, 1e100),
    "categorical": st.integers(0, 1),
}
LOCATED = ("normal", "student", "lognormal", "logstudent")
FLOORED = {"density_floor": 1e-5, "count_floor": 1e-5, "spread_scale": "all", "order_states": False}


@st.composite
def problems(draw, families):
    """A family, values it can emit (some missing), labels, lengths, settings."""
    family = draw(st.sampled_from(families))
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    n = sum(lengths)
    values = draw(st.lists(st.one_of(NUMBERS[family], st.none()), min_size=n, max_size=n))
    if all(v is None for v in values):
        values[0] = 1.0
    labels = draw(st.lists(st.sampled_from(["a", "b", None]), min_size=n, max_size=n))
    X = np.array([np.nan if v is None else v for v in values], dtype=float)[:, None]
    chosen = {"n_states": draw(st.integers(1, 3)), **draw(st.sampled_from([{}, FLOORED]))}
    return family, X, labels, lengths, chosen


def assert_sound(model, X, lengths, **more):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="not converged")
        model.set_params(max_iter=20).fit(X, lengths=lengths, **more)
    assert np.isfinite(model.log_likelihood_)
    assert np.isfinite(model.score_samples(X, lengths=lengths, **more)).all()
    for probabilities in (model.predict_proba(X, lengths=lengths), model.startprob_, model.transmat_):
        np.testing.assert_allclose(probabilities.sum(axis=-1), 1.0, rtol=1e-9)
    for emission in model.emission_:
        assert all(np.isfinite(values).all() for values in emission.params.values())


often = settings(max_examples=examples(80), deadline=None)


@often
@given(problems(tuple(NUMBERS)), st.integers(1, 4), st.integers(1, 3))
def test_context(problem, emission_context, transition_context):
    family, X, _, lengths, chosen = problem
    if family == "categorical":
        chosen["n_states"] = 1
    assert_sound(ContextHMM(emission=family, emission_context=emission_context, **chosen), X, lengths)


@often
@given(problems(LOCATED))
def test_lines(problem):
    family, X, _, lengths, chosen = problem
    assert_sound(PartlyHMM(emission=family, **chosen), X, lengths)


@often
@given(problems(tuple(NUMBERS)), st.sampled_from(["estimate", None]), st.sampled_from(["estimate", 0.7]))
def test_partially(problem, p_observed, p_true):
    family, X, labels, lengths, chosen = problem
    if chosen["n_states"] == 1:
        labels, p_true = ["a" if label else None for label in labels], "estimate"
    model = PartiallyHMM(emission=family, p_observed=p_observed, p_true=p_true, **chosen)
    assert_sound(model, X, lengths, labels=labels)
