"""What the model sees: neighbours within samples, missing values, words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keydyn.keystrokes.samples import Samples
from keydyn.population.features import Observations, feature_order, observations
from tests.population.simulated import people


def seen(codes, lengths):
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    nothing = np.zeros((len(codes), 2))
    return Observations(nothing, np.array(codes, dtype=np.int64), offsets, nothing)


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=1, max_size=4))
def test_neighbours_are_those_of_the_sample(texts):
    flat = [code for text in texts for code in text]
    observed = seen(flat, [len(text) for text in texts])
    for step in (-2, -1, 1):
        expected = [
            text[n + step] if 0 <= n + step < len(text) else 9 for text in texts for n in range(len(text))
        ]
        np.testing.assert_array_equal(observed.neighbour(step, 9), expected)


def test_a_word_begins_after_a_space():
    keys = np.array(["a", "space"])
    found = seen([0, 0, 1, 0, 0, 0, 1, 0], [5, 3]).around(keys)
    np.testing.assert_array_equal(found.in_word, [0, 1, 2, 0, 1, 0, 1, 0])
    assert (seen([0, 0], [2]).around(np.array(["a", "b"])).in_word == -1).all()


@pytest.mark.parametrize("first", ["median", "missing"])
def test_first_intervals_are_missing_however_they_are_filled(first):
    samples = Samples.of(people(n_people=2, n_samples=2, n_keys=5), first=first)
    found = observations(samples, feature_order(samples), samples.sequences.event_types)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(found.values[:, 0])), [0, 5, 10, 15])
    np.testing.assert_allclose(np.exp(found.values[1, 0]), samples.sequences.X[1, 1])
