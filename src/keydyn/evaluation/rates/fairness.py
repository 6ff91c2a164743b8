"""Error rates of groups of users: by speed of typing, by any other column, and of the worst tenth.

One threshold for all users does not give all of them the same errors. A decision is a row with `user`, the
user claimed, `genuine`, whether that user typed the sample, and `answer`; any other answer than "accept" is a
refusal.

The differences between groups are summarised by the figures that the Keystroke Verification Challenge reports
(Stragapede and others, IEEE Access 12, 2024); `group_differences` cites the source of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from keydyn.arrays import Floats
from keydyn.evaluation.rates.confidence import REPLICATES, Rate, interval, mean_rate, user_weights
from keydyn.evaluation.rates.error_curve import ErrorCurve
from keydyn.evaluation.scores import Scores
from keydyn.keystrokes.samples import Samples

ACCEPT = "accept"
ERRORS = {"fnmr": "Genuine refused", "fmr": "Impostors accepted"}
COLUMNS = ("user", "genuine", "answer")
EVERYBODY, WORST = "everybody", "worst tenth"
WORST_SHARE = 0.1
# Columns of numbers with more distinct values than this are divided into thirds.
MOST_VALUES = 5
THIRDS = ("lowest third", "middle third", "highest third")
# The figures of a group of fewer people depend more on those people than on the group.
LEAST_PEOPLE = 10
DIFFERENCES = {
    "std": "Standard deviation of EERs",
    "ser": "SER",
    "fdr": "FDR",
    "ir": "IR",
    "garbe": "GARBE",
    "sir": "SIR",
}


def median_intervals(samples: Samples) -> pd.Series:
    """The median of each user's intervals between presses in milliseconds, a measure of typing speed."""
    sequences = samples.sequences
    tau = np.array(sequences.X[:, (sequences.feature_names or ()).index("tau")])
    # The first value of a sample is a placeholder, not an interval.
    tau[sequences.offsets[:-1]] = np.nan
    users = np.repeat(samples.users, sequences.lengths)
    return pd.Series(tau).groupby(users, sort=False).median()


