"""Measures goodness of fit of keystroke intervals (Section 5.1): HMM and POHMM, user by user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers
from keydyn.lab.frame.study_data import MODELS, SETTINGS, intervals_by_user, pattern, stream
from keydyn.model import GoodnessOfFit, Sequences, check_residuals
from keydyn.model.check import areas, goodness, surrogates

LEVEL = 0.05
# Published shares of users for whom the model was rejected.
PUBLISHED = {
    ("fable", "hmm"): 0.45,
    ("fable", "pohmm"): 0.22,
    ("essay", "hmm"): 1.00,
    ("essay", "pohmm"): 0.40,
}


@dataclass(frozen=True)
class SurrogateTest:
    """Settings of a test with surrogates.

    Attributes
    ----------
    n_surrogates, n_second : the number of surrogates, and of surrogates of each one for a double bootstrap
    marginal : the way in which the model's marginal distribution is computed
    seed : seed of all random numbers
    """

    n_surrogates: int = 100
    n_second: int = 0
    marginal: str = "exact"
    seed: int = 0


def user_goodness(
    sequences: Sequences, dataset: str, user: Any, model: str, settings: str, how: SurrogateTest
) -> dict[str, Any]:
    """Test one model on one user's intervals; returns a row of the table of tests.

    For a POHMM with published settings, `p_printed` and `p_states` are two-sided p-values from the other ways
    of computing the model's distribution.
    """
    areas.check_marginal(how.marginal)
    fits = goodness.refits(
        pattern(model, settings),
        sequences.without_events() if model == "hmm" else sequences,
        stream(how.seed, "goodness of fit", dataset, user, model, settings),
        goodness.SurrogatePlan(how.n_surrogates, how.n_second),
    )
    test = goodness.judged_by_areas(fits, 0, "auto", how.marginal)
    row = {"dataset": dataset, "user": user, "model": model, "settings": settings} | outcome(test)
    for other in ("printed", "states"):
        wanted = model == "pohmm" and settings == "published"
        row[f"p_{other}"] = goodness.judged_by_areas(fits, 0, "auto", other).p_value if wanted else np.nan
    return row


def outcome(test: GoodnessOfFit) -> dict[str, Any]:
    """The figures of a test that tables keep; `p_double` is NaN if it was not requested."""
    return {
        "statistic": test.statistic,
        "surrogate_mean": float(test.surrogates.mean()),
        "p_value": test.p_value,
        "p_one_sided": test.p_one_sided,
        "p_double": test.p_double if len(test.second_areas) else np.nan,
        "surrogates": len(test.surrogates),
        "not_converged": test.not_converged,
    }


def goodness_calls(
    keystrokes: pd.DataFrame,
    dataset: str,
    how: SurrogateTest,
    models: Sequence[str] = MODELS,
    settings: Sequence[str] = SETTINGS,
) -> list[partial[dict[str, Any]]]:
    """A call of `user_goodness` for each user, model and settings."""
    return [
        partial(user_goodness, sequences, dataset, user, model, chosen, how)
        for user, sequences in intervals_by_user(keystrokes).items()
        for model in models
        for chosen in settings
    ]


def rejections(tests: pd.DataFrame) -> pd.DataFrame:
    """The share of users for whom each model is rejected at 0.05, two-sided as published."""
    keys = ["dataset", "model", "settings"]
    table = (
        tests.assign(rejected=tests["p_value"] <= LEVEL)
        .groupby(keys, sort=False)
        .agg(rejected=("rejected", "mean"), users=("user", "nunique"), surrogates=("surrogates", "max"))
        .reset_index()
    )
    keyed = zip(table["dataset"], table["model"], strict=True)
    published = [PUBLISHED.get((str(dataset), str(model)), np.nan) for dataset, model in keyed]
    return table.assign(published_rejected=published)


def rejections_by_marginal(tests: pd.DataFrame) -> pd.DataFrame:
    """The share of users for whom the published POHMM is rejected, by kind of marginal distribution."""
    kinds = {"exact": "p_value", "printed": "p_printed", "states": "p_states"}
    published_pohmm = tests[tests["p_printed"].notna()]
    table = (
        published_pohmm.assign(**{name: published_pohmm[kind] <= LEVEL for name, kind in kinds.items()})
        .groupby("dataset", sort=False)[list(kinds)]
        .mean()
        .reset_index()
    )
    published = [PUBLISHED.get((str(dataset), "pohmm"), np.nan) for dataset in table["dataset"]]
    return table.assign(published_rejected=published)


def rejections_by_p_value(tests: pd.DataFrame) -> pd.DataFrame:
    """Shares of rejected models by p-value: two-sided as published, one-sided, double bootstrap."""
    keys = ["dataset", "model", "settings"]
    kinds = [kind for kind in ("p_value", "p_one_sided", "p_double") if tests[kind].notna().any()]
    return (
        tests.assign(**{kind: tests[kind] <= LEVEL for kind in kinds})
        .groupby(keys, sort=False)[kinds]
        .mean()
        .reset_index()
    )


class TypicalUser(NamedTuple):
    """The residuals (N,) of one user by model, and the lengths of the user's samples."""

    dataset: str
    user: Any
    residuals: dict[str, Floats]
    lengths: Integers


def residual_calls(keystrokes: pd.DataFrame, dataset: str) -> list[partial[dict[str, Any]]]:
    """A call of `user_residuals` for each user and model."""
    return [
        partial(user_residuals, sequences, dataset, user, model)
        for user, sequences in intervals_by_user(keystrokes).items()
        for model in MODELS
    ]


def user_residuals(sequences: Sequences, dataset: str, user: Any, model: str) -> dict[str, Any]:
    """Tests of one user's residuals under a model with the recommended settings."""
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
    """Medians over users by model, and the shares of users whose residuals fail a test at 0.05."""
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
    fitted = surrogates.refit(pattern(model, "recommended"), [sequences], None)[0]
    return np.asarray(fitted.forecast_residuals(sequences)[:, 0])
