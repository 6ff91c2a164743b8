"""Where each relative is the HMM, it is the HMM: to 1e-12, in given models and in fits."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn import HMM, ContextHMM, PartiallyHMM, PartlyHMM
from keydyn.model import Bins, NoContext, Student

START, TRANS = [0.7, 0.3], [[0.85, 0.15], [0.4, 0.6]]
LOC, SCALE = [[4.6, 5.9], [4.2, 4.5]], [[0.3, 0.6], [0.2, 0.4]]
LENGTHS = [30, 1, 45, 24]


def hmm(**parameters):
    return HMM.from_parameters(
        START, TRANS, [("lognormal", loc, scale) for loc, scale in zip(LOC, SCALE, strict=True)], **parameters
    )


def rows(n):
    """The HMM's emission in n equal rows."""
    pairs = zip(LOC, SCALE, strict=True)
    return [("lognormal", np.tile(loc, (n, 1)), np.tile(scale, (n, 1))) for loc, scale in pairs]


GIVEN = {
    "context, one table": lambda: ContextHMM.from_parameters(
        START, [TRANS], rows(1), emission_context=NoContext(), transition_context=NoContext()
    ),
    "context, equal tables": lambda: ContextHMM.from_parameters(
        START, [TRANS] * 4, rows(5), emission_context=Bins((90.0, 200.0)), transition_context=Bins((100.0,))
    ),
    "partly, zero slopes": lambda: PartlyHMM.from_parameters(START, TRANS, rows(1)),
    "partially, labels never seen": lambda: PartiallyHMM.from_parameters(
        START, TRANS, rows(1), p_observed=0.0, p_true=0.8
    ),
}


@pytest.fixture(scope="module", name="X")
def drawn():
    values, _, _ = hmm().sample(lengths=LENGTHS, random_state=7)
    values[::11, 0] = np.nan
    return values


@pytest.mark.parametrize("kind", GIVEN)
def test_given(X, kind):
    model, plain = GIVEN[kind](), hmm()
    given = [{}]
    if kind.startswith("partially"):
        given.append({"labels": np.full(len(X), None)})
    for more in given:
        for name in ("score_samples", "predict_proba", "filter_proba", "predict", "score_sequences"):
            found = getattr(model, name)(X, lengths=LENGTHS, **more)
            np.testing.assert_allclose(found, getattr(plain, name)(X, lengths=LENGTHS), atol=1e-12)
        for found, expected in zip(
            model.decode(X, lengths=LENGTHS, **more), plain.decode(X, lengths=LENGTHS), strict=True
        ):
            np.testing.assert_allclose(found, expected, atol=1e-12)


SETTINGS = {
    "defaults": {},
    "published": {
        "density_floor": 1e-5,
        "count_floor": 1e-5,
        "min_scale": 1e-5,
        "order_states": False,
        "spread_features": "leading",
        "spread_scale": "all",
    },
    "t": {"emission": ["logstudent", "lognormal"], "tol": 1e-3},
    "t, estimated": {"emission": [Student(estimate_df=True), "gamma"], "tol": 1e-2},
    "three states": {"n_states": 3, "tol": 1e-3},
    "restarts": {"n_init": 3, "random_state": 5, "tol": 1e-3},
}
FITS = {
    "context, one bin": lambda **given: ContextHMM(emission_context=1, transition_context=None, **given),
    "partially, no labels": lambda **given: PartiallyHMM(**given),
    "partially, no label seen": lambda **given: PartiallyHMM(p_observed=0.0, **given),
}


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("kind", FITS)
def test_fitted(X, kind, settings):
    """The same climb, step by step. Sums of different order differ by rounding: 1e-12 of the log-likelihood.

    Parameters after up to hundreds of steps are held to 1e-8: EM carries a rounding error along.
    """
    given = SETTINGS[settings]
    plain = HMM(smoothing=None, **given).fit(X, lengths=LENGTHS)
    labels = {"labels": np.full(len(X), None)} if kind == "partially, no label seen" else {}
    model = FITS[kind](**given).fit(X, lengths=LENGTHS, **labels)
    assert model.n_iter_ == plain.n_iter_
    assert model.stop_reason_ == plain.stop_reason_
    np.testing.assert_allclose(model.history_, plain.history_, rtol=1e-12)
    np.testing.assert_allclose(model.startprob_, plain.startprob_[0], atol=1e-8)
    np.testing.assert_allclose(np.reshape(model.transmat_, plain.transmat_.shape), plain.transmat_, atol=1e-8)
    for ours, theirs in zip(model.emission_, plain.emission_, strict=True):
        for name, values in theirs.params.items():
            np.testing.assert_allclose(ours.params[name], values, rtol=1e-8)
    assert model.n_parameters_ == plain.n_parameters_
