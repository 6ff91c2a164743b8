"""λ, κ, η and ω are recovered from simulated people, from few samples as from many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from keydyn.population.cells import Cells
from keydyn.population.learn.components import Components, estimated, joined
from keydyn.population.learn.groups import Held
from keydyn.population.learn.variances import held_out_steps, initial_variances
from keydyn.population.person.fitting import Prior

KEYS = 12
PAIRS = np.array([before * (KEYS + 1) + key for before in range(KEYS) for key in range(KEYS)])
CELLS = Cells(np.array([f"k{k:02}" for k in range(KEYS)]), 2, PAIRS, PAIRS)
# Of intervals and holds; the noise is that of Student's t with four degrees of freedom.
CELL, KEY, TEMPO, LEVEL = (np.array(two) for two in ((0.06, 0.1), (0.02, 0.05), (0.03, 0.08), (0.3, 0.2)))
NOISE = np.array([0.5, 0.4])


def drawn(n_people, n_samples, loadings, random, n_keys=47):
    """What `n_people` type: y, cells, offsets, classes and where people begin. Nothing of ours draws it."""
    y, cells = [], []
    for _ in range(n_people):
        z = random.normal(size=loadings.shape[1])
        level = random.normal(0.0, np.sqrt(LEVEL))
        own_key = random.normal(0.0, np.sqrt(KEY)[:, None], (2, KEYS))
        own_cell = random.normal(0.0, np.sqrt(CELL)[:, None, None], (2, KEYS, KEYS))
        scale = np.sqrt(NOISE) * np.exp(random.normal(0.0, 0.1, 2))
        for _ in range(n_samples):
            # Some keys are frequent, others rare.
            typed = np.minimum(random.geometric(0.15, n_keys) - 1, KEYS - 1)
            tempo = random.normal(0.0, np.sqrt(TEMPO))
            before, after = np.roll(typed, 1), np.roll(typed, -1)
            pairs = [before * KEYS + typed, typed * KEYS + after]
            of_sample, in_cells = np.empty((n_keys, 2)), np.empty((n_keys, 2), dtype=np.int64)
            for f in range(2):
                in_cells[:, f] = CELLS.begins[f] + pairs[f]
                other = (before, after)[f]
                effect = (
                    loadings[in_cells[:, f]] @ z + level[f] + own_key[f, typed] + own_cell[f, typed, other]
                )
                of_sample[:, f] = effect + scale[f] * (tempo[f] + random.standard_t(4, n_keys))
            of_sample[0, 0] = np.nan
            y.append(of_sample)
            cells.append(in_cells)
    offsets = np.arange(0, n_keys * n_people * n_samples + 1, n_keys)
    begins = np.arange(0, n_people * n_samples + 1, n_samples)
    classes = np.zeros(offsets[-1], dtype=np.int64)
    return Held((np.concatenate(y), np.concatenate(cells), offsets, classes, begins))


def recovered(n_people, n_samples, seed):
    random = np.random.default_rng(seed)
    V = random.normal(0.0, 0.25, (CELLS.n_cells, 2))
    people = drawn(n_people, n_samples, V, random)
    variances = initial_variances(2)
    start = Components(variances.cell, variances.key, variances.tempo, np.full(2, 0.05))
    for _ in range(2):
        prior = Prior.of(CELLS, V, variances)
        steps = held_out_steps(prior, (people, np.ones(n_people, dtype=bool)))
        start = estimated(joined([steps], 4.0), prior.differences, start)
        variances = replace(variances, cell=start.cell, key=start.key, tempo=start.tempo)
    return start


# People and samples of each: about as much is known from few samples of many people.
CASES = [(240, 2), (160, 3), (120, 5), (80, 10)]
# Standard errors of λ, κ, η and ω in these cases, relative, from repeated draws: the largest of each.
ERRORS = np.array([0.09, 0.14, 0.14, 0.14])[:, None]


@pytest.fixture(scope="module")
def ratios():
    """(4, 4, 2) estimates divided by what was drawn, by case, variance and feature."""
    truth = np.stack([CELL, KEY, TEMPO, LEVEL])
    return np.array([np.stack(recovered(*case, seed=case[1])) / truth for case in CASES])


@pytest.mark.parametrize("case", range(len(CASES)), ids=[f"{n} samples" for _, n in CASES])
def test_variances_are_recovered(ratios, case):
    """Within four standard errors."""
    assert (np.abs(ratios[case] - 1) < 4 * ERRORS).all()


def test_no_variance_is_biased(ratios):
    """The mean over cases and features, of eight draws, within three of its standard errors."""
    assert (np.abs(ratios.mean(axis=(0, 2)) - 1) < 3 * ERRORS[:, 0] / np.sqrt(8)).all()


def test_a_feature_without_values_keeps_its_variances():
    random = np.random.default_rng(0)
    y, *others = drawn(8, 2, np.zeros((CELLS.n_cells, 1)), random).load()
    y[:, 1] = np.nan
    variances = initial_variances(2)
    prior = Prior.of(CELLS, np.zeros((CELLS.n_cells, 1)), variances)
    start = Components(variances.cell, variances.key, variances.tempo, np.full(2, 0.05))
    steps = held_out_steps(prior, (Held((y, *others)), np.ones(8, dtype=bool)))
    found = estimated(joined([steps], 4.0), prior.differences, start)
    for estimate, before in zip(found, start, strict=True):
        assert estimate[0] != before[0]
        assert estimate[1] == before[1]


def test_a_single_strange_sample_hardly_matters():
    """One of 200 samples is 30 deviations slower, on another keyboard say.

    Its square alone would multiply η by more than five. It counts for three deviations, as do the person's
    other four samples, which seem fast beside it: η less than doubles.
    """
    random = np.random.default_rng(1)
    V = np.zeros((CELLS.n_cells, 1))
    y, *others = drawn(40, 5, V, random).load()
    found = []
    for strange in (0.0, 30 * np.sqrt(TEMPO[0] * NOISE[0])):
        y[:47, 0] += strange
        variances = initial_variances(2)
        prior = Prior.of(CELLS, V, variances)
        start = Components(variances.cell, variances.key, variances.tempo, np.full(2, 0.05))
        steps = held_out_steps(prior, (Held((y.copy(), *others)), np.ones(40, dtype=bool)))
        found.append(estimated(joined([steps], 4.0), prior.differences, start).tempo[0])
    assert found[1] < 2 * found[0]


def test_no_people_leave_everything_as_it_is():
    start = Components(*np.full((4, 2), 0.1))
    prior = Prior.of(CELLS, np.zeros((CELLS.n_cells, 1)), initial_variances(2))
    people = drawn(2, 2, np.zeros((CELLS.n_cells, 1)), np.random.default_rng(0))
    steps = held_out_steps(prior, (people, np.zeros(2, dtype=bool)))
    np.testing.assert_array_equal(estimated(joined([steps], 4.0), prior.differences, start), start)
