"""Writes tables, the figure and the report that compare the POHMM with its relatives (Section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from keydyn.evaluation.continuous.rejection import Times, continuous
from keydyn.evaluation.rates.verification import recognition
from keydyn.figures.style import house_style, text_of
from keydyn.lab.drawing.panels import Curve, RowsOfPanels, rows_figure
from keydyn.lab.frame.names import dataset_name, detector_name, figures_of, lead_of, of_all, percent, span
from keydyn.lab.frame.outputs import Outputs, read_frames, read_ranks, read_scores
from keydyn.lab.frame.report import Section
from keydyn.lab.frame.score_datasets import ranked_of, scored_of
from keydyn.lab.frame.study import ResultsPage, Values
from keydyn.lab.frame.tables import DATASET, DETECTOR, Column, Table, mean_column, number_column
from keydyn.lab.population.tables import METRICS, Users, compared_rows, users_of
from keydyn.lab.recognition.tables import MEAN_NOTE, Key
from keydyn.lab.relatives.measurements import ESTIMATION, FOLDS, SCORING, UNSEEN

DEPTH = 1.0  # depth of an axis, so that one poor model does not flatten the others


def _limits(values: list[float]) -> tuple[float, float]:
    """The limits of an axis for these values, at most `DEPTH` below the highest."""
    high = max(values)
    low = max(min(values), high - DEPTH)
    margin = 0.06 * max(high - low, 1e-3)
    return low - margin, high + margin


def lost_context_figure(panels: RowsOfPanels) -> Figure:
    """Plot every figure against the share of events without context, by (dataset, situation).

    Panels of the same dataset in a row share their scale. Lines leave the panel where they are more than 1
    below the highest value.
    """
    with house_style():
        figure, grid = rows_figure(panels, "contexts lost", 1.6, 1.75, 3.0, sharex=True)
        first = {dataset: column for column, (dataset, _) in reversed([*enumerate(panels)])}
        for column, (dataset, situation) in enumerate(panels):
            grid[0, column].set_title(f"{text_of(dataset_name(dataset))}\n{text_of(situation)}", size=8.5)
            of_dataset = [panel for key, panel in panels.items() if key[0] == dataset]
            for row, title in enumerate(of_dataset[0]):
                axes = grid[row, column]
                if column > first[dataset]:
                    axes.sharey(grid[row, first[dataset]])
                    axes.tick_params(labelleft=False)
                axes.xaxis.set_major_locator(FixedLocator([0.0, 0.5, 1.0]))
                axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:.0%}"))
                values = [y for panel in of_dataset for curve in panel[title].values() for y in curve.y]
                axes.set_ylim(*_limits([float(y) for y in values]))
        return figure


FIGURES = {"acc": "Accuracy", "eer": "Equal error rate", "amrt": "Rejection time"}
LOSSES = "lost_context"
LOST = {"log_likelihood": "ln likelihood per event", "acc": "accuracy", "eer": "equal error rate"}
SITUATIONS = {ESTIMATION: "missing in estimation", SCORING: "missing in scoring", UNSEEN: "unseen in scoring"}
WHAT_IS_LOST = (
    "An event that loses its key name has no context. To the POHMM its event type is missing and to the "
    "partially-HMM its label. Context-HMM and partly-HMM have no key names: their context is the interval "
    "before, which is withheld if its event lost its name; the second context-HMM has the key "
    "before as its context. Times are never lost, so that all models score the same values.",
    "Missing in estimation: training events lose their names, queries have all. Missing in scoring: the "
    "other way round. Unseen: all events of some keys, which have no name in estimation and one in scoring "
    "that the template never saw. These keys are drawn by the seed and are the same for all models.",
    "Some lines are flat by construction, which is no merit. The HMM has no context to lose. No "
    "interval is unseen to bins and lines, so that nothing changes there for the context-HMM (interval) and "
    "the partly-HMM. The pooled tables that a context-HMM uses for what it has not seen, and the average "
    "value that a partly-HMM falls back to, are ours; the original models have no answer.",
    "Log-likelihoods are of a user's own samples, held out, under the user's own template, in nats per "
    "event; densities have the published floor in all models. The log-likelihood of the partially-HMM "
    "leaves out the labels: ln P(x, labels) − ln P(labels).",
)


def write(
    outputs: Outputs, measured: tuple[pa.Table, pa.Table, pd.DataFrame], facts: Mapping[str, Any]
) -> list[Table]:
    """Write tables, the figure and the report; returns the tables for the terminal."""
    scores, ranks, losses = measured
    outputs.scores(scores)
    outputs.ranks(ranks)
    outputs.frames(lost_context=losses)
    figures = {key: recognition(of) for key, of in scored_of(scores).items()}
    watched = {key: continuous(of, seed=facts.get("seed", 0)) for key, of in ranked_of(ranks).items()}
    times = {key: of.rejection for key, of in watched.items()}
    main = relatives_table(users_of(figures, watched), times)
    sections = [Section("Five models", (), [main])]
    lost = lost_frame(losses)
    if len(lost):
        picture = outputs.figure(
            lost_context_figure(lost_curves(lost)),
            LOSSES,
            "Log-likelihood, accuracy and equal error rate while more and more events lose their context; "
            "mean over users. Log-likelihoods more than 1 below the highest are below their panel; the table "
            "has them.",
            "Rows of panels, one for each dataset and situation, with a line for each model.",
        )
        used = ", ".join(f"{dataset_name(name)} {FOLDS[name]}" for name in dict.fromkeys(lost["dataset"]))
        paragraphs = (*WHAT_IS_LOST, f"Of the protocol's enrolments the first are used: {used}.")
        sections.append(Section("Contexts that get lost", paragraphs, [lost_table(lost)], [picture]))
    outputs.report("The POHMM and its relatives", lead_of(facts), sections, facts)
    return [main]


def read(folder: Path) -> tuple[pa.Table, pa.Table, pd.DataFrame]:
    """Read the scores, ranks and losses that a run kept in its folder."""
    return read_scores(folder), read_ranks(folder), *read_frames(folder, [LOSSES]).values()


def relatives_table(users: Users, times: Mapping[Key, Times]) -> Table:
    """Identification, verification and rejection time of all models, each tested against the best."""
    columns = [
        mean_column(title, metric, METRICS[metric][2], bold=itemgetter(f"{metric}_best"))
        for metric, title in FIGURES.items()
    ]
    return Table(
        "relatives",
        "The POHMM and its relatives",
        f"{MEAN_NOTE} Rejection time in keys: mean (standard deviation) over samples of the average maximum "
        "rejection time. Bold: not significantly worse than the best of the five (Wilcoxon signed-rank over "
        "users, p above 0.05 / 4; the CSV file has every p). HMM and POHMM have the published settings, the "
        "others their closest equivalent. Closed set.",
        pd.DataFrame(compared_rows(users, times)),
        [DATASET, DETECTOR, *columns],
        labels=2,
    )


def lost_frame(losses: pd.DataFrame) -> pd.DataFrame:
    """Means over users, one row per dataset, situation, model and share."""
    keys = ["dataset", "situation", "detector", "share"]
    if not len(losses):
        return pd.DataFrame(columns=[*keys, "lost", "touched", *LOST])
    means = {name: (name, "mean") for name in LOST}
    grouped = losses.groupby(keys, sort=False)
    return grouped.agg(lost=("lost", "first"), touched=("touched", "first"), **means).reset_index()


def lost_table(lost: pd.DataFrame) -> Table:
    """The values behind the figure."""
    columns = [
        *(DATASET, Column("Context", "situation", SITUATIONS.__getitem__)),
        *(Column("Model", "detector", detector_name), Column("Lost", "lost", "{:.0%}".format)),
        number_column("ln likelihood per event", "log_likelihood"),
        *(number_column("Accuracy", "acc"), number_column("Equal error rate", "eer")),
    ]
    note = (
        "Mean over users. Lost: share of events without a context. A model that is not affected by a loss "
        "has the same figures throughout (column touched of the CSV file)."
    )
    return Table("relatives_lost_context", "Contexts that get lost", note, lost, columns, labels=4)


def lost_curves(lost: pd.DataFrame) -> dict[tuple[str, str], dict[str, dict[str, Curve]]]:
    """The curves in the panels of the figure."""
    panels: dict[tuple[str, str], dict[str, dict[str, Curve]]] = {}
    for (dataset, situation, detector), of in lost.groupby(["dataset", "situation", "detector"], sort=False):
        panel = panels.setdefault((str(dataset), SITUATIONS[str(situation)]), {})
        x = of["lost"].to_numpy(dtype=np.float64)
        for metric, title in LOST.items():
            curve = Curve(x, of[metric].to_numpy(dtype=np.float64))
            panel.setdefault(title, {})[str(detector)] = curve
    return panels


POHMM, HMM = "pohmm", "hmm"
BEST = ["acc_best", "eer_best", "amrt_best"]


def answer(values: Values) -> str:
    """A summary: on how many datasets the POHMM is best, and how far the best relative is behind."""
    frame = values["relatives"]
    best, alone, nearest = 0, 0, {}
    for dataset, rows in frame.groupby("dataset", sort=False):
        pohmm = rows["detector"] == POHMM
        best += bool(rows.loc[pohmm, BEST].to_numpy(dtype=bool).all())
        alone += all(rows[name].tolist() == pohmm.tolist() for name in BEST)
        nearest[str(dataset)] = rows.loc[~rows["detector"].isin((POHMM, HMM)), "acc_mean"].max()
    n_datasets, pohmm_figures = len(nearest), figures_of(frame[frame["detector"] == POHMM], "acc_mean")
    return (
        f"On {of_all(best, n_datasets, 'dataset')} no other model is significantly better than the POHMM by "
        f"accuracy, equal error rate or rejection time, and on {of_all(alone, n_datasets, 'dataset')} it is "
        "significantly better than all others by all three. It identifies "
        f"{span(pohmm_figures, percent)} of samples, the best of the three relatives "
        f"{span(nearest, percent)}."
    )


PAGE = ResultsPage(
    "The POHMM and its relatives",
    "Is the POHMM better than earlier models that use context?",
    answer,
    ("relatives",),
    {"relatives": "Compare the lines of a dataset: higher is better for accuracy, lower for the other two."},
    {
        "lost_context": "What happens as more and more events lose their context (to the right): "
        "log-likelihood, accuracy and equal error rate of each model. Flat lines belong to models that never "
        "had the context."
    },
)
