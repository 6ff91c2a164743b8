"""Which keys and features speak for a claim, and which against."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats
from keydyn.population.features import Observations
from keydyn.population.parameters import Parameters


def explained(
    known: Parameters, seen: Observations, terms: Floats, of_anyone: Floats
) -> dict[str, NDArray[Any]]:
    """Terms (N, F) under the template and under anyone, summed by key and feature; strongest first.

    As columns: `key`, None for unknown ones, `feature`, `count`, `log_likelihood` and `evidence`.
    """
    vocabulary = np.append(known.cells.vocabulary.astype(object), [None])
    F, n_codes = len(known.features), known.cells.n_codes
    # Feature by feature: among equals, whatever was typed first comes first.
    there = np.isfinite(seen.values).T.ravel()
    group = (np.arange(F)[:, None] * n_codes + seen.codes).ravel()[there]
    likelihood, evidence = (values.T.ravel()[there] for values in (terms, terms - of_anyone))
    found, first, place = np.unique(group, return_index=True, return_inverse=True)
    sums = {
        "count": np.bincount(place, minlength=len(found)),
        "log_likelihood": np.bincount(place, likelihood, len(found)),
        "evidence": np.bincount(place, evidence, len(found)),
    }
    order = np.lexsort((first, -np.abs(sums["evidence"])))
    feature = np.array(known.features, dtype=object)[found // n_codes]
    columns = {"key": vocabulary[found % n_codes], "feature": feature, **sums}
    return {name: values[order] for name, values in columns.items()}
