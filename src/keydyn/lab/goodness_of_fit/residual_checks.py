"""Forecast residuals of real users: are they standard normal, and independent?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers
from keydyn.lab.frame.compared_models import MODELS, pattern
from keydyn.lab.frame.resuming import in_processes
from keydyn.lab.frame.user_intervals import intervals_by_user
from keydyn.lab.goodness_of_fit.measurements import LEVEL
from keydyn.model import Sequences, check_residuals
from keydyn.model.check import surrogates

SETTINGS = "recommended"


class TypicalUser(NamedTuple):
    """The residuals (N,) of one user by model, and the lengths of the user's samples."""

    dataset: str
    user: Any
    residuals: dict[str, Floats]
    lengths: Integers


def residual_rows(
    keystrokes: pd.DataFrame, dataset: str, models: Sequence[str] = MODELS, n_jobs: int | None = None
) -> Iterator[dict[str, Any]]:
    """The tests of every user's residuals, one row per user and model, as they are done."""
    pieces = [
        {"sequences": sequences, "dataset": dataset, "user": user, "model": model}
        for user, sequences in intervals_by_user(keystrokes).items()
        for model in models
    ]
    return in_processes(user_residuals, pieces, n_jobs)


def user_residuals(sequences: Sequences, dataset: str, user: Any, model: str) -> dict[str, Any]:
    """The tests of one user's residuals under a model with the recommended settings."""
    test = check_residuals(_residuals(sequences, model), sequences.lengths)
    return {
        "dataset": dataset,
        "user": user,
        "model": model,
        "residuals": test.n,
        "mean": test.mean,
        "deviation": test.deviation,
        "ks_statistic": test.ks_statistic,
        "ks_p": test.ks_p,
        "ljung_box_p": test.ljung_box_p,
        "first_autocorrelation": float(test.autocorrelation[0]),
    }


def residual_table(rows: pd.DataFrame) -> pd.DataFrame:
    """For each model: medians over users, and the shares of users whose residuals fail a test at 0.05."""
    grouped = rows.assign(
        not_normal=rows["ks_p"] <= LEVEL, not_independent=rows["ljung_box_p"] <= LEVEL
    ).groupby(["dataset", "model"], sort=False)
    return grouped.agg(
        users=("user", "nunique"),
        deviation=("deviation", "median"),
        ks_distance=("ks_statistic", "median"),
        not_normal=("not_normal", "mean"),
        first_autocorrelation=("first_autocorrelation", "median"),
        not_independent=("not_independent", "mean"),
    ).reset_index()


def typical_user(keystrokes: pd.DataFrame, dataset: str, rows: pd.DataFrame) -> TypicalUser:
    """The user whose residuals under the last model have the median distance from normal."""
    models = list(dict.fromkeys(rows["model"]))
    last_model = rows[rows["model"] == models[-1]].sort_values("ks_statistic", kind="stable")
    wanted = str(last_model["user"].iloc[(len(last_model) - 1) // 2])
    users = intervals_by_user(keystrokes)
    user = next(user for user in users if str(user) == wanted)
    residuals = {model: _residuals(users[user], model) for model in models}
    return TypicalUser(dataset, user, residuals, users[user].lengths)


def _residuals(sequences: Sequences, model: str) -> Floats:
    fitted = surrogates.refit(pattern(model, SETTINGS), [sequences], None)[0]
    return np.asarray(fitted.forecast_residuals(sequences)[:, 0])
