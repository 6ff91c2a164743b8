"""Runs and reports the study of model choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from keydyn.figures.style import COLOURS, GREY, drawing
from keydyn.lab.frame.names import dataset_name, listed
from keydyn.lab.frame.outputs import Outputs
from keydyn.lab.frame.report import Section
from keydyn.lab.frame.resuming import Parts, frame_of, run_pieces, text_piece
from keydyn.lab.frame.study import ResultsPage, Values
from keydyn.lab.frame.study_data import LongText, recorded_settings
from keydyn.lab.frame.tables import Table, plain_table
from keydyn.lab.model_choice.measurements import (
    CHOICE,
    FAMILIES,
    LEFT_OUT,
    MAX_ITERATIONS,
    PAPER,
    TOLERANCE,
    choice_calls,
    choice_table,
    is_paper,
)

Row = dict[Any, Any]

LEAD = (
    "POHMMs are fitted to the press-press intervals of each user, and judged by BIC on all of the user's "
    "samples and by the likelihood of samples that were left out of the fit. Measured by this run."
)


def choose_models(texts: Sequence[LongText], parts: Parts) -> pd.DataFrame:
    """Fit all models, states × families × smoothing, to every user."""
    settings = {
        "model": recorded_settings("pohmm", "recommended"),
        "families": list(FAMILIES),
        "tol": TOLERANCE,
        "max_iter": MAX_ITERATIONS,
        "left_out": LEFT_OUT,
    }
    pieces = [
        text_piece(f"choice-{text.name}", text, choice_calls(text.keystrokes, text.name), **settings)
        for text in texts
    ]
    return frame_of(run_pieces(pieces, parts), pieces)


def write(outputs: Outputs, fits: pd.DataFrame, facts: Mapping[str, Any]) -> list[Table]:
    """Write the table, the figure and the report of model choice."""
    outputs.frames(models=fits)
    table = outputs.table(
        plain_table(
            "model_choice",
            "Which model fits real users best",
            "BIC and held-out log-likelihood per event are medians over users of the difference from the "
            "paper's choice, two smoothed log-normal states. A smoothed model's BIC is approximate.",
            choice_table(fits),
            labels=4,
        )
    )
    picture = outputs.drawn(
        partial(draw_model_choice, table.frame),
        "model_choice",
        "BIC and held-out log-likelihood by states, family and smoothing, against the paper's choice.",
        "Lines over the number of states, one for each family and smoothing.",
    )
    sections = [Section("Model choice", outputs.words(choice_words(table.frame)), [table], [picture])]
    outputs.report("Which model?", [LEAD], sections, facts)
    return [_in_short(table.frame)]


def _in_short(frame: pd.DataFrame) -> Table:
    """A short table for the terminal: the paper's choice and models that are best for some users."""
    best = (frame["best_by_bic"] >= 0.1) | (frame["best_held_out"] >= 0.1)
    note = "The paper's choice, and models that are the best of all for a tenth of users or more."
    return plain_table("model_choice", "Which model fits best", note, frame[is_paper(frame) | best], labels=4)


def choice_words(table: pd.DataFrame) -> list[str]:
    """A paragraph per dataset about the best models and the place of the paper's two log-normal states."""
    return [
        _of_dataset(str(name), dataset_rows) for name, dataset_rows in table.groupby("dataset", sort=False)
    ]


