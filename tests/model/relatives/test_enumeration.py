"""Each relative against the enumeration of all paths: likelihood, posteriors, ξ, filter, Viterbi."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.model.relatives.labels import labelled
from keydyn.model.theta import lattice as lattices
from tests.model.relatives import cases

KINDS = {
    "context": lambda rng: cases.context(rng),
    "context, three states": lambda rng: cases.context(rng, m=3),
    "context, emission only": lambda rng: cases.context(rng, step_edges=None),
    "context, transitions only": lambda rng: cases.context(rng, emission_edges=None),
    "partly, lines": cases.partly_lines,
    "partly, lines, three states": lambda rng: cases.partly_lines(rng, m=3),
    "partly, lines, impossible steps": lambda rng: cases.partly_lines(rng, zeros=True),
    "partially": cases.partially,
    "partially, visibility given": lambda rng: cases.partially(rng, observed=None),
    "partially, two states": lambda rng: cases.partially(rng, m=2),
    "partially, labels always right": lambda rng: cases.partially(rng, true=1.0),
}


@pytest.fixture(params=KINDS, scope="module")
def asked(request):
    """A model, its truth, three sequences and what goes with them."""
    rng = np.random.default_rng(sum(map(ord, request.param)))
    model, truth = KINDS[request.param](rng)
    lengths = [6, 1, 5]
    x = cases.values(rng, sum(lengths))
    given = {}
    if request.param.startswith("partially"):
        given["labels"] = cases.labels(rng, len(x), truth.names)
    parts = np.split(np.arange(len(x)), np.cumsum(lengths)[:-1])
    return model, truth, x, lengths, parts, given


def paths_of(truth, x, given, rows):
    return truth.paths(x[rows], *[given["labels"][rows]] if given else [])


def test_likelihood(asked):
    """Every event's own share too: ln P of the first n events, less that of the first n − 1."""
    model, truth, x, lengths, parts, given = asked
    expected = [paths_of(truth, x, given, rows).log_likelihood() for rows in parts]
    assert model.score(x, lengths=lengths, **given) == pytest.approx(sum(expected), abs=1e-10)
    np.testing.assert_allclose(model.score_sequences(x, lengths=lengths, **given), expected, atol=1e-10)
    shares = []
    for rows in parts:
        so_far = [0.0] + [
            paths_of(truth, x, given, rows[:n]).log_likelihood() for n in range(1, len(rows) + 1)
        ]
        shares.extend(np.diff(so_far))
    np.testing.assert_allclose(model.score_samples(x, lengths=lengths, **given), shares, atol=1e-10)


def test_states(asked):
    model, truth, x, lengths, parts, given = asked
    smoothed = np.concatenate([paths_of(truth, x, given, rows).states() for rows in parts])
    np.testing.assert_allclose(model.predict_proba(x, lengths=lengths, **given), smoothed, atol=1e-12)
    np.testing.assert_array_equal(model.predict(x, lengths=lengths, **given), smoothed.argmax(axis=1))
    filtered = [
        paths_of(truth, x, given, rows[:n]).states()[-1] for rows in parts for n in range(1, len(rows) + 1)
    ]
    np.testing.assert_allclose(model.filter_proba(x, lengths=lengths, **given), filtered, atol=1e-12)


def test_pairs_of_states(asked):
    """ξ, summed over the steps that use each transition table."""
    model, truth, x, _, parts, given = asked
    for rows in parts:
        sequences = labelled(x[rows], given["labels"][rows], None) if given else x[rows]
        lattice = model._lattice(sequences, None, None)
        found = lattices.posterior(lattice).transitions
        expected = np.zeros_like(found)
        for n, pair in enumerate(paths_of(truth, x, given, rows).pairs()):
            expected[lattice.walk.steps[n + 1]] += pair
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_viterbi(asked):
    model, truth, x, lengths, parts, given = asked
    log_probability, states = model.decode(x, lengths=lengths, **given)
    for s, rows in enumerate(parts):
        path, value = paths_of(truth, x, given, rows).best()
        assert log_probability[s] == pytest.approx(value, abs=1e-10)
        assert tuple(states[rows]) == path
