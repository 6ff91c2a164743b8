"""Many models at once: users, folds, surrogates, restarts."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone

from keydyn.model import training
from keydyn.model.emissions import Family
from keydyn.model.estimation import exchange
from keydyn.model.families import Student
from keydyn.model.pohmm import POHMM
from keydyn.model.sequences import Sequences

Model = TypeVar("Model", bound=POHMM)

# Fewer models than this over the same events are as quick one by one; so many go to a thread at a time.
FEW = 12
TOGETHER = 256


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
    groups = [] if sample_weight is not None else same_events(pattern, data)
    alone = sorted(set(range(len(data))).difference(*groups))
    shared = [group[first : first + TOGETHER] for group in groups for first in range(0, len(group), TOGETHER)]
    work = [
        *(delayed(_fit_shared)(pattern, data, some) for some in shared),
        *(
            delayed(_fit_some)(pattern, data, weights, [alone[k] for k in some])
            for some in parts(len(alone), n_jobs)
        ),
    ]
    fitted: list[Any] = [None] * len(data)
    for numbers, models in Parallel(n_jobs=n_jobs, prefer="threads")(work):
        for number, one in zip(numbers, models, strict=True):
            fitted[number] = one
    return fitted


def same_events(pattern: POHMM, data: Sequence[Any]) -> list[list[int]]:
    """Numbers of items that can be fitted in lanes: the same event sequences, and all values there."""
    groups: dict[Any, list[int]] = {}
    if pattern.n_states != 2 or pattern.n_init != 1 or pattern.verbose or pattern.callback is not None:
        return []
    for number, item in enumerate(data):
        if isinstance(item, Sequences):
            sequences = pattern._as_sequences(item, None, None)
            whole = not np.isnan(sequences.X).any()
            if whole and ((sequences.codes >= 0).all() or (sequences.codes < 0).all()):
                types = tuple(sequences.event_types.tolist())
                key = (sequences.codes.tobytes(), sequences.offsets.tobytes(), types, sequences.n_features)
                groups.setdefault(key, []).append(number)
    return [group for group in groups.values() if len(group) >= FEW]


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


def _fit_shared(pattern: Model, data: Sequence[Any], numbers: list[int]) -> tuple[list[int], list[Model]]:
    """Models over the same event sequences; whatever is wrong with one is said where it is fitted alone."""
    fresh = [unfitted(pattern) for _ in numbers]
    try:
        taken = [m._take(data[k], None, None, new=True) for m, k in zip(fresh, numbers, strict=True)]
        sequences, families = [sequences for sequences, _ in taken], taken[0][1]
        settings = pattern._settings(sequences[0].n_features)
    except ValueError:
        return _fit_some(pattern, data, [None] * len(data), numbers)
    if not exchange.is_covered(settings, families) or any(isinstance(f, Student) for f in families):
        return _fit_some(pattern, data, [None] * len(data), numbers)
    values = np.stack([item.X for item in sequences])
    found = exchange.fit_shared_events(values, sequences[0], families, settings)
    models = []
    for m, k, item, result in zip(fresh, numbers, sequences, found, strict=True):
        if result is None:
            models.append(_fit_one(m, data[k], None, k))
        else:
            models.append(m._finish(item, settings, *training.in_order(*result, settings), new=True))
    return numbers, models


def _fit_some(
    pattern: Model, data: Sequence[Any], weights: list[Any], numbers: list[int]
) -> tuple[list[int], list[Model]]:
    return numbers, [_fit_one(unfitted(pattern), data[k], weights[k], k) for k in numbers]


def _fit_one(fresh: Model, item: Any, weights: Any, number: int) -> Model:
    try:
        return fresh.fit(item, sample_weight=weights)
    except (ValueError, TypeError) as error:
        raise ValueError(f"model {number}: {error}") from error
    except Exception as error:
        error.add_note(f"model {number}")
        raise
