"""Chooses the recommended settings for each dataset, using the other datasets only.

A candidate is a density for the times and a way to start. The candidate chosen for a dataset is the one with
the lowest mean equal error rate over the *other* recordings (mobile and mobile+ are the same recordings), so
that no sample influences the settings with which it is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import pandas as pd
import pyarrow as pa

from keydyn.detectors import Detector
from keydyn.detectors.markov import RecommendedPOHMM
from keydyn.evaluation.protocols.running import score_protocol
from keydyn.evaluation.rates.verification import recognition
from keydyn.lab.frame.names import figures_of, of_all, percent, span
from keydyn.lab.frame.outputs import Outputs
from keydyn.lab.frame.report import Section
from keydyn.lab.frame.resuming import Parts
from keydyn.lab.frame.score_datasets import make_each
from keydyn.lab.frame.study import ResultsPage, Values
from keydyn.lab.frame.study_data import Row
from keydyn.lab.frame.tables import Table, plain_table
from keydyn.parallel import Progress

DENSITIES: dict[str, float | None] = {
    "log-normal": None,
    "log-t, 2 degrees of freedom": 2.0,
    "log-t, 4 degrees of freedom": 4.0,
    "log-t, 8 degrees of freedom": 8.0,
}
METRICS = ("acc", "eer")
STARTS = {"all features spread": "all", "leading feature spread": "leading"}


def candidates() -> dict[str, RecommendedPOHMM]:
    """All candidates by name."""
    return {
        f"{density}; {start}": RecommendedPOHMM(df, spread)
        for density, df in DENSITIES.items()
        for start, spread in STARTS.items()
    }


def check_rows(rows: Sequence[Row]) -> None:
    """Raise a `ValueError` if there are no other datasets to choose from."""
    if len({row.name.removesuffix("+") for row in rows}) < 2:
        names = ", ".join(row.name for row in rows)
        raise ValueError(
            "the settings for a dataset are chosen by the other datasets, so two or more are needed; there "
            f"is {names}"
        )


def try_candidates(rows: Sequence[Row], parts: Parts) -> pd.DataFrame:
    """The mean accuracy and equal error rate over users of every candidate on every row."""
    work, tried = {}, []
    for row, (name, detector) in product(rows, candidates().items()):
        part = f"{row.name}-{detector.df or 0:g}-{detector.spread_features}"
        work[part] = (row, detector, f"{row.name} · {name}")
        tried.append((part, row.name, name))
    tables = make_each(work, _tried, parts)
    measured = [
        (*labels, *(tables[part][metric][0].as_py() for metric in METRICS)) for part, *labels in tried
    ]
    return pd.DataFrame(measured, columns=["dataset", "candidate", *METRICS])


def choices(tried: pd.DataFrame) -> pd.DataFrame:
    """The candidate with the lowest mean equal error rate on the other recordings, for each dataset.

    The last row, "all", is the choice on all recordings, which is the library's default.
    """
    recordings = tried["dataset"].str.removesuffix("+")
    rows = []
    for dataset in [*dict.fromkeys(tried["dataset"]), "all"]:
        others = tried[recordings != dataset.removesuffix("+")]
        # Each recording counts once, however many rows of the table it has.
        each = others.groupby([recordings, "candidate"], sort=False)["eer"].mean()
        mean = each.groupby("candidate", sort=False).mean()
        rows.append((dataset, str(mean.idxmin()), float(mean.min())))
    return pd.DataFrame(rows, columns=["dataset", "chosen", "eer_on_the_others"])


def write(outputs: Outputs, tried: pd.DataFrame, facts: Mapping[str, Any]) -> list[Table]:
    """Write the tables of candidates and choices and the report; returns the tables for the terminal."""
    wide = tried.pivot_table(index="candidate", columns="dataset", values="eer", sort=False).reset_index()
    wide.columns = [str(name) for name in wide.columns]
    measured = plain_table(
        "candidates",
        "Equal error rate of every candidate",
        "Mean over users, with the published protocol; each user has a threshold of their own.",
        wide,
    )
    chosen = choices(tried)
    with_figures = chosen.merge(
        tried.rename(columns={"candidate": "chosen"}), on=["dataset", "chosen"], how="left", sort=False
    )
    picked = plain_table(
        "choices",
        "What the other datasets choose",
        "For each dataset, the candidate with the lowest mean equal error rate on the other recordings, and "
        "its figures on this dataset, which had no part in the choice. The last row, all, is the choice of "
        "all recordings together.",
        with_figures,
    )
    tables = [picked, measured]
    lead = [
        "A candidate is a density for times and a way to start the fit. The settings for a dataset are "
        "chosen on the other datasets alone."
    ]
    outputs.report("What is recommended", lead, [Section("Choices", (), tables)], facts)
    return tables


def _tried(row: Row, detector: Detector, n_jobs: int | None, progress: Progress) -> pa.Table:
    users = recognition(score_protocol(row.protocol, detector, row.samples, n_jobs, progress))
    return pa.table({metric: [float(users[metric].mean())] for metric in METRICS})


ALL = "all"


def answer(values: Values) -> str:
    """The settings that all datasets choose together, and how often the other datasets choose the same."""
    frame = values["choices"]
    best, others = frame[frame["dataset"] == ALL].iloc[0], frame[frame["dataset"] != ALL]
    same = int((others["chosen"] == best["chosen"]).sum())
    return (
        f"{best['chosen'].capitalize()}: these settings have the lowest mean equal error rate over all "
        f"recordings, {percent(best['eer_on_the_others'])}. The other datasets choose them for "
        f"{of_all(same, len(others), 'dataset')}; what they choose has an equal error rate of "
        f"{span(figures_of(others, 'eer'), percent)} on the dataset itself, which had no part in it."
    )


PAGE = ResultsPage(
    "Recommended settings",
    "Which settings of the POHMM recognise people best?",
    answer,
    ("choices",),
    {
        "choices": "Each line says what the other datasets choose, and how well that choice does on this "
        "dataset (acc: accuracy, higher is better; eer: equal error rate, lower is better).",
        "candidates": "Each line is a candidate, each column a dataset; lower is better.",
    },
)
