"""Compares models of real users, states × family × smoothing, by BIC and by held-out likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from keydyn.lab.frame.study_data import intervals_by_user, pattern
from keydyn.model import Sequences
from keydyn.model.check import surrogates

STATES = (1, 2, 3, 4)
FAMILIES = ("lognormal", "logstudent", "gamma", "exponential", "normal")
SMOOTHING = ("frequency", None)
CHOICE = ["states", "family", "smoothing"]
# The paper's choice: two states, log-normal, smoothed.
PAPER = (2, "lognormal", "frequency")
# Smaller gains do not change the third decimal of a criterion per event.
TOLERANCE = 1e-2
MAX_ITERATIONS = 300
# The number of samples per user left out, one at a time; few, because there are many users and each needs a
# fit.
LEFT_OUT = 3


def choice_calls(
    keystrokes: pd.DataFrame,
    dataset: str,
    states: Sequence[int] = STATES,
    families: Sequence[str] = FAMILIES,
    smoothing: Sequence[str | None] = SMOOTHING,
) -> list[partial[list[dict[str, Any]]]]:
    """A call of `one_choice` for each model."""
    users = intervals_by_user(keystrokes)
    return [
        partial(one_choice, users, dataset, n_states, family, rule)
        for n_states, family, rule in product(states, families, smoothing)
    ]


def one_choice(
    users: dict[Any, Sequences], dataset: str, n_states: int, family: str, rule: str | None
) -> list[dict[str, Any]]:
    """Fit one model to every user, with all samples and with some left out in turn: one row per user.

    `bic` is that of a fit to all samples. `held_out` is the log-likelihood per event of samples left out of
    the fit, up to `LEFT_OUT` per user, one at a time; −inf if the model considers one impossible. It is
    missing for a user with one sample.
    """
    wanted = pattern(
        "pohmm",
        "recommended",
        n_states=n_states,
        emission=family,
        smoothing=rule,
        tol=TOLERANCE,
        max_iter=MAX_ITERATIONS,
    )
    jobs: list[tuple[Any, int | None]] = []
    data: list[Sequences] = []
    for user, sequences in users.items():
        n = len(sequences)
        for s in (None, *left_out(n)):
            jobs.append((user, s))
            data.append(sequences if s is None else sequences[np.arange(n) != s])
    scores: dict[Any, list[tuple[float, int]]] = {user: [] for user in users}
    rows: dict[Any, dict[str, Any]] = {}
    for (user, s), model in zip(jobs, surrogates.refit(wanted, data, None), strict=True):
        sequences = users[user]
        if s is not None:
            scores[user].append((float(model.score(sequences[s])), int(sequences.lengths[s])))
            continue
        rows[user] = {
            "dataset": dataset,
            "user": user,
            "states": n_states,
            "family": family,
            "smoothing": "none" if rule is None else rule,
            "parameters": model.n_parameters_,
            "events": sequences.n_events,
            "bic": float(model.bic(sequences)),
            "not_converged": model.stop_reason_ == "max_iter",
        }
    for user, row in rows.items():
        events = sum(n for _, n in scores[user])
        row["held_out"] = sum(score for score, _ in scores[user]) / events if events else np.nan
    return list(rows.values())


def left_out(n_samples: int) -> list[int]:
    """The samples that are left out in turn, evenly spread; none if there is only one."""
    if n_samples < 2:
        return []
    evenly = np.linspace(0, n_samples - 1, min(LEFT_OUT, n_samples))
    return [int(number) for number in evenly.round()]


def is_paper(models: pd.DataFrame) -> pd.Series[bool]:
    """Whether each row is of the paper's model."""
    return models[CHOICE].eq(pd.Series(PAPER, index=CHOICE)).all(axis=1)


def choice_table(fits: pd.DataFrame) -> pd.DataFrame:
    """BIC and held-out log-likelihood of models relative to the paper's, and how many users they suit best.

    `bic` and `held_out` are medians over users of the difference from two smoothed log-normal states, per
    event; a lower BIC and a higher log-likelihood are better. `best_by_bic` and `best_held_out` are shares of
    users.
    """
    keys = ["dataset", "user"]
    per_event = fits.assign(bic=fits["bic"] / fits["events"])
    paper = is_paper(per_event)
    if not paper.any():
        raise ValueError("the paper's choice, two states, lognormal, smoothed, is not among the models")
    paper_fits = per_event[paper].set_index(keys)[["bic", "held_out"]]
    matched = paper_fits.loc[pd.MultiIndex.from_frame(per_event[keys])].to_numpy()
    grouped = per_event.groupby(keys, sort=False)
    per_event = per_event.assign(
        best_by_bic=per_event["bic"] == grouped["bic"].transform("min"),
        best_held_out=per_event["held_out"] == grouped["held_out"].transform("max"),
        bic=per_event["bic"] - matched[:, 0],
        held_out=per_event["held_out"] - matched[:, 1],
    )
    return (
        per_event.groupby(["dataset", *CHOICE], sort=False)
        .agg(
            users=("user", "nunique"),
            parameters=("parameters", lambda counts: round(float(counts.median()))),
            bic=("bic", "median"),
            held_out=("held_out", "median"),
            best_by_bic=("best_by_bic", "mean"),
            best_held_out=("best_held_out", "mean"),
        )
        .reset_index()
    )
