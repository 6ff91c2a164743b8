"""States of a fit are matched with those behind the data."""

from __future__ import annotations

import numpy as np

from keydyn import POHMM
from keydyn.model.check import surrogates
from tests.model.enumeration import Truth


def test_states_are_found_again_type_by_type_whatever_their_numbers():
    """Renumbered posteriors of a model, matched with the states that the model finds."""
    truth = Truth.random(np.random.default_rng(31), m=3, n_states=2, families=("normal",))
    model = POHMM.from_parameters(*truth.arguments())
    X, events, _ = model.sample(200, random_state=1)
    codes, posterior = np.searchsorted(truth.types, events), model.predict_proba(X, events=events)
    order = np.array([[1, 0], [0, 1], [1, 0]])
    # Column order[ω, i] of the renumbered posterior is state i.
    renumbered = np.empty_like(posterior)
    np.put_along_axis(renumbered, order[codes], posterior, axis=1)
    found = surrogates.match_states(codes, 3, posterior.argmax(axis=1), renumbered)
    np.testing.assert_array_equal(found, order)
    # Events of an unknown type count for none.
    codes[::3] = 3
    found = surrogates.match_states(codes, 3, posterior.argmax(axis=1), renumbered)
    np.testing.assert_array_equal(found, order)
