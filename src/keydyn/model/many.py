"""Many models at once: users, folds, surrogates, restarts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from joblib import Parallel, delayed
from sklearn.base import clone

from keydyn.model.pohmm import POHMM
from keydyn.model.sequences import Sequences

Model = TypeVar("Model", bound=POHMM)


def fit_many(
    model: Model,
    data: Sequence[Sequences | Any],
    n_jobs: int | None = None,
    *,
    sample_weight: Sequence[Any] | None = None,
) -> list[Model]:
    """A clone of `model` fitted to each item of `data`, in the same order.

    `n_jobs` threads work at once (None for one, −1 for all cores); the result does not depend on it. An
    error names the item it came from. `sample_weight`, if given, has one array of weights an item.
    """
    weights = [None] * len(data) if sample_weight is None else list(sample_weight)
    if len(weights) != len(data):
        raise ValueError(f"sample_weight has {len(weights)} items, data has {len(data)}")
    work = (delayed(_fit_one)(model, item, weights[k], k) for k, item in enumerate(data))
    fitted: list[Model] = Parallel(n_jobs=n_jobs, prefer="threads")(work)
    return fitted


def _fit_one(model: Model, item: Any, weights: Any, number: int) -> Model:
    fresh: Model = clone(model)
    try:
        return fresh.fit(item, sample_weight=weights)
    except (ValueError, TypeError) as error:
        raise ValueError(f"model {number}: {error}") from error
    except Exception as error:
        error.add_note(f"model {number}")
        raise
