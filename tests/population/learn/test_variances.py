"""Variances are recovered from simulated people."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.population.cells import Cells
from keydyn.population.learn.variances import (
    LEAST_TEMPO,
    TEMPO_FACTOR,
    cell_and_key_variances,
    initial_variances,
    tempo_variance,
    tempos,
)


@pytest.mark.parametrize(("cell", "key"), [(0.4, 0.1), (0.1, 0.3)])
def test_cell_and_key_variances_are_recovered(cell, key):
    cells = Cells(np.array(list("abcdef")), 2, np.arange(0, 40), np.arange(0, 40))
    cells_typed = cells.key % cells.n_codes < 6
    random = np.random.default_rng(0)
    V = random.normal(0.0, 0.4, (cells.n_cells, 2))
    variances, means = [], []
    for _ in range(150):
        weight = random.uniform(1.0, 8.0, cells.n_cells) * cells_typed
        noise = np.full(cells.n_cells, 0.5)
        mean = V @ random.normal(size=2)
        mean += random.normal(0.0, np.sqrt(key), cells.n_keys)[cells.key]
        mean += random.normal(0.0, np.sqrt(cell + noise / np.maximum(weight, 1.0)))
        variances.append(np.where(weight > 0, noise / np.maximum(weight, 1.0), np.inf))
        means.append(mean)
    found_cell, found_key = cell_and_key_variances(
        np.array(variances), np.array(means), cells, V, initial_variances(2)
    )
    # 150 people with some 40 cells and 6 keys: standard errors of 2 and 8 per cent.
    np.testing.assert_allclose(found_cell, cell, rtol=0.1)
    np.testing.assert_allclose(found_key, key, rtol=0.25)


def test_tempo_variance_is_recovered():
    """Beyond noise, with its stated factor; without any tempo it is the least there is."""
    random = np.random.default_rng(1)
    for tempo in (0.3, 0.0):
        residuals = [
            random.standard_t(4, (60, 2)) + random.normal(0.0, np.sqrt(tempo), 2) for _ in range(2000)
        ]
        offsets = np.arange(0, 60 * 2000 + 1, 60)
        found = tempo_variance(*tempos(np.concatenate(residuals), offsets, 4.0), np.full(2, 9.0))
        if tempo:
            np.testing.assert_allclose(found, TEMPO_FACTOR * tempo, rtol=0.1)
        else:
            assert (found < 0.02).all()
            assert (found >= LEAST_TEMPO).all()


def test_tempo_of_no_samples_is_the_fallback():
    for lengths in ([], [3] * 5):
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        missing = np.full((offsets[-1], 2), np.nan)
        found = tempo_variance(*tempos(missing, offsets, 4.0), np.array([0.1, 0.2]))
        np.testing.assert_array_equal(found, [0.1, 0.2])
