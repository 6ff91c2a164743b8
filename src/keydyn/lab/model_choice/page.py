"""The page of `keydyn study model-choice`."""

from __future__ import annotations

from math import inf

from keydyn.lab.frame.cells import has_number, listed, named, number
from keydyn.lab.frame.markdown_rows import Row
from keydyn.lab.frame.page import ResultsPage, Run, Tables

SETTINGS = ("states", "family", "smoothing")


def answer(tables: Tables) -> str:
    """The best model by held-out likelihood and by BIC, and where that leaves the paper's."""
    from keydyn.lab.model_choice.measurements import PAPER

    of_dataset: dict[str, list[Row]] = {}
    for row in tables["model_choice"]:
        of_dataset.setdefault(row["dataset"], []).append(row)
    by_likelihood: dict[str, list[str]] = {}
    by_bic: dict[str, list[str]] = {}
    ranks = []
    for dataset, rows in of_dataset.items():
        likely = sorted(
            rows, key=lambda row: -number(row["held out"]) if has_number(row["held out"]) else inf
        )
        by_likelihood.setdefault(_model(likely[0]), []).append(named(dataset))
        lowest = min(rows, key=lambda row: number(row["bic"]))
        by_bic.setdefault(_model(lowest), []).append(named(dataset))
        place = [_settings(row) for row in likely].index(tuple(map(str, PAPER)))
        ranks.append(f"number {place + 1} of {len(rows)} ({named(dataset)})")
    paper = _model(dict(zip(SETTINGS, map(str, PAPER), strict=True)))
    return (
        "By the likelihood of samples that were left out of the fit, the best model of the median user has "
        f"{_found(by_likelihood)}; by BIC, {_found(by_bic)}. By that likelihood the paper's choice, {paper}, "
        f"is {listed(ranks)}."
    )


def _found(models: dict[str, list[str]]) -> str:
    return listed([f"{model} ({listed(datasets)})" for model, datasets in models.items()])


def _settings(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in SETTINGS)


def _model(row: Row) -> str:
    from keydyn.lab.model_choice.figures import FAMILY_NAMES

    states, family, smoothing = _settings(row)
    smoothed = "not smoothed" if smoothing == "none" else "smoothed"
    return f"{states} {FAMILY_NAMES.get(family, family)} state{'' if states == '1' else 's'}, {smoothed}"


PAGE = ResultsPage(
    "Model choice",
    "How many hidden states, which distribution, smoothed or not?",
    answer,
    (
        Run(
            {
                "model_choice": "Each line is a model, compared with the paper's. For bic lower is better, "
                "for held out higher; the last two columns are shares of users for whom the model is the "
                "best of all.",
            },
            {
                "model_choice": "BIC (lower is better) and held-out log-likelihood (higher is better) by "
                "number of states, family and smoothing, compared with the paper's choice."
            },
        ),
    ),
)