def error_rates_by(decisions: pd.DataFrame, columns: Sequence[str] = (), seed: int = 0) -> pd.DataFrame:
    """Error rates, one row per group and error: column, group, error, users, trials, rate, low, high.

    A group's rate is the mean of its users' own rates, with a bootstrap interval over users. `columns` are
    further columns of the decisions to group by. A column of numbers with many values is divided into thirds
    of the users, by the median of each user's values. The worst tenth is chosen by every second decision on
    each user, and its rate is computed from the others: on the same decisions it would come out too high.

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


def group_rates(scores: Scores, groups: Mapping[Any, Any], seed: int = 0) -> pd.DataFrame:
    """The errors of each group of users at one threshold, at which FMR and FNMR of all users are equal.

    `groups` maps each user's name to a group; numbers with many values are divided into thirds, and users
    without a group are left out. One row per group: group, users, enough (whether they are `LEAST_PEOPLE` or
    more), eer (at a threshold of the group's own), and fmr and fnmr with their intervals `_low` and `_high`
    and numbers of trials `_trials`. The impostors of a group are those who claim to be one of its users;
    fmr_same is that of impostors of the same group, fmr_other of other groups, NaN if there are none.
    """
    query, template = np.nonzero(scores.trials)
    claims = pd.DataFrame({"user": scores.users[template], "typist": scores.owners[query]})
    claims["genuine"] = claims["user"] == claims["typist"]
    claims["score"] = scores.normalised[query, template]
    known = pd.Series(groups, dtype=object).dropna().infer_objects()
    people = pd.DataFrame({"user": known.index, "group": known.to_numpy()})
    group_of = dict(zip(people["user"], _groups(people, "group"), strict=True))
    curve = _curve(claims)
    threshold = curve.thresholds[np.argmax(curve.fmr >= curve.fnmr)]
    claims["answer"] = np.where(claims["score"] >= threshold, ACCEPT, "reject")
    claims["group"], own = claims["user"].map(group_of), claims["typist"].map(group_of)
    if claims["group"].nunique() < 2:
        raise ValueError("all users are of one group, so there are no groups to compare")
    rates = error_rates_by(claims, ["group"], seed)
    rows = []
    for group in dict.fromkeys(rates.loc[rates["column"] == "group", "group"]):
        of_group = claims["group"].astype(str) == group
        some = claims[of_group]
        row: dict[str, object] = {"group": group, "users": int(some["user"].nunique())}
        row["enough"] = int(some["user"].nunique()) >= LEAST_PEOPLE
        row["eer"] = _curve(some).eer if 0 < some["genuine"].sum() < len(some) else np.nan
        for error in ERRORS:
            found = rates[
                (rates["group"] == group) & (rates["column"] == "group") & (rates["error"] == error)
            ]
            values = found.iloc[0] if len(found) else dict.fromkeys(("rate", "low", "high"), np.nan)
            row |= {error: values["rate"], f"{error}_low": values["low"], f"{error}_high": values["high"]}
            row[f"{error}_trials"] = int(found["trials"].sum())
        same = of_group & ~claims["genuine"] & (own == claims["group"])
        other = of_group & ~claims["genuine"] & own.notna() & (own != claims["group"])
        for name, which in (("fmr_same", same), ("fmr_other", other)):
            row[name] = (claims.loc[which, "answer"] == ACCEPT).mean() if which.any() else np.nan
        rows.append(row)
    return pd.DataFrame(rows)


def group_differences(rates: pd.DataFrame, weight: float = 0.5) -> dict[str, float | None]:
    """Figures of the differences between groups, from the columns eer, fmr, fnmr, … of `group_rates`.

    `weight` is the weight of the false match rate, 1 − `weight` that of the false non-match rate. A figure
    without a value, such as a ratio to a rate of zero, is None. With F the FMR and N the FNMR of groups, at
    one threshold:

    - std: standard deviation of the groups' EERs, divisor G; ser, skewed error ratio: the largest divided by
      the smallest (Wang and Deng, CVPR 2020)
    - fdr, fairness discrepancy rate: 1 − weight · (max F − min F) − (1 − weight) · (max N − min N); 1 is fair
      (de Freitas Pereira and Marcel, IEEE T-BIOM 4, 2022)
    - ir, inequity rate: (max F / min F)^weight · (max N / min N)^(1 − weight); 1 is fair (Grother, NIST IR
      8429, 2022)
    - garbe: weight · Gini(F) + (1 − weight) · Gini(N), where Gini(x) is the sum over all pairs of groups of
      |x_i − x_j| divided by 2 G (G − 1) · mean(x); 0 is fair (Howard and others, ICPR 2022)
    - sir, skewed impostor ratio: the mean FMR of impostors of the same group divided by that of impostors of
      other groups; 1 is fair. The challenge introduced the name for the difference between impostors within
      and across groups; that it is a ratio of these two rates is our reading
    """
    if not 0.0 <= weight <= 1.0:
        raise ValueError(f"weight must lie from 0 to 1, not {weight}")
    if len(rates) < 2:
        raise ValueError(f"differences need two groups or more, not {len(rates)}")
    eer, fmr, fnmr, same, other = (
        rates[name].to_numpy(dtype=np.float64) for name in ("eer", "fmr", "fnmr", "fmr_same", "fmr_other")
    )
    ratios = [_ratio(one.max(), one.min()) ** part for one, part in ((fmr, weight), (fnmr, 1.0 - weight))]
    found = {
        "std": float(eer.std()),
        "ser": _ratio(eer.max(), eer.min()),
        "fdr": 1.0 - weight * float(np.ptp(fmr)) - (1.0 - weight) * float(np.ptp(fnmr)),
        "ir": ratios[0] * ratios[1],
        "garbe": weight * _gini(fmr) + (1.0 - weight) * _gini(fnmr),
        "sir": _ratio(same[~np.isnan(same)].mean(), other[~np.isnan(other)].mean())
        if (~np.isnan(same)).any() and (~np.isnan(other)).any()
        else np.nan,
    }
    return {name: value if np.isfinite(value) else None for name, value in found.items()}


def _curve(claims: pd.DataFrame) -> ErrorCurve:
    genuine = claims["genuine"].to_numpy(dtype=bool)
    values = claims["score"].to_numpy(dtype=np.float64)
    return ErrorCurve.of(values[genuine], values[~genuine])


def _ratio(largest: float, smallest: float) -> float:
    """The ratio of two rates; 1 if both are zero, because they are equal, infinite if only the smaller is."""
    if smallest == 0.0:
        return 1.0 if largest == 0.0 else np.inf
    return float(largest / smallest)


def _gini(values: Floats) -> float:
    """The Gini coefficient, corrected for few groups; 0 if all values are equal."""
    if np.ptp(values) == 0.0:
        return 0.0
    n = len(values)
    return float(np.abs(values[:, None] - values[None, :]).sum() / (2 * n * (n - 1) * values.mean()))


def _groups(decisions: pd.DataFrame, column: str) -> pd.Series:
    values = decisions[column]
    if is_bool_dtype(values) or not is_numeric_dtype(values) or values.nunique() <= MOST_VALUES:
        return values
    of_users = values.groupby(decisions["user"], sort=False).median()
    limits = of_users.quantile([1 / 3, 2 / 3]).to_numpy()
    third = pd.Series(np.array(THIRDS, dtype=object)[np.searchsorted(limits, of_users)], of_users.index)
    return decisions["user"].map(third.where(of_users.notna()))


def _trials(decisions: pd.DataFrame, error: str) -> pd.DataFrame:
    """The columns user and wrong of the decisions in which the error can occur."""
    genuine = decisions["genuine"].to_numpy(dtype=bool)
    accepted = (decisions["answer"] == ACCEPT).to_numpy()
    there = genuine if error == "fnmr" else ~genuine
    wrong = ~accepted if error == "fnmr" else accepted
    return pd.DataFrame({"user": decisions["user"].to_numpy()[there], "wrong": wrong[there]})


def _halves(trials: pd.DataFrame) -> tuple[Floats, Floats]:
    """The rates of users in every second trial and in the others, for users who have both."""
    odd = trials.groupby("user", sort=False).cumcount().to_numpy() % 2
    first, second = (trials[odd == half].groupby("user", sort=False)["wrong"].mean() for half in (0, 1))
    both = first.index.intersection(second.index)
    return first[both].to_numpy(dtype=np.float64), second[both].to_numpy(dtype=np.float64)


def _worst(chosen: Floats, reported: Floats, n_worst: int, trials: int, seed: int) -> Rate:
    """The mean reported rate of the users with the highest chosen rates; ties share the last places."""
    value = _tail_mean(chosen, reported, np.ones((1, len(chosen))), n_worst)[0]
    if len(chosen) == 1:
        return Rate(float(value), None, None, trials)
    replicated = _tail_mean(chosen, reported, user_weights(len(chosen), REPLICATES, seed), n_worst)
    low, high = interval(replicated)
    return Rate(float(value), float(low), float(high), trials)


def _tail_mean(chosen: Floats, reported: Floats, weights: Floats, n_worst: int) -> Floats:
    """The mean of `_worst` in each replicate, (R,); `weights` (R, U) is how often each user was drawn."""
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
