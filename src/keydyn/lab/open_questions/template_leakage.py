"""What a stolen template gives away of what its owner typed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from keydyn.arrays import Floats
from keydyn.keystrokes.samples import Samples
from keydyn.population import PopulationModel, Template
from keydyn.population.parameters import Parameters

# Reweighting steps of least absolute deviations, and deviations that are none.
ITERATIONS, NEGLIGIBLE = 40, 1e-6


def template_leakage(population: PopulationModel, samples: Samples) -> pd.DataFrame:
    """Which pairs of keys a template's owner typed while enrolling, told by the template: one row per user.

    The mean of a pair that was not typed is what the population expects of it given all else, and follows
    from few numbers; that of a typed pair does not. `found` is the share of typed pairs among as many pairs
    that are the least explained, `chance` that of typed pairs among all. `auc` is the probability that a
    typed pair is less explained than one that was not typed.
    """
    known = population.parameters
    pairs = slice(known.cells.n_keys, known.cells.n_cells)
    rows: list[dict[str, Any]] = []
    for user in dict.fromkeys(samples.users.tolist()):
        own = samples[samples.users == user]
        typed = np.zeros(known.cells.n_cells, dtype=bool)
        seen = known.seen(own)
        y, cell, _ = known.contexts.standardised(seen.values, seen.around(known.cells.spaces))
        typed[cell[np.isfinite(y)]] = True
        there, left = typed[pairs], unexplained(known, population.enrol(own))[pairs]
        least_explained = np.argsort(-left, kind="stable")[: there.sum()]
        rows.append(
            {
                "user": user,
                "keys": int(own.sequences.n_events),
                "auc": float(roc_auc_score(there, left)),
                "found": float(there[least_explained].mean()),
                "chance": float(there.mean()),
            }
        )
    return pd.DataFrame(rows)


def unexplained(known: Parameters, template: Template) -> Floats:
    """(C,) what no z and no effects of keys can explain of a template's means: least absolute deviations."""
    V, cells = known.loadings, known.cells
    design = np.column_stack([V, np.eye(cells.n_keys)[cells.key]])
    left = np.ones(cells.n_cells)
    for _ in range(ITERATIONS):
        weighted = design / np.maximum(left, NEGLIGIBLE)[:, None]
        ridge = NEGLIGIBLE * np.eye(design.shape[1])
        found = np.linalg.solve(weighted.T @ design + ridge, weighted.T @ template.mean)
        left = np.abs(template.mean - design @ found)
    return left
