"""How far the goodness-of-fit test can be trusted: its size where the model is right, its power where not.

Data are drawn from models that were fitted to real users, along their own event sequences, so that the truth
is known and is like typing. Fable gives short samples, essay long ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from keydyn.model import Sequences, surrogates
from keydyn.model.arrays import Floats
from keydyn.studies.goodness import LEVEL, outcome
from keydyn.studies.intervals import intervals_by_user, stream
from keydyn.studies.patterns import MODELS, pattern

Progress = Callable[[int], object]

P_VALUES = ("p_value", "p_one_sided", "p_double")
# Models that are wrong for data of two log-normal states.
WRONG: dict[str, dict[str, Any]] = {
    "one state": {"n_states": 1},
    "exponential": {"emission": "exponential"},
    "normal": {"emission": "normal"},
}


def user_calibration(
    sequences: Sequences,
    dataset: str,
    user: Any,
    model: str,
    changes: Mapping[str, Any] | None = None,
    repeat: int = 0,
    n_surrogates: int = 100,
    n_second: int = 1,
    seed: int = 0,
    n_jobs: int | None = None,
) -> dict[str, Any]:
    """The test on data drawn from a model fitted to this user.

    Tested is a model of the same settings, so that the hypothesis is true, or, with `changes`, a wrong one.
    """
    generator = stream(seed, "calibration", dataset, user, model, repeat)
    fitted = surrogates.refit(pattern(model, "recommended"), [sequences], n_jobs)[0]
    drawn = surrogates.draw(fitted._parameters, sequences, generator).sequences
    found = pattern(model, "recommended", **(changes or {})).goodness_of_fit(
        drawn, n_surrogates=n_surrogates, n_second=n_second, random_state=generator, n_jobs=n_jobs
    )
    keys = {"dataset": dataset, "user": user, "repeat": repeat, "model": model, "events": sequences.n_events}
    return keys | outcome(found)


def calibration(
    keystrokes: pd.DataFrame,
    dataset: str,
    models: Sequence[str] = MODELS,
    repeats: int = 1,
    n_surrogates: int = 100,
    n_second: int = 1,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """P-values where the hypothesis is true; `progress` is called with the number of tests done."""
    rows: list[dict[str, Any]] = []
    for user, sequences in intervals_by_user(keystrokes).items():
        for model in models:
            for repeat in range(repeats):
                row = user_calibration(
                    sequences, dataset, user, model, None, repeat, n_surrogates, n_second, seed, n_jobs
                )
                rows.append(row)
                if progress is not None:
                    progress(len(rows))
    return pd.DataFrame(rows)


def power(
    keystrokes: pd.DataFrame,
    dataset: str,
    models: Sequence[str] = MODELS,
    wrong: Mapping[str, Mapping[str, Any]] = WRONG,
    n_surrogates: int = 100,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """P-values where the hypothesis is wrong, `hypothesis` saying in what."""
    rows: list[dict[str, Any]] = []
    for user, sequences in intervals_by_user(keystrokes).items():
        for model in models:
            for name, changes in wrong.items():
                row = user_calibration(
                    sequences, dataset, user, model, changes, 0, n_surrogates, 0, seed, n_jobs
                )
                rows.append(row | {"hypothesis": name})
                if progress is not None:
                    progress(len(rows))
    return pd.DataFrame(rows)


def calibration_table(tests: pd.DataFrame) -> pd.DataFrame:
    """For each p-value: its distance from uniform, its mean, and the actual size at 0.05, with chance beside.

    `ks_distance` is the largest |share of p ≤ u − u| over the values that p can take; a uniform p exceeds
    `ks_by_chance` in one case of twenty. `size_error` is the standard error of a size of 0.05.
    """
    rows = []
    for (dataset, model), own in tests.groupby(["dataset", "model"], sort=False):
        for kind in P_VALUES:
            p = own[kind].dropna().to_numpy(dtype=np.float64)
            if len(p) == 0:
                continue
            rows.append(
                {
                    "dataset": dataset,
                    "model": model,
                    "p": kind,
                    "tests": len(p),
                    "surrogates": int(own["surrogates"].max()),
                    "mean": float(p.mean()),
                    "size": float(np.mean(p <= LEVEL)),
                    "size_error": float(np.sqrt(LEVEL * (1.0 - LEVEL) / len(p))),
                    "ks_distance": distance_from_uniform(p, int(own["surrogates"].max())),
                    "ks_by_chance": float(1.358 / np.sqrt(len(p))),
                }
            )
    return pd.DataFrame(rows)


def power_table(tests: pd.DataFrame) -> pd.DataFrame:
    """The share of wrong hypotheses that are rejected at 0.05, one- and two-sided."""
    table = tests.assign(
        two_sided=tests["p_value"] <= LEVEL, one_sided=tests["p_one_sided"] <= LEVEL
    ).groupby(["dataset", "model", "hypothesis"], sort=False)
    return table.agg(
        tests=("user", "size"), two_sided=("two_sided", "mean"), one_sided=("one_sided", "mean")
    ).reset_index()


def distance_from_uniform(p: Floats, n_surrogates: int) -> float:
    """Kolmogorov and Smirnov's distance of p-values from the uniform distribution on k/(S + 1)."""
    steps = np.arange(1, n_surrogates + 2) / (n_surrogates + 1)
    # A p-value is a whole number of steps but for rounding.
    below = np.searchsorted(np.sort(p), steps + 1e-9) / len(p)
    return float(np.max(np.abs(below - steps)))
