"""Models of given parameters: what is refused, and the short forms that are accepted."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn import HMM, POHMM
from tests.model.enumeration import FAMILIES, Truth, random_values

NAN = np.nan
HALF = np.full((2, 2), 0.5)
STEPS = np.full((2, 2, 2, 2), 0.5)
NORMAL = [("normal", np.zeros((2, 2)), np.ones((2, 2)))]


def given(event_types=("a", "b"), startprob=HALF, transmat=STEPS, emission=NORMAL, **more):
    return POHMM.from_parameters(event_types, startprob, transmat, emission, **more)


def entry(array, place, value):
    changed = np.array(array)
    changed[place] = value
    return changed


GIVEN = {
    "start shape": (lambda: given(startprob=HALF[:1]), r"startprob must have shape \(2, M\), not \(1, 2\)"),
    "start sum": (lambda: given(startprob=[[0.5, 0.5], [0.5, 0.6]]), r"startprob\[1\] adds up to 1.1, not 1"),
    "start negative": (lambda: given(startprob=[[0.5, 0.5], [1.5, -0.5]]), r"startprob\[1, 1\] is -0.5"),
    "start NaN": (lambda: given(startprob=entry(HALF, (0, 1), NAN)), r"startprob\[0, 1\] is nan"),
    "start text": (lambda: given(startprob="uniform"), "startprob cannot be read as numbers"),
    "start ragged": (
        lambda: given(startprob=[[1.0], [0.5, 0.5]]),
        "startprob cannot be .* row 1 has 2 columns",
    ),
    "start none": (lambda: given(startprob=None), r"startprob must have shape \(2, M\)"),
    "transition shape": (lambda: given(transmat=STEPS[0]), r"transmat must have shape \(2, 2, 2, 2\)"),
    "transition sum": (lambda: given(transmat=STEPS * 0.9), r"transmat\[0, 0, 0\] adds up to 0.9"),
    "transition negative": (
        lambda: given(transmat=entry(STEPS, (1, 0, 1), [2, -1])),
        r"transmat\[1, 0, 1, 1\] is -1",
    ),
    "transition NaN": (
        lambda: given(transmat=entry(STEPS, (1, 1, 0, 0), NAN)),
        r"transmat\[1, 1, 0, 0\] is nan",
    ),
    "types twice": (lambda: given(["a", "a"]), "event_types names 'a' more than once"),
    "types missing": (lambda: given(["a", None]), "event_types has a missing label at position 1"),
    "types none": (lambda: given([]), "event_types is empty"),
    "types mixed": (lambda: given(["a", 1]), "all text or all whole numbers"),
    "types nested": (lambda: given([["a"], ["b"]]), "event types must be text or whole numbers"),
    "types a number": (lambda: given(2), "one label per event, not 2"),
    "emission none": (lambda: given(emission=[]), "emission is empty"),
    "emission number": (lambda: given(emission=5), "emission must be a list"),
    "emission name": (lambda: given(emission=["normal"]), "emission of feature 0 must be"),
    "emission pair": (lambda: given(emission=[("normal", 5)]), "emission of feature 0 must be"),
    "emission family": (lambda: given(emission=[("cauchy", HALF, HALF)]), "emission 'cauchy' is not known"),
    "emission shape": (
        lambda: given(emission=[*NORMAL, ("normal", HALF[0], HALF)]),
        "feature 1, loc must have shape",
    ),
    "emission scale": (lambda: given(emission=[("normal", HALF, -HALF)]), "feature 0: scale must be greater"),
    "emission NaN": (
        lambda: given(emission=[("normal", HALF * NAN, HALF)]),
        "feature 0, loc has values that are not",
    ),
    "emission text": (
        lambda: given(emission=[("normal", "x", HALF)]),
        "feature 0, loc cannot be read as numbers",
    ),
    "emission triple": (
        lambda: given(emission=[("gamma", HALF, HALF)]),
        "feature 0: gamma needs a dict of shape",
    ),
    "emission dict": (
        lambda: given(emission=[("gamma", {"rate": 1.0})]),
        r"has the parameters shape, scale, not \['r",
    ),
    "chain start": (lambda: given(event_startprob=[0.5, 0.6]), "event_startprob adds up to 1.1"),
    "chain shape": (lambda: given(event_transmat=[0.5, 0.5]), r"event_transmat must have shape \(2, 2\)"),
    "chain sum": (lambda: given(event_transmat=HALF * 2), r"event_transmat\[0\] adds up to 2"),
    "settings": (lambda: given(tol=-1), "tol must be zero or greater"),
    "HMM transition": (
        lambda: HMM.from_parameters([0.5, 0.5], HALF[:1], [("normal", [0.0, 1.0], [1.0, 1.0])]),
        "transmat must have shape",
    ),
    "no stationary chain": (
        lambda: given(event_transmat=np.eye(2)).marginal_,
        "no unique stationary distribution",
    ),
    "unknown without marginals": (
        lambda: given(event_transmat=np.eye(2)).score([[0.0]], events=["z"]),
        "missing and unseen event types cannot be scored",
    ),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_parameters_that_are_no_model(kind):
    call, message = GIVEN[kind]
    with pytest.raises(ValueError, match=message):
        call()


def test_an_hmm_takes_one_number_for_all_states():
    one = HMM.from_parameters([0.5, 0.5], np.eye(2), [("gamma", {"shape": [1.0, 2.0], "scale": 1.0})])
    each = HMM.from_parameters([0.5, 0.5], np.eye(2), [("gamma", {"shape": [1.0, 2.0], "scale": [1.0, 1.0]})])
    assert one.score([[1.0], [2.0]]) == each.score([[1.0], [2.0]])


def test_an_hmm_is_a_pohmm_of_one_type():
    truth = Truth.random(np.random.default_rng(8), m=1, n_states=3)
    emission = [
        (family, {name: values[0] for name, values in params.items()}) for family, params in truth.emission
    ]
    model = HMM.from_parameters(truth.start[0], truth.trans[0, 0], emission)
    x = random_values(np.random.default_rng(9), FAMILIES, 5)
    assert model.score(x, events=list("abcde")) == pytest.approx(truth.log_likelihood(x, [0] * 5), rel=1e-12)
