"""Fitting and scoring of many models at once, such as those of users, folds or surrogates."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from keydyn.arrays import Floats
from keydyn.model.data.fit_settings import FitSettings
from keydyn.model.data.sequences import Sequences, as_sequences
from keydyn.model.families.compiled import custom_features
from keydyn.model.families.family import Family, families_of
from keydyn.model.fit.batch import Batch
from keydyn.model.fit.estimator import Estimator, check_values, weighted
from keydyn.model.fit.fits import Fits
from keydyn.model.fit.threads import check_wanted, done_in_threads

Model = TypeVar("Model", bound=Estimator)

# Below this number of models over the same events, lanes are no faster than one model after the other.
FEW = 96
# Most models in one piece of work for a thread.
TOGETHER = 256
# Fewest events in one piece of work for a thread.
WORTH_A_THREAD = 40_000


def fit_many(
    model: Model,
    data: Sequence[Sequences | Any],
    n_jobs: int | None = None,
    *,
    sample_weight: Sequence[Any] | None = None,
) -> list[Model]:
    """Fit a clone of `model` to each item of `data`; return the models in the same order.

    `n_jobs` threads work at once (None for one, −1 for all cores); the result does not depend on it. An
    error names the item it came from. `sample_weight`, if given, has one array of weights per item.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import HMM, Sequences, fit_many
    >>> rng = np.random.default_rng(0)
    >>> people = [Sequences.from_arrays(rng.lognormal(5.0 + i, 0.3, (100, 1))) for i in range(3)]
    >>> [round(float(model.emission_[0].loc.mean())) for model in fit_many(HMM(n_states=1), people)]
    [5, 6, 7]
    """
    weights = [None] * len(data) if sample_weight is None else list(sample_weight)
    if len(weights) != len(data):
        raise ValueError(f"sample_weight has {len(weights)} items, data has {len(data)}")
    pattern = clone(model)
    # Models go to threads in groups: handing over a single one can cost more than fitting it.
    groups = [] if sample_weight is not None else same_events(pattern, data)
    alone = sorted(set(range(len(data))).difference(*groups))
    shared = [group[first : first + TOGETHER] for group in groups for first in range(0, len(group), TOGETHER)]
    work = [
        *(partial(_fit_some, pattern, data, weights, some, True) for some in shared),
        *(
            partial(_fit_some, pattern, data, weights, [alone[k] for k in some], False)
            for some in parts(len(alone), n_jobs, _events_of(data, alone))
        ),
    ]
    fitted: list[Any] = [None] * len(data)
    for numbers, models in done_in_threads(work, n_jobs):
        for number, one in zip(numbers, models, strict=True):
            fitted[number] = one
    _warn_of_those_not_converged(pattern, fitted)
    return fitted


def score_many(models: Sequence[Any], data: Sequences | Any, n_jobs: int | None = None) -> Floats:
    """ln P(x | Ω) of the same sequences under each model, one row per model; `n_jobs` as in `fit_many`."""
    sequences = as_sequences(data)

    def scored(some: range) -> Floats:
        rows = []
        for k in some:
            check_wanted()
            rows.append(models[k].score_sequences(sequences))
        return np.stack(rows)

    work = [partial(scored, some) for some in parts(len(models), n_jobs, sequences.n_events)]
    return np.concatenate([np.empty((0, len(sequences))), *done_in_threads(work, n_jobs)])


def _events_of(data: Sequence[Any], numbers: Sequence[int]) -> float:
    """The average number of events of an item; items that do not tell it count as 1000."""
    return float(np.mean([getattr(data[k], "n_events", 1_000) for k in numbers])) if len(numbers) else 0.0


def same_events(pattern: Estimator, data: Sequence[Any]) -> list[list[int]]:
    """Groups of item numbers that can be fitted in lanes: same event sequences, and no missing values."""
    groups: dict[Any, list[int]] = {}
    if pattern.n_states != 2 or not isinstance(pattern, Estimator) or len(data) < FEW:
        return []
    alike: dict[Any, list[int]] = {}
    for number, item in enumerate(data):
        if isinstance(item, Sequences):
            # A cheap first look: most data differ at the beginning.
            alike.setdefault((item.X.shape, item.codes[:8].tobytes()), []).append(number)
    for numbers in alike.values():
        for number in numbers if len(numbers) >= FEW else ():
            sequences = pattern._as_sequences(data[number], None, None)
            if not np.isnan(sequences.X).any():
                types = tuple(sequences.event_types.tolist())
                key = (sequences.codes.tobytes(), sequences.offsets.tobytes(), types, sequences.n_features)
                groups.setdefault(key, []).append(number)
    return [group for group in groups.values() if len(group) >= FEW]


def parts(n_items: int, n_jobs: int | None, n_events: float) -> list[range]:
    """Runs of item numbers for threads, of about equal length, for items with `n_events` events each.

    A run has enough events that the part done in Python, one thread at a time, is small in comparison.
    """
    n_threads = effective_n_jobs(n_jobs)
    wanted = min(math.ceil(WORTH_A_THREAD / max(n_events, 1.0)), TOGETHER)
    rounds = max(1, math.ceil(n_items / (wanted * n_threads)))
    size = min(TOGETHER, max(1, math.ceil(n_items / (rounds * n_threads))))
    return [range(first, min(first + size, n_items)) for first in range(0, n_items, size)]


def unfitted(pattern: Model, n: int) -> list[Model]:
    """`n` clones of an unfitted model; parameters are shared if all of them are immutable."""
    if not all(_is_plain(value) for value in vars(pattern).values()):
        return [clone(pattern) for _ in range(n)]
    fresh: list[Model] = [object.__new__(type(pattern)) for _ in range(n)]
    for one in fresh:
        one.__dict__.update(vars(pattern))
    return fresh


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, (bool, int, float, str, Family))


def _fit_some(
    pattern: Model, data: Sequence[Any], weights: list[Any], numbers: list[int], shared: bool
) -> tuple[list[int], list[Model]]:
    """Fit some models, in one batch if possible, otherwise one by one; return them with their numbers."""
    models = unfitted(pattern, len(numbers))
    taken = _take_all(pattern, [data[k] for k in numbers])
    if taken is not None:
        try:
            sequences, families, settings = taken
            if shared:
                batch = Batch.shared(sequences, families)
            else:
                together = [weighted(item, weights[k]) for item, k in zip(sequences, numbers, strict=True)]
                batch = Batch.of([item for item, _ in together], [own for _, own in together], families)
            check_values(batch)
            results = Fits(batch, settings).run().results()
        except ValueError:
            # The error is reported below, where that model is fitted alone.
            pass
        else:
            for one, item, result in zip(models, sequences, results, strict=True):
                one._become(item, [result])
            return numbers, models
    return numbers, [_fit_one(one, data[k], weights[k], k) for one, k in zip(models, numbers, strict=True)]


def _take_all(
    pattern: Estimator, items: list[Any]
) -> tuple[list[Sequences], tuple[Family, ...], FitSettings] | None:
    """All items as sequences with the same features, their families, and the settings of the fit.

    None if something is wrong with an item or a setting, or if Python must take part in every iteration.
    """
    if not isinstance(pattern, Estimator) or not all(isinstance(item, Sequences) for item in items):
        return None
    if pattern.n_init != 1 or pattern.verbose or pattern.callback is not None:
        return None
    sequences = [pattern._as_sequences(item, None, None) for item in items]
    if len({item.n_features for item in sequences}) != 1:
        return None
    try:
        families = families_of(pattern.emission, sequences[0].n_features)
        settings = pattern._settings(sequences[0].n_features)
    except ValueError:
        return None
    return None if custom_features(families) else (sequences, families, settings)


def _fit_one(fresh: Model, item: Any, weights: Any, number: int) -> Model:
    try:
        if isinstance(fresh, Estimator):
            return fresh._estimate(item, None, None, weights)
        return fresh.fit(item, sample_weight=weights)
    except (ValueError, TypeError) as error:
        raise ValueError(f"model {number}: {error}") from error
    except Exception as error:
        error.add_note(f"model {number}")
        raise


def _warn_of_those_not_converged(pattern: Estimator, models: Sequence[Any]) -> None:
    """Warn once for all models, as there may be many. Relatives of the POHMM give their own warnings."""
    ours = isinstance(pattern, Estimator)
    stopped = [number for number, one in enumerate(models) if ours and one.stop_reason_ == "max_iter"]
    if stopped:
        warnings.warn(
            f"{len(stopped)} of {len(models)} models had not converged after max_iter={pattern.max_iter} "
            f"iterations, the first of them model {stopped[0]}: raise max_iter or tol, or check that "
            f"the data support {pattern.n_states} states",
            ConvergenceWarning,
            stacklevel=3,
        )
