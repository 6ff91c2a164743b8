"""What the model sees: neighbours within samples, missing values, words; cells and effects, written again."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keydyn.keystrokes.samples import Samples
from keydyn.population.cells import (
    N_CONTEXTS,
    Cells,
    Contexts,
    Observations,
    WideEffects,
    context_codes,
    feature_order,
    observations,
)
from tests.population.simulated import people

NO_PAIRS = np.array([], dtype=np.int64)


def seen(texts, n_features=2, values=None):
    """Samples whose keys have these codes."""
    codes = np.array([code for text in texts for code in text], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in texts])])
    values = np.zeros((len(codes), n_features)) if values is None else values
    return Observations(values, codes, offsets, np.ones(n_features, dtype=bool))


def cells_of(names, n_features=2, before=NO_PAIRS, after=NO_PAIRS):
    return Cells(np.array(names), n_features, np.array(before), np.array(after))


texts = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=4)


@given(texts)
def test_neighbours_are_those_of_the_sample(texts):
    around = seen(texts).around(cells_of(["a", "b", "c"]).spaces)
    for step, found in ((-2, around.two_before), (-1, around.before), (0, around.key), (1, around.after)):
        expected = [
            text[n + step] if 0 <= n + step < len(text) else 3 for text in texts for n in range(len(text))
        ]
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(around.position, [n for text in texts for n in range(len(text))])


@given(texts)
def test_pairs_are_of_known_neighbours_within_the_sample(texts):
    cells = cells_of(["a", "b", "c"])
    ending, beginning = cells.pair_codes(seen(texts).around(cells.spaces))
    pairs = [
        [one * 4 + other if one < 3 and other < 3 else -1 for one, other in pairwise([3, *text, 3])]
        for text in texts
    ]
    assert ending.tolist() == [pair for of_text in pairs for pair in of_text[:-1]]
    assert beginning.tolist() == [pair for of_text in pairs for pair in of_text[1:]]


def test_a_word_begins_after_a_space():
    found = seen([[0, 0, 1, 0, 0], [0, 1, 0]]).around(cells_of(["a", "space"]).spaces)
    np.testing.assert_array_equal(found.in_word, [0, 1, 2, 0, 1, 0, 1, 0])
    assert (seen([[0, 0]]).around(cells_of(["a", "b"]).spaces).in_word == -1).all()


@pytest.mark.parametrize("first", ["median", "missing"])
def test_first_intervals_are_missing_however_they_are_filled(first):
    samples = Samples.of(people(n_people=2, n_samples=2, n_keys=5), first=first)
    places = cells_of(samples.sequences.event_types).places(samples.sequences.event_types)
    found = observations(samples, feature_order(samples), places)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(found.values[:, 0])), [0, 5, 10, 15])
    np.testing.assert_allclose(np.exp(found.values[1, 0]), samples.sequences.X[1, 1])


def contexts_of(text, n, m, in_word):
    """The contexts of the interval and of the hold of event n, as `population.md` lists them."""
    at = [text[k] if 0 <= k < len(text) else m for k in range(n - 2, n + 2)]
    known = [code < m for code in at]
    alone = [code if ok else -1 for code, ok in zip(at, known, strict=True)]
    three = (at[1] * m + at[2]) * m + at[3] if all(known[1:]) else -1
    gap = at[0] * m + at[2] if known[0] and known[2] else -1
    position = [min(n, 40), min(in_word, 15)]
    return [*position, alone[3], gap, three], [*position, alone[1], three, gap]


@given(texts, st.integers(2, 3), st.integers(0, 1000))
def test_cells_and_effects_as_written_again(texts, n_features, seed):
    """y = (x − location) / scale − Σ effects, in the cell of the pair if it has one, else of the key."""
    random, m = np.random.default_rng(seed), 3
    pairs = [np.flatnonzero(random.random((m + 1) * m) < 0.5) for _ in range(2)]
    pairs = [codes[codes % (m + 1) < m] for codes in pairs]
    cells = cells_of(["a", "b", "space"], n_features, *pairs)
    sizes = [41, 16, m, m**2, m**3], [41, 16, m, m**3, m**2]
    codes = tuple(tuple(np.flatnonzero(random.random(size) < 0.6) for size in own) for own in sizes)
    codes += ((),) * (n_features - 2)
    effects = tuple(tuple(random.normal(size=len(one)) for one in own) for own in codes)
    location, scale = random.normal(size=cells.n_cells), random.uniform(0.5, 2.0, cells.n_cells)
    values = random.normal(size=(sum(map(len, texts)), n_features))
    observed = seen(texts, n_features, values)
    around = observed.around(cells.spaces)
    contexts = Contexts.of(cells, (location, scale), WideEffects(codes, effects))
    values[random.random(values.shape) < 0.1] = np.nan
    logs = np.arange(n_features) < 2
    y, cell, shift = contexts.standardised(values, around, logs)
    listed, row = context_codes(around, m), 0
    for text in texts:
        in_word = 0
        for n, key in enumerate(text):
            in_word = 0 if n == 0 or text[n - 1] == 2 else in_word + 1
            before, after = text[n - 1] if n else m, text[n + 1] if n + 1 < len(text) else m
            own = contexts_of(text, n, m, in_word)
            for f in range(n_features):
                pair = (key, after) if f == 1 else (before, key)
                code, table = pair[0] * (m + 1) + pair[1], cells.pairs[f].tolist()
                c = f * (m + 1) + key
                if max(pair) < m and code in table:
                    earlier = sum(len(cells.pairs[g]) for g in range(f))
                    c = n_features * (m + 1) + earlier + table.index(code)
                total = 0.0
                for k in range(N_CONTEXTS if f < 2 else 0):
                    assert listed[f, k, row] == own[f][k]
                    known = codes[f][k].tolist()
                    total += effects[f][k][known.index(own[f][k])] if own[f][k] in known else 0.0
                assert cell[row, f] == c
                x = values[row, f]
                assert y[row, f] == pytest.approx((x - location[c]) / scale[c] - total, nan_ok=True)
                # The density of what was measured: y = (ln t − …) / scale, or (x − …) / scale.
                expected = 0.0 if np.isnan(x) else -np.log(scale[c]) - (x if logs[f] else 0.0)
                assert shift[row, f] == pytest.approx(expected)
            row += 1
