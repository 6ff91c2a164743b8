"""The page of `keydyn study model-choice`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keydyn.lab.frame.answers import listed
from keydyn.lab.frame.names import dataset_name
from keydyn.lab.frame.page import ResultsPage, Run, Values

SETTINGS = ["states", "family", "smoothing"]


def answer(values: Values) -> str:
    """The best model by held-out likelihood and by BIC, and where that leaves the paper's."""
    from keydyn.lab.model_choice.measurements import PAPER

    by_likelihood: dict[str, list[str]] = {}
    by_bic: dict[str, list[str]] = {}
    ranks = []
    for dataset, rows in values["model_choice"].groupby("dataset", sort=False):
        name = dataset_name(dataset)
        likely = rows.sort_values("held_out", ascending=False, kind="stable", na_position="last")
        models = likely[SETTINGS].to_dict("records")
        by_likelihood.setdefault(_model(models[0]), []).append(name)
        by_bic.setdefault(_model(rows.iloc[int(rows["bic"].argmin())].to_dict()), []).append(name)
        place = [tuple(model.values()) for model in models].index(PAPER)
        ranks.append(f"number {place + 1} of {len(rows)} ({name})")
    paper = _model(dict(zip(SETTINGS, PAPER, strict=True)))
    return (
        "By the likelihood of samples that were left out of the fit, the best model of the median user has "
        f"{_found(by_likelihood)}; by BIC, {_found(by_bic)}. By that likelihood the paper's choice, {paper}, "
        f"is {listed(ranks)}."
    )


def _found(models: dict[str, list[str]]) -> str:
    return listed([f"{model} ({listed(datasets)})" for model, datasets in models.items()])


def _model(settings: Mapping[Any, Any]) -> str:
    from keydyn.lab.model_choice.figures import FAMILY_NAMES

    states, family, smoothing = (settings[name] for name in SETTINGS)
    smoothed = "not smoothed" if smoothing == "none" else "smoothed"
    return f"{states} {FAMILY_NAMES.get(family, family)} state{'' if states == 1 else 's'}, {smoothed}"


PAGE = ResultsPage(
    "Model choice",
    "How many hidden states, which distribution, smoothed or not?",
    answer,
    ("model_choice",),
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
