"""Scores straight from values and events, against those of the lattice."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn import POHMM, Sequences
from keydyn.model.ask.inference import Inference
from tests.model.enumeration import random_values


@pytest.mark.parametrize("smoothing", [None, "frequency", 0.3])
@pytest.mark.parametrize("n_states", [1, 2, 3])
def test_compiled_scores_are_those_of_the_lattice(n_states, smoothing):
    """Known, unknown and missing types, pairs never seen, missing values, a floor; sequence by sequence."""
    rng = np.random.default_rng(7)
    families = ["lognormal", "student"]
    X = random_values(rng, families, 60, missing=0.1)
    kind = {"smoothing": smoothing, "n_states": n_states, "emission": families}
    for changes in ({}, {"density_floor": 1e-2}, {"transition_weights": "published"}):
        model = POHMM(**kind, **changes).fit(X, events=rng.choice(list("abcd"), 60), lengths=[20, 40])
        # Far from everything: densities that underflow, and the careful way.
        asked = X.copy()
        asked[5, 1] = 1e8
        query = Sequences.from_arrays(asked, rng.choice([*"abcdefg", None], 60), [1, 9, 50])
        for ask in ("score_sequences", "score_samples"):
            found, expected = getattr(model, ask)(query), getattr(Inference, ask)(model, query)
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