def _of_dataset(name: str, table: pd.DataFrame) -> str:
    rows: list[Row] = table.to_dict("records")
    states, family, smoothing = PAPER
    paper, bare = (
        _only(rows, states=states, family=family, smoothing=rule)[0] for rule in (smoothing, "none")
    )
    lognormal = _only(rows, family=family, smoothing=smoothing)
    two = _only(rows, states=states, smoothing=smoothing)
    by_bic, by_held = _lowest_bic(rows), _most_held_out(rows)
    favourite = max(rows, key=lambda row: float(row["best_held_out"]))
    return (
        f"{dataset_name(name)}: the median user's BIC is lowest with {_named(by_bic)}, {-by_bic['bic']:.2f} "
        f"per event below the paper's choice, {_named(paper)}. Held-out log-likelihood is highest with "
        f"{_named(by_held)}, {by_held['held_out']:.2f} per event above the paper's choice. Of {len(rows)} "
        f"models, the paper's is number {_rank(rows, 'bic', paper)} by BIC and number "
        f"{_rank(rows, 'held_out', paper)} by held-out likelihood; it is the best of all for "
        f"{paper['best_by_bic']:.0%} of users by BIC and for {paper['best_held_out']:.0%} by held-out "
        "likelihood. The model that is best for most users by held-out likelihood "
        f"({favourite['best_held_out']:.0%}) has {_named(favourite)}. Among smoothed log-normal models, the "
        f"best number of states is {_lowest_bic(lognormal)['states']} by BIC and "
        f"{_most_held_out(lognormal)['states']} by held-out likelihood; among smoothed models of two states, "
        f"the best family is the {_family(_lowest_bic(two))} by BIC and the {_family(_most_held_out(two))} "
        f"by held-out likelihood. Without smoothing, the paper's model would {_unsmoothed(bare)}."
    )


def _only(rows: list[Row], **wanted: Any) -> list[Row]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def _lowest_bic(rows: list[Row]) -> Row:
    return min(rows, key=lambda row: float(row["bic"]))


def _most_held_out(rows: list[Row]) -> Row:
    """The model with the highest held-out likelihood; NaN, of users with one sample, is ignored."""
    return max(rows, key=lambda row: np.nan_to_num(float(row["held_out"]), nan=-np.inf))


def _rank(rows: list[Row], measure: str, judged: Row) -> int:
    sign = 1.0 if measure == "bic" else -1.0
    return 1 + sum(bool(sign * row[measure] < sign * judged[measure]) for row in rows)


def _unsmoothed(bare: Row) -> str:
    if not np.isfinite(bare["held_out"]):
        return "consider samples of the median user impossible that were left out of the fit"
    return f"change held-out log-likelihood by {bare['held_out']:+,.2f} per event"


def _states(row: Row) -> str:
    return f"{row['states']} state" + ("" if row["states"] == 1 else "s")


def _family(row: Row) -> str:
    return FAMILY_NAMES.get(row["family"], str(row["family"]))


def _named(row: Row) -> str:
    smoothed = "smoothed" if row["smoothing"] != "none" else "not smoothed"
    return f"{_states(row)}, {_family(row)}, {smoothed}"


def answer(values: Values) -> str:
    """The best models by held-out likelihood and by BIC, and the rank of the paper's."""
    by_likelihood: dict[str, list[str]] = {}
    by_bic: dict[str, list[str]] = {}
    ranks = []
    for dataset, rows in values["model_choice"].groupby("dataset", sort=False):
        name = dataset_name(dataset)
        likely = rows.sort_values("held_out", ascending=False, kind="stable", na_position="last")
        models = likely[CHOICE].to_dict("records")
        by_likelihood.setdefault(_model(models[0]), []).append(name)
        by_bic.setdefault(_model(rows.iloc[int(rows["bic"].argmin())].to_dict()), []).append(name)
        place = [tuple(model.values()) for model in models].index(PAPER)
        ranks.append(f"number {place + 1} of {len(rows)} ({name})")
    paper = _model(dict(zip(CHOICE, PAPER, strict=True)))
    return (
        "By the likelihood of samples that were left out of the fit, the best model of the median user has "
        f"{_found(by_likelihood)}; by BIC, {_found(by_bic)}. By that likelihood the paper's choice, {paper}, "
        f"is {listed(ranks)}."
    )


def _found(models: dict[str, list[str]]) -> str:
    return listed([f"{model} ({listed(datasets)})" for model, datasets in models.items()])


