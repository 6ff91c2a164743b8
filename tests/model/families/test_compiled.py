"""Families that the engine knows, against the same families unknown to it.

A class derived from a family goes through its own methods, in Python.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

from keydyn import POHMM
from keydyn.model import Categorical, Exponential, Gamma, LogNormal, LogStudent, Normal, Student
from keydyn.model.families.compiled import custom_features

FAMILIES = {
    "normal": Normal(),
    "lognormal": LogNormal(),
    "student": Student(df=5.0),
    "logstudent": LogStudent(df=5.0),
    "gamma": Gamma(),
    "exponential": Exponential(),
    "categorical": Categorical(n_categories=3),
    "categorical, pseudocount": Categorical(n_categories=3, pseudocount=0.5),
}
LENGTHS = [30, 1, 50, 39]


def in_python(family):
    """The same family, unknown to the engine."""

    @dataclass(frozen=True)
    class Derived(type(family)):
        pass

    return Derived(**family.settings())


@pytest.fixture(scope="module")
def data():
    """Values that any family takes, some missing; events, some without a type."""
    rng = np.random.default_rng(8)
    n = sum(LENGTHS)
    slow = rng.random(n) < 0.4
    X = np.stack([np.exp(0.5 + slow + 0.4 * rng.standard_normal(n)), rng.lognormal(5 + slow, 0.3)], axis=1)
    symbols = np.stack([rng.integers(0, 3, n) // (1 + slow), X[:, 1]], axis=1).astype(float)
    events = rng.choice(list("abcd"), n).astype(object)
    events[rng.random(n) < 0.05] = None
    for values in (X, symbols):
        values[5, 0] = values[17, 1] = np.nan
    return X, symbols, events


@pytest.mark.parametrize("kind", [POHMM, POHMM.published])
@pytest.mark.parametrize("n_states", [1, 2, 3])
@pytest.mark.parametrize("name", FAMILIES)
def test_a_fit_by_the_engine_is_that_by_the_familys_own_methods(name, n_states, kind, data):
    """Parameters, sums and scores after ten iterations, to 1e-9: rounding, multiplied by divisions by γ."""
    X, symbols, events = data
    family, values = FAMILIES[name], symbols if name.startswith("categorical") else X
    settings = {"n_states": n_states, "max_iter": 10, "tol": 0.0, "order_states": False}
    models = []
    weights = [1.0, 2.0, 0.5, 1.5]
    for own in (family, in_python(family)):
        model = kind(emission=[own, "lognormal"], **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            models.append(model.fit(values, events=events, lengths=LENGTHS, sample_weight=weights))
    found, expected = models
    assert custom_features(found._parameters.families) == ()
    assert custom_features(expected._parameters.families) == (0,)
    close = {"rtol": 1e-9, "atol": 1e-12}
    assert found.stop_reason_ == expected.stop_reason_ or n_states == 1
    n = min(found.n_iter_, expected.n_iter_)
    np.testing.assert_allclose(found.history_[:n], expected.history_[:n], rtol=1e-9)
    assert found.log_likelihood_ == pytest.approx(expected.log_likelihood_, rel=1e-9)
    for part in ("start", "transitions", "emissions"):
        ours, theirs = getattr(found._parameters, part), getattr(expected._parameters, part)
        np.testing.assert_allclose(ours, theirs, err_msg=part, **close)
    np.testing.assert_allclose(
        found._state.result.statistics.occupancy, expected._state.result.statistics.occupancy, **close
    )
    np.testing.assert_array_equal(found.scale_floored_, expected.scale_floored_)
    query = values[::-1]
    asked = {"events": [*events[:40], "z", *events[41:]], "lengths": LENGTHS}
    np.testing.assert_allclose(
        found.score_samples(query, **asked), expected.score_samples(query, **asked), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("name", FAMILIES)
def test_chunks_by_the_engine_and_by_the_familys_own_methods(name, data):
    """Sums added up over chunks, exact marginals, and an update."""
    X, symbols, events = data
    family, values = FAMILIES[name], symbols if name.startswith("categorical") else X
    models = []
    for own in (family, in_python(family)):
        model = POHMM(emission=[own, "lognormal"], marginals="exact", order_states=False)
        for first, last in ((0, 50), (50, 120)):
            types = list("abcd") if first == 0 else None
            model.partial_fit(values[first:last], events=events[first:last], event_types=types)
        models.append(model)
    for part in ("start", "transitions", "emissions"):
        ours, theirs = (getattr(model._parameters, part) for model in models)
        np.testing.assert_allclose(ours, theirs, err_msg=part, rtol=1e-9, atol=1e-12)


def test_what_the_engine_does_not_know():
    """A derived class, and Student's t whose ν is estimated."""
    for family in FAMILIES.values():
        assert custom_features((family, in_python(family))) == (1,)
    assert custom_features((Student(estimate_df=True), LogStudent(estimate_df=True))) == (0, 1)
