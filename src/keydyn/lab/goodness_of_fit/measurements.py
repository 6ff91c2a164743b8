"""Goodness of fit of keystroke intervals (Section 5.1): HMM and POHMM, user by user."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from keydyn.lab.frame.compared_models import MODELS, SETTINGS, pattern
from keydyn.lab.frame.resuming import in_processes
from keydyn.lab.frame.user_intervals import intervals_by_user, stream
from keydyn.model import GoodnessOfFit, Sequences
from keydyn.model.check import areas, goodness

Progress = Callable[[int], object]

LEVEL = 0.05
# Shares of users for whom the model was rejected, as published.
PUBLISHED = {
    ("fable", "hmm"): 0.45,
    ("fable", "pohmm"): 0.22,
    ("essay", "hmm"): 1.00,
    ("essay", "pohmm"): 0.40,
}


def user_goodness(
    sequences: Sequences,
    dataset: str,
    user: Any,
    model: str,
    settings: str,
    n_surrogates: int = 100,
    n_second: int = 0,
    scale: str = "auto",
    marginal: str = "exact",
    seed: int = 0,
    n_jobs: int | None = None,
) -> dict[str, Any]:
    """The test of one model on one user's intervals: a row of `goodness_of_fit`.

    With the published settings of a POHMM, `p_printed` and `p_states` are the two-sided p-value by the other
    ways to make the model's distribution.
    """
    areas.check_marginal(marginal)
    fits = goodness.refits(
        pattern(model, settings),
        sequences.without_events() if model == "hmm" else sequences,
        stream(seed, "goodness of fit", dataset, user, model, settings),
        goodness.Plan(n_surrogates, n_second, n_jobs=n_jobs),
    )
    test = goodness.judged_by_areas(fits, 0, scale, marginal)
    row = {"dataset": dataset, "user": user, "model": model, "settings": settings} | outcome(test)
    for other in ("printed", "states"):
        wanted = model == "pohmm" and settings == "published"
        again = goodness.judged_by_areas(fits, 0, scale, other).p_value if wanted else np.nan
        row[f"p_{other}"] = again
    return row


def outcome(test: GoodnessOfFit) -> dict[str, Any]:
    """The figures of a test that tables keep; `p_double` is NaN if it was not asked for."""
    return {
        "statistic": test.statistic,
        "surrogate_mean": float(test.surrogates.mean()),
        "p_value": test.p_value,
        "p_one_sided": test.p_one_sided,
        "p_double": test.p_double if len(test.second_areas) else np.nan,
        "surrogates": len(test.surrogates),
        "not_converged": test.not_converged,
    }


def goodness_rows(
    keystrokes: pd.DataFrame,
    dataset: str,
    models: Sequence[str] = MODELS,
    settings: Sequence[str] = SETTINGS,
    n_surrogates: int = 100,
    n_second: int = 0,
    scale: str = "auto",
    marginal: str = "exact",
    seed: int = 0,
    n_jobs: int | None = None,
    skip: Collection[tuple[Any, str, str]] = (),
) -> Iterator[dict[str, Any]]:
    """Every user's tests, one row each as they are done; `skip` has (user, model, settings) done before."""
    shared: dict[str, Any] = {"n_surrogates": n_surrogates, "n_second": n_second, "seed": seed}
    shared |= {"scale": scale, "marginal": marginal}
    pieces = [
        {"sequences": sequences, "dataset": dataset, "user": user, "model": model, "settings": chosen}
        | shared
        for user, sequences in intervals_by_user(keystrokes).items()
        for model in models
        for chosen in settings
        if (user, model, chosen) not in skip
    ]
    return in_processes(user_goodness, pieces, n_jobs)


def goodness_of_fit(
    keystrokes: pd.DataFrame, dataset: str, *, progress: Progress | None = None, **options: Any
) -> pd.DataFrame:
    """The rows of `goodness_rows`; `progress` is called with the number of tests done."""
    return collected(goodness_rows(keystrokes, dataset, **options), progress)


def collected(rows: Iterable[dict[str, Any]], progress: Progress | None) -> pd.DataFrame:
    """Rows as a table; `progress` is called with their number as they come."""
    collected_rows = []
    for row in rows:
        collected_rows.append(row)
        if progress is not None:
            progress(len(collected_rows))
    return pd.DataFrame(collected_rows)


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
    """The share of users for whom the published POHMM is rejected, by how its distribution is made."""
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
    """The same by every p-value: two-sided as published, one-sided, by double bootstrap if there is one."""
    keys = ["dataset", "model", "settings"]
    kinds = [kind for kind in ("p_value", "p_one_sided", "p_double") if tests[kind].notna().any()]
    return (
        tests.assign(**{kind: tests[kind] <= LEVEL for kind in kinds})
        .groupby(keys, sort=False)[kinds]
        .mean()
        .reset_index()
    )