def _model(settings: Mapping[Any, Any]) -> str:
    states, family, smoothing = (settings[name] for name in CHOICE)
    smoothed = "not smoothed" if smoothing == "none" else "smoothed"
    return f"{states} {FAMILY_NAMES.get(family, family)} state{'' if states == 1 else 's'}, {smoothed}"


PAGE = ResultsPage(
    "Model choice",
    "How many hidden states, which distribution, smoothed or not?",
    answer,
    ("model_choice",),
    {
        "model_choice": "Each line is a model, compared with the paper's. For bic lower is better, for held "
        "out higher; the last two columns are shares of users for whom the model is the best of all."
    },
    {
        "model_choice": "BIC (lower is better) and held-out log-likelihood (higher is better) by number of "
        "states, family and smoothing, compared with the paper's choice."
    },
)


FAMILY_NAMES = {
    "lognormal": "log-normal",
    "logstudent": "log-t",
    "gamma": "gamma",
    "exponential": "exponential",
    "normal": "normal",
}
MEASURES = {
    "bic": "BIC per event, less is better",
    "held_out": "held-out log-likelihood per event,\nmore is better",
}


def draw_model_choice(table: pd.DataFrame, path: Path) -> None:
    """Draw BIC and held-out likelihood by model; `table` is the result of `choice_table`.

    Values are medians over users of the difference from the paper's choice, two smoothed log-normal states,
    marked by the black ring. Axes span the smoothed models, because a model without smoothing can be far off.
    """
    datasets = list(dict.fromkeys(table["dataset"]))
    with drawing(3.6 * len(datasets) + 1.8, 5.6, path) as figure:
        grid = figure.subplots(len(MEASURES), len(datasets), sharex=True, squeeze=False)
        for row, (measure, label) in enumerate(MEASURES.items()):
            for column, dataset in enumerate(datasets):
                axes = grid[row, column]
                _draw_measure(axes, table[table["dataset"] == dataset], measure)
                if column == 0:
                    axes.set_ylabel(label)
        for axes, dataset in zip(grid[0], datasets, strict=True):
            axes.set_title(str(dataset).capitalize())
        for axes in grid[-1]:
            axes.set_xlabel("hidden states")
        grid[0, -1].legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), fontsize=8.0)
        figure.suptitle("Difference from the paper's choice", x=0.01, ha="left", fontsize=10.0)


def _draw_measure(axes: Axes, table: pd.DataFrame, measure: str) -> None:
    axes.axhline(0.0, color=GREY, linewidth=0.6)
    for column, (family, family_rows) in enumerate(table.groupby("family", sort=False)):
        for smoothing, line in family_rows.groupby("smoothing", sort=False):
            smoothed = smoothing != "none"
            values = line.set_index("states")[measure].replace([np.inf, -np.inf], np.nan)
            axes.plot(
                values.index,
                values,
                marker="o" if smoothed else "s",
                markersize=3.5,
                markerfacecolor=None if smoothed else "white",
                linestyle="-" if smoothed else ":",
                color=COLOURS[column],
                label=f"{FAMILY_NAMES.get(str(family), family)}{'' if smoothed else ', not smoothed'}",
            )
    axes.plot([2], [0.0], "o", markersize=9, markerfacecolor="none", color="black")
    axes.set_xticks(sorted(table["states"].unique()))
    smooth = table.loc[table["smoothing"] != "none", measure]
    rest = table.loc[table["smoothing"] == "none", measure]
    low, high = min(smooth.min(), 0.0), max(smooth.max(), 0.0)
    edge = max(0.08 * (high - low), 1e-3)
    axes.set_ylim(low - edge, high + edge)
    outside = int(np.sum((rest < low - edge) | (rest > high + edge)))
    if outside:
        note = f"{outside} of {len(rest)} not smoothed lie outside"
        axes.text(0.5, 0.02, note, transform=axes.transAxes, ha="center", fontsize=7.5, color=GREY)
