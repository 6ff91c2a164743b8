"""Which keys and features speak for a claim, and which against."""

from __future__ import annotations

import numpy as np
import pandas as pd

from keydyn.arrays import Floats
from keydyn.population.features import Observations
from keydyn.population.parameters import Parameters


def explained(known: Parameters, seen: Observations, terms: Floats, of_anyone: Floats) -> pd.DataFrame:
    """Terms (N, F) under the template and under anyone, summed by key and feature; strongest first."""
    vocabulary = np.append(known.cells.vocabulary.astype(object), [None])
    there = np.isfinite(seen.values)
    parts = []
    for f, feature in enumerate(known.features):
        rows = there[:, f]
        evidence = terms[rows, f] - of_anyone[rows, f]
        parts.append(
            pd.DataFrame(
                {
                    "key": vocabulary[seen.codes[rows]],
                    "feature": feature,
                    "count": 1,
                    "log_likelihood": terms[rows, f],
                    "evidence": evidence,
                }
            )
        )
    table = pd.concat(parts).groupby(["key", "feature"], sort=False, dropna=False).sum().reset_index()
    order = np.argsort(-np.abs(table["evidence"].to_numpy()), kind="stable")
    return table.iloc[order].reset_index(drop=True)
