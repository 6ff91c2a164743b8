"""Measures the size of the goodness-of-fit test under right models, and its power against wrong ones.

Data are drawn from models that were fitted to real users, along their own event sequences, so that the truth
is known and resembles typing. Fable provides short samples, essay long ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from keydyn.arrays import Floats
from keydyn.lab.frame.study_data import MODELS, intervals_by_user, pattern, stream
from keydyn.lab.goodness_of_fit.measurements import LEVEL, SurrogateTest, outcome
from keydyn.model import Sequences
from keydyn.model.check import surrogates
from keydyn.model.families.family import families_of

P_VALUES = ("p_value", "p_one_sided", "p_double")
TRUE: dict[str, dict[str, Any]] = {"true": {}}
# Models that are wrong for data of two states with heavy tails, and the number of surrogates needed to see
# it.
WRONG: dict[str, dict[str, Any]] = {
    "one state": {"n_states": 1},
    "log-normal": {"emission": "lognormal"},
    "normal": {"emission": "normal"},
}
FOR_POWER = 39


class Hypothesis(NamedTuple):
    """A tested model: its name, the settings in which it differs from the true one, and the repetition."""

    name: str
    changes: Mapping[str, Any]
    repeat: int = 0


def user_calibration(
    sequences: Sequences,
    dataset: str,
    user: Any,
    model: str,
    hypothesis: Hypothesis,
    how: SurrogateTest,
) -> dict[str, Any]:
    """Test a hypothesis on data drawn from a model fitted to this user.

    Areas are over ln x for all families of positive values.
    """
    repeat = hypothesis.repeat
    generator = stream(how.seed, "size and power", dataset, user, model, repeat)
    fitted = surrogates.refit(pattern(model, "recommended"), [sequences], None)[0]
    X, _, _ = fitted.sample(events=sequences.labels(), lengths=sequences.lengths, random_state=generator)
    drawn = replace(sequences, X=X)
    tested = pattern(model, "recommended", **hypothesis.changes)
    test = tested.goodness_of_fit(
        drawn,
        n_surrogates=how.n_surrogates,
        n_second=how.n_second,
        scale="linear" if families_of(tested.emission, sequences.n_features)[0].lowest < 0.0 else "log",
        random_state=generator,
    )
    keys = {"dataset": dataset, "user": user, "model": model, "hypothesis": hypothesis.name, "repeat": repeat}
    return keys | {"events": sequences.n_events} | outcome(test)


def calibration_calls(
    keystrokes: pd.DataFrame,
    dataset: str,
    hypotheses: Mapping[str, Mapping[str, Any]],
    how: SurrogateTest,
    models: Sequence[str] = MODELS,
    repeats: int = 1,
) -> list[partial[dict[str, Any]]]:
    """Calls of `user_calibration`; `hypotheses` are changes to the true model, by name."""
    return [
        partial(user_calibration, sequences, dataset, user, model, Hypothesis(name, changes, repeat), how)
        for user, sequences in intervals_by_user(keystrokes).items()
        for model in models
        for name, changes in hypotheses.items()
        for repeat in range(repeats)
    ]


def calibration_table(tests: pd.DataFrame) -> pd.DataFrame:
    """The distance of each kind of p-value from uniform, its mean, and the actual size at 0.05.

    `ks_distance` is the largest |share of p ≤ u − u| over the values that p can take; a uniform p exceeds
    `ks_by_chance` in one case of twenty. `size_low` and `size_high` are Clopper and Pearson's 95 % interval.
    """
    rows = []
    for (dataset, model), group in tests.groupby(["dataset", "model"], sort=False):
        for kind in P_VALUES:
            p = group[kind].dropna().to_numpy(dtype=np.float64)
            if len(p) == 0:
                continue
            rejected = int(np.count_nonzero(p <= LEVEL))
            low, high = share_interval(rejected, len(p))
            rows.append(
                {
                    "dataset": dataset,
                    "model": model,
                    "p": kind,
                    "tests": len(p),
                    "surrogates": int(group["surrogates"].max()),
                    "mean": float(p.mean()),
                    "size": rejected / len(p),
                    "size_low": low,
                    "size_high": high,
                    "ks_distance": distance_from_uniform(p, int(group["surrogates"].max())),
                    "ks_by_chance": float(1.358 / np.sqrt(len(p))),
                }
            )
    return pd.DataFrame(rows)


def power_table(tests: pd.DataFrame) -> pd.DataFrame:
    """The shares of wrong hypotheses rejected at 0.05, one- and two-sided, and the share missed."""
    grouped = tests.assign(
        two_sided=tests["p_value"] <= LEVEL, one_sided=tests["p_one_sided"] <= LEVEL
    ).groupby(["dataset", "model", "hypothesis"], sort=False)
    shares = grouped.agg(
        tests=("user", "size"), two_sided=("two_sided", "mean"), one_sided=("one_sided", "mean")
    ).reset_index()
    ends = [
        share_interval(round(share * n), n)
        for share, n in zip(shares["one_sided"], shares["tests"], strict=True)
    ]
    return shares.assign(
        low=[low for low, _ in ends], high=[high for _, high in ends], missed=1.0 - shares["one_sided"]
    )


def share_interval(count: int, n: int) -> tuple[float, float]:
    """Clopper and Pearson's 95 % interval of a share."""
    interval = stats.binomtest(count, n).proportion_ci(0.95, "exact")
    return float(interval.low), float(interval.high)


def distance_from_uniform(p: Floats, n_surrogates: int) -> float:
    """The Kolmogorov–Smirnov distance of p-values from the uniform distribution on k/(S + 1)."""
    steps = np.arange(1, n_surrogates + 2) / (n_surrogates + 1)
    # Apart from rounding, a p-value is a whole number of steps.
    below = np.searchsorted(np.sort(p), steps + 1e-9) / len(p)
    return float(np.max(np.abs(below - steps)))
