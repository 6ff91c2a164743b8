"""Many models at once: users, folds, surrogates, restarts."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, TypeVar

from joblib import Parallel, delayed
from sklearn.base import clone

from keydyn.model.emissions import Family
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
    pattern = clone(model)
    work = (delayed(_fit_one)(unfitted(pattern), item, weights[k], k) for k, item in enumerate(data))
    fitted: list[Model] = Parallel(n_jobs=n_jobs, prefer="threads")(work)
    return fitted


def unfitted(pattern: Model) -> Model:
    """A clone of an unfitted model; where its parameters cannot be changed in place, they are shared."""
    plain = all(_is_plain(value) for value in vars(pattern).values())
    fresh: Model = copy(pattern) if plain else clone(pattern)
    return fresh


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, (bool, int, float, str, Family))


def _fit_one(fresh: Model, item: Any, weights: Any, number: int) -> Model:
    try:
        return fresh.fit(item, sample_weight=weights)
    except (ValueError, TypeError) as error:
        raise ValueError(f"model {number}: {error}") from error
    except Exception as error:
        error.add_note(f"model {number}")
        raise
