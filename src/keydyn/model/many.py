"""Many models at once: users, folds, surrogates, restarts."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, TypeVar

from joblib import Parallel, delayed, effective_n_jobs
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
    # Some models at a time: handing one over to a thread can cost more than fitting it.
    work = (delayed(_fit_some)(pattern, data, weights, some) for some in parts(len(data), n_jobs))
    return [fitted for some in Parallel(n_jobs=n_jobs, prefer="threads")(work) for fitted in some]


def parts(n_items: int, n_jobs: int | None) -> list[range]:
    """Runs of item numbers, eight for each thread so that none waits long for another."""
    size = max(1, n_items // (8 * effective_n_jobs(n_jobs)))
    return [range(first, min(first + size, n_items)) for first in range(0, n_items, size)]


def unfitted(pattern: Model) -> Model:
    """A clone of an unfitted model; where its parameters cannot be changed in place, they are shared."""
    plain = all(_is_plain(value) for value in vars(pattern).values())
    fresh: Model = copy(pattern) if plain else clone(pattern)
    return fresh


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, (bool, int, float, str, Family))


def _fit_some(pattern: Model, data: Sequence[Any], weights: list[Any], some: range) -> list[Model]:
    return [_fit_one(unfitted(pattern), data[k], weights[k], k) for k in some]


def _fit_one(fresh: Model, item: Any, weights: Any, number: int) -> Model:
    try:
        return fresh.fit(item, sample_weight=weights)
    except (ValueError, TypeError) as error:
        raise ValueError(f"model {number}: {error}") from error
    except Exception as error:
        error.add_note(f"model {number}")
        raise
