"""Whose errors they are: rates by speed of typing, by any column, and of the worst tenth of all users.

One threshold for all is not the same for all. A decision is a row of `user`, in whose name a sample was sent,
`genuine`, whether that user typed it, and `answer`; whatever is not "accept" is a refusal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from keydyn.arrays import Floats
from keydyn.evaluation.rates.confidence import REPLICATES, Rate, interval, mean_rate, user_weights
from keydyn.keystrokes.samples import Samples

ACCEPT = "accept"
ERRORS = {"fnmr": "Genuine refused", "fmr": "Impostors accepted"}
COLUMNS = ("user", "genuine", "answer")
EVERYBODY, WORST = "everybody", "worst tenth"
WORST_SHARE = 0.1
# Numbers with more different values than this are divided into thirds.
MOST_VALUES = 5
THIRDS = ("lowest third", "middle third", "highest third")


def median_intervals(samples: Samples) -> pd.Series:
    """The median of each user's intervals between presses, milliseconds: how fast the user types.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.evaluation import median_intervals
    >>> from keydyn.keystrokes import Samples
    >>> median_intervals(Samples.of(make_typists(4, 5))).shape
    (4,)
    """
    sequences = samples.sequences
    tau = np.array(sequences.X[:, (sequences.feature_names or ()).index("tau")])
    # Whatever stands in for a sample's first interval is none.
    tau[sequences.offsets[:-1]] = np.nan
    users = np.repeat(samples.users, sequences.lengths)
    return pd.Series(tau).groupby(users, sort=False).median()


def error_rates_by(decisions: pd.DataFrame, columns: Sequence[str] = (), seed: int = 0) -> pd.DataFrame:
    """One row per group and error: column, group, users, trials, rate, low, high.

    A group's rate is the mean of its users' own rates, with a bootstrap interval over users. `columns` are
    further columns of the decisions. One of numbers with many values is divided into thirds of the users, by
    the median of each user's values. The worst tenth is chosen by every other decision on each user, and its
    rate is that of the decisions in between: of those it was chosen by it would come out too high.

    Examples
    --------
    >>> import pandas as pd
    >>> from keydyn.evaluation import error_rates_by
    >>> decisions = pd.DataFrame({"user": ["ann", "bob"] * 20, "genuine": [True, True, False, False] * 10})
    >>> decisions["answer"] = ["accept", "reject", "reject", "reject"] * 10
    >>> rates = error_rates_by(decisions)
    >>> rates[rates["group"] == "everybody"][["error", "users", "rate"]].values.tolist()
    [['fnmr', 2, 0.5], ['fmr', 2, 0.0]]
    """
    absent = [name for name in (*COLUMNS, *columns) if name not in decisions]
    if absent:
        raise ValueError(f"the decisions have no column {', '.join(map(repr, absent))}")
    if len(decisions) == 0:
        raise ValueError("there are no decisions")
    groups = [("", EVERYBODY, decisions)]
    for column in columns:
        group = _groups(decisions, column)
        known = group[group.notna()]
        order = THIRDS if set(known) <= set(THIRDS) else sorted(set(known), key=str)
        groups += [(column, str(one), decisions[group == one]) for one in order]
    rows = []
    for error in ERRORS:
        trials = _trials(decisions, error)
        for column, name, some in groups:
            wrong = _trials(some, error)
            if len(wrong):
                rates = wrong.groupby("user", sort=False)["wrong"].mean().to_numpy(dtype=np.float64)
                rows.append(_row(column, name, error, len(rates), mean_rate(rates, len(wrong), seed=seed)))
        chosen, reported = _halves(trials)
        if len(chosen):
            n_worst = max(1, round(WORST_SHARE * len(chosen)))
            rate = _worst(chosen, reported, n_worst, int(len(trials) / 2 * n_worst / len(chosen)), seed)
            rows.append(_row("", WORST, error, n_worst, rate))
    return pd.DataFrame(rows)


def _groups(decisions: pd.DataFrame, column: str) -> pd.Series:
    values = decisions[column]
    if is_bool_dtype(values) or not is_numeric_dtype(values) or values.nunique() <= MOST_VALUES:
        return values
    of_users = values.groupby(decisions["user"], sort=False).median()
    limits = of_users.quantile([1 / 3, 2 / 3]).to_numpy()
    third = pd.Series(np.array(THIRDS, dtype=object)[np.searchsorted(limits, of_users)], of_users.index)
    return decisions["user"].map(third.where(of_users.notna()))


def _trials(decisions: pd.DataFrame, error: str) -> pd.DataFrame:
    """user and wrong, of the decisions in which the error can happen."""
    genuine = decisions["genuine"].to_numpy(dtype=bool)
    accepted = (decisions["answer"] == ACCEPT).to_numpy()
    there = genuine if error == "fnmr" else ~genuine
    wrong = ~accepted if error == "fnmr" else accepted
    return pd.DataFrame({"user": decisions["user"].to_numpy()[there], "wrong": wrong[there]})


def _halves(trials: pd.DataFrame) -> tuple[Floats, Floats]:
    """Rates of users in every other trial, and in those in between; of users who have both."""
    odd = trials.groupby("user", sort=False).cumcount().to_numpy() % 2
    first, second = (trials[odd == half].groupby("user", sort=False)["wrong"].mean() for half in (0, 1))
    both = first.index.intersection(second.index)
    return first[both].to_numpy(dtype=np.float64), second[both].to_numpy(dtype=np.float64)


def _worst(chosen: Floats, reported: Floats, n_worst: int, trials: int, seed: int) -> Rate:
    """The mean reported rate of those with the highest chosen rates; those who tie share what is left."""
    value = _tail_mean(chosen, reported, np.ones((1, len(chosen))), n_worst)[0]
    if len(chosen) == 1:
        return Rate(float(value), None, None, trials)
    replicated = _tail_mean(chosen, reported, user_weights(len(chosen), REPLICATES, seed), n_worst)
    low, high = interval(replicated)
    return Rate(float(value), float(low), float(high), trials)


def _tail_mean(chosen: Floats, reported: Floats, weights: Floats, n_worst: int) -> Floats:
    """(R,) of each replicate, in which users weigh as often as they were drawn."""
    levels, place = np.unique(-chosen, return_inverse=True)
    count = np.stack([weights[:, place == k].sum(axis=1) for k in range(len(levels))], axis=1)
    total = np.stack([weights[:, place == k] @ reported[place == k] for k in range(len(levels))], axis=1)
    before = np.cumsum(count, axis=1) - count
    taken = np.clip(n_worst - before, 0.0, count)
    share = np.divide(taken, count, out=np.zeros_like(count), where=count > 0)
    mean: Floats = (share * total).sum(axis=1) / n_worst
    return mean


def _row(column: str, group: str, error: str, users: int, rate: Rate) -> dict[str, object]:
    return {
        "column": column,
        "group": group,
        "error": error,
        "users": users,
        "trials": rate.trials,
        "rate": rate.value,
        "low": rate.low,
        "high": rate.high,
    }
