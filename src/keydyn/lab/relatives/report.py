"""The POHMM beside its relatives (Section 6): tables, figure and verdict from what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from keydyn.evaluation.continuous.rejection import continuous
from keydyn.evaluation.rates.recognition import recognition
from keydyn.evaluation.rates.significance import compare_with_best
from keydyn.lab.drawing.panels import Curve
from keydyn.lab.frame.names import dataset_name, detector_name
from keydyn.lab.frame.outputs import Outputs, read_table
from keydyn.lab.frame.report import Section
from keydyn.lab.frame.score_files import ranked_of, scored_of
from keydyn.lab.frame.tables import DATASET, DETECTOR, Column, Table, mean_column, number_column, table_of
from keydyn.lab.recognition.report import lead_of
from keydyn.lab.recognition.tables import MEAN_NOTE
from keydyn.lab.relatives.figures import lost_context_figure
from keydyn.lab.relatives.measurements import ESTIMATION, FOLDS, SCORING, UNSEEN
from keydyn.lab.relatives.verdict import verdict

LOSSES = "lost_context"
# Figure → title, whether more is better, decimals
METRICS = {
    "acc": ("Accuracy", True, 3),
    "eer": ("Equal error rate", False, 3),
    "amrt": ("Rejection time", False, 2),
}
LOST = {"log_likelihood": "ln likelihood per event", "acc": "accuracy", "eer": "equal error rate"}
SITUATIONS = {
    ESTIMATION: "missing in estimation",
    SCORING: "missing in scoring",
    UNSEEN: "unseen in scoring",
}
WHAT_IS_LOST = (
    "An event that loses its key name has no context. To the POHMM its event type is missing and to the "
    "partially-HMM its label. Context-HMM and partly-HMM have no key names: their context is the interval "
    "before, which is withheld if its event lost its name; the second context-HMM has the key "
    "before as its context. Times are never lost, so that all models score the same values.",
    "Missing in estimation: training events lose their names, queries have all. Missing in scoring: the "
    "other way round. Unseen: all events of some keys, which have no name in estimation and one in scoring "
    "that the template never saw. Which ones is drawn by the seed, and is the same for all models.",
    "Some lines are flat by construction, which is no merit. The HMM has no context to lose. No "
    "interval is unseen to bins and lines, so that nothing changes there for the context-HMM (interval) and "
    "the partly-HMM. The pooled tables that a context-HMM uses for what it has not seen, and the average "
    "value that a partly-HMM falls back to, are ours; the original models have no answer.",
    "Log-likelihoods are of a user's own samples, held out, under the user's own template, in nats per "
    "event; densities have the published floor in all models. The partially-HMM's is without what it says of "
    "the labels: ln P(x, labels) − ln P(labels).",
)


def write_relatives(
    outputs: Outputs,
    scores: pa.Table,
    ranks: pa.Table,
    losses: pd.DataFrame,
    facts: Mapping[str, Any],
    seed: int = 0,
) -> list[Table]:
    """Tables, figure and report from scores, ranks and losses; what the terminal shows."""
    outputs.scores(scores)
    outputs.ranks(ranks)
    outputs.frame(losses, LOSSES)
    users = user_figures(scores, ranks, seed)
    measured = outputs.table(relatives_table(users))
    sections = [Section("Five models", (), [measured])]
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
        sections.append(
            Section("Contexts that get lost", paragraphs, [outputs.table(lost_table(lost))], [picture])
        )
    sections.insert(0, Section("Verdict", [verdict(measured.frame, lost)]))
    outputs.report("The POHMM and its relatives", lead_of(facts), sections, facts)
    return [measured]


def read_losses(folder: Path) -> pd.DataFrame:
    """What `write_relatives` kept of lost contexts."""
    losses: pd.DataFrame = read_table(folder / f"{LOSSES}.parquet").to_pandas()
    return losses


Users = dict[str, dict[str, dict[str, pd.Series]]]


def user_figures(scores: pa.Table, ranks: pa.Table, seed: int) -> Users:
    """Dataset → figure → detector → the figure of each user; rejection times are those of the samples."""
    figures: Users = {}
    for (dataset, detector), of in scored_of(scores).items():
        users = recognition(of)
        for metric in ("acc", "eer"):
            figures.setdefault(dataset, {}).setdefault(metric, {})[detector] = users[metric]
    for (dataset, detector), ranked in ranked_of(ranks).items():
        times = continuous(ranked, seed=seed).per_sample.dropna(subset="rejection_time")
        of_user = times.set_index("user")["rejection_time"]
        figures.setdefault(dataset, {}).setdefault("amrt", {})[detector] = of_user
    return figures


def relatives_table(users: Users) -> Table:
    """Identification, verification and rejection time of all, each tested against the best."""
    rows = []
    for dataset, metrics in users.items():
        compared = {}
        for metric, by_detector in metrics.items():
            means = {name: values.groupby(level=0).mean() for name, values in by_detector.items()}
            compared[metric] = compare_with_best(pd.DataFrame(means), METRICS[metric][1])
        for detector in next(iter(metrics.values())):
            row: dict[str, Any] = {"dataset": dataset, "detector": detector}
            for metric in METRICS:
                values, tests = metrics[metric][detector], compared[metric]
                row |= {f"{metric}_mean": float(values.mean()), f"{metric}_std": float(values.std())}
                row |= {
                    f"{metric}_{name}": tests[test].to_dict()[detector]
                    for name, test in (("p", "p"), ("best", "bold"))
                }
            rows.append(row)
    figures = [
        mean_column(title, metric, digits, itemgetter(f"{metric}_best"))
        for metric, (title, _, digits) in METRICS.items()
    ]
    return table_of(
        "relatives",
        "The POHMM and its relatives",
        f"{MEAN_NOTE} Rejection time in keys: mean (standard deviation) over samples of the average maximum "
        "rejection time. Bold: not significantly worse than the best of the five (Wilcoxon signed-rank over "
        "users, p above 0.05 / 4; the CSV file has every p). HMM and POHMM have the published settings, the "
        "others their closest equivalent. Closed set.",
        pd.DataFrame(rows),
        [DATASET, DETECTOR, *figures],
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
    """The numbers behind the figure."""
    columns = [
        *(DATASET, Column("Context", "situation", SITUATIONS.__getitem__)),
        *(Column("Model", "detector", detector_name), Column("Lost", "lost", "{:.0%}".format)),
        number_column("ln likelihood per event", "log_likelihood"),
        *(number_column("Accuracy", "acc"), number_column("Equal error rate", "eer")),
    ]
    note = (
        "Mean over users. Lost: share of events without a context. A model to which a loss means nothing has "
        "the same figures throughout (column touched of the CSV file)."
    )
    return table_of("relatives_lost_context", "Contexts that get lost", note, lost, columns, labels=4)


def lost_curves(lost: pd.DataFrame) -> dict[tuple[str, str], dict[str, dict[str, Curve]]]:
    """The panels of the figure."""
    panels: dict[tuple[str, str], dict[str, dict[str, Curve]]] = {}
    for (dataset, situation, detector), of in lost.groupby(["dataset", "situation", "detector"], sort=False):
        panel = panels.setdefault((str(dataset), SITUATIONS[str(situation)]), {})
        x = of["lost"].to_numpy(dtype=np.float64)
        for metric, title in LOST.items():
            curve = Curve(x, of[metric].to_numpy(dtype=np.float64))
            panel.setdefault(title, {})[str(detector)] = curve
    return panels
