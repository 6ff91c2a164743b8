"""Does discriminative training improve recognition? A criterion, and a hybrid machine (Section 5.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from keydyn.detectors import HybridPOHMM
from keydyn.evaluation.rates.confidence import compare_with_best, mean_estimate, signed_rank_p
from keydyn.lab.drawing.panels import estimates_of, intervals_figure
from keydyn.lab.frame.names import dataset_name, detector_name, figures_of, listed, of_all, span
from keydyn.lab.frame.study import Values
from keydyn.lab.frame.tables import DATASET, DETECTOR, Column, Table, estimate_column, p_column
from keydyn.lab.open_questions.question import Question, QuestionFigure, QuestionTable
from keydyn.lab.open_questions.trained_scores import (
    ALL,
    CRITERIA,
    FIRST,
    FOLDS,
    FRAME,
    MACHINES,
    RIVALS,
    STEPS,
    STRENGTHS,
    pieces,
    reported,
    tried,
)

FIGURES = {"acc": ("Accuracy", True), "eer": ("Equal error rate", False)}
START = "pohmm-recommended"
LEVEL = 0.05


def compared(
    name: str, title: str, measured: pd.DataFrame, detectors: Sequence[str], enrolments: str, seed: int
) -> Table:
    """Accuracy and equal error rate of detectors and rivals, with tests against the recommended POHMM."""
    users = reported(measured, [*RIVALS, *detectors], enrolments)
    rows = []
    for dataset, of_dataset in users.groupby("dataset", sort=False):
        wide = {f: of_dataset.pivot_table(index="user", columns="detector", values=f) for f in FIGURES}
        bold = {f: compare_with_best(wide[f], higher)["bold"] for f, (_, higher) in FIGURES.items()}
        for detector, own in of_dataset.groupby("detector", sort=False):
            settings = own["candidate"].iloc[0].partition(", ")[2]
            row = {"dataset": dataset, "detector": detector, "settings": settings, "users": len(own)}
            for figure in FIGURES:
                row |= mean_estimate(wide[figure][detector].to_numpy(), seed).columns(figure)
                row[f"{figure}_bold"] = bool(bold[figure][detector])
                pair = wide[figure][detector].to_numpy(), wide[figure][START].to_numpy()
                row[f"{figure}_p"] = None if detector == START else signed_rank_p(*pair)
            rows.append(row)
    columns = [DATASET, DETECTOR]
    for figure, (words, _) in FIGURES.items():
        columns.append(estimate_column(words, figure, bold=itemgetter(f"{figure}_bold")))
        columns.append(p_column(f"p, {words.lower()}", f"{figure}_p"))
    columns.append(Column("Settings", "settings", lambda text: text or "–"))
    which = "only the first enrolments of each dataset" if enrolments == FIRST else "the paper's protocol"
    note = (
        f"Means over users with 95 % intervals, by {which}. Bold: not significantly worse than the best "
        "(Wilcoxon signed-rank over users, Bonferroni). p: the same test against the recommended POHMM, "
        "without correction. Settings: what the other recordings choose by their equal error rate."
    )
    return Table(name, title, note, pd.DataFrame(rows), columns, labels=2)


def settings_tried(
    name: str, title: str, measured: pd.DataFrame, detectors: Sequence[str], enrolments: str
) -> Table:
    """The equal error rate of every candidate on every dataset."""
    frames = [tried(measured, detector, enrolments).assign(detector=detector) for detector in detectors]
    frame = pd.concat(frames, ignore_index=True)
    frame["settings"] = frame["candidate"].str.partition(", ")[2]
    datasets = list(dict.fromkeys(frame["dataset"]))
    columns = [
        *(DETECTOR, Column("Settings", "settings")),
        *(Column(dataset_name(one), "eer", "{:.3f}".format, of=one) for one in datasets),
    ]
    note = "Equal error rate, mean over users. A dataset's column has no part in the choice for that dataset."
    ordered = frame[["detector", "settings", "dataset", "acc", "eer"]]
    return Table(name, title, note, ordered, columns, labels=2, across="dataset")


def draw_compared(table: pd.DataFrame) -> Figure:
    """Plot equal error rates by dataset and detector."""
    panels = estimates_of(table, {"": "eer"}, lambda row: str(row["detector"]))
    return intervals_figure(panels, "equal error rate, mean over users")


def gain_words(table: pd.DataFrame, detector: str) -> str:
    """A sentence on a detector's equal error rates relative to the recommended POHMM."""
    own = table[table["detector"] == detector]
    start = figures_of(table[table["detector"] == START], "eer")
    eer = figures_of(own, "eer")
    change = {name: eer[name] - start[name] for name in eer}
    sure = {row["dataset"]: bool(row["eer_p"] < LEVEL) for row in own.to_dict("records")}
    better, worse = (sum(sure[name] and sign * change[name] > 0 for name in change) for sign in (-1.0, 1.0))
    return (
        f"{detector_name(detector)} changes the equal error rate of the recommended POHMM by "
        f"{span(change, lambda points: f'{100 * points:+.2f} points')}, significantly for the better on "
        f"{of_all(better, len(change), 'dataset')} and for the worse on "
        f"{of_all(worse, len(change), 'dataset')}"
    )


def best_words(table: pd.DataFrame) -> str:
    """A sentence that names the detector with the lowest equal error rate on each dataset."""
    best: dict[str, list[str]] = {}
    for dataset, rows in table.groupby("dataset", sort=False):
        name = detector_name(rows.iloc[int(rows["eer"].to_numpy().argmin())]["detector"])
        best.setdefault(name, []).append(dataset_name(dataset))
    own = [f"{name} has the lowest equal error rate on {listed(on)}" for name, on in best.items()]
    return "; ".join(own)


def settings_words(table: pd.DataFrame, detectors: Sequence[str]) -> str:
    """A clause on the settings that the other recordings select, or that there are no others."""
    if table["dataset"].str.removesuffix("+").nunique() < 2:
        return "there is no other recording to choose settings, so the first were used"
    parts = []
    for detector in detectors:
        own = table[table["detector"] == detector]
        different = Counter(own["settings"].astype(str))
        ((most, count),) = different.most_common(1)
        parts.append(f"{most} for {detector_name(detector)} on {of_all(count, len(own), 'dataset')}")
    return f"the other recordings choose {listed(parts)}"


def _question(name: str, which: tuple[Sequence[str], str], **said: Any) -> Question:
    """A question about the gain from detectors trained together over models without such training.

    In `said`, `compared` and `tried` are the titles of the tables, each with a sentence on how to read it;
    the rest are attributes of the question.
    """
    (title, reading), (title_of_all, reading_of_all) = said.pop("compared"), said.pop("tried")
    settings, caption = f"{name}_settings", said.pop("caption")

    def answer(values: Values) -> tuple[str, str]:
        """The changes due to the detectors, and where the lowest error rates are."""
        found = values[name]
        return (
            "; ".join(gain_words(found, detector) for detector in which[0]) + ".",
            f"{best_words(found)}; {settings_words(found, which[0])}.",
        )

    return Question(
        pieces=pieces,
        frames=(FRAME,),
        tables={
            name: QuestionTable(
                lambda measured, seed: compared(name, title, measured[FRAME], *which, seed), reading
            ),
            settings: QuestionTable(
                lambda measured, _: settings_tried(settings, title_of_all, measured[FRAME], *which),
                reading_of_all,
            ),
        },
        answer=answer,
        figures={
            name: QuestionFigure(
                lambda values: draw_compared(values[name]),
                f"{caption} Bars are 95 % intervals over users.",
                "A panel for each dataset, with a dot and an interval for each detector.",
            )
        },
        **said,
    )


CRITERION = _question(
    "criterion",
    (tuple(kind.name for kind in CRITERIA), FIRST),
    title="A discriminative criterion",
    asks="Do models that are trained to tell people apart recognise them better?",
    compared=(
        "Training by a criterion that tells people apart",
        "Compare the two criteria with the recommended POHMM, from which their training starts.",
    ),
    tried=("Every strength that was tried", "Each line is a criterion and its strength; lower is better."),
    caption="Equal error rates of POHMMs trained by each person's own likelihood and by two criteria that "
    "compare people, and of the population model.",
    method=(
        "The models of all people start from the recommended POHMM of each, fitted to that person's "
        f"samples, and take at most {STEPS} steps of a quasi-Newton search along the gradient of the "
        "criterion over all people's training samples. Training takes long, so all detectors of this "
        "question are compared on the first enrolments only "
        f"({', '.join(f'{name}: {n}' for name, n in FOLDS.items() if name != 'simulated')}).",
    ),
    settings={"strength and lean": STRENGTHS, "steps": STEPS, "enrolments": FOLDS},
)
HYBRID = _question(
    "hybrid",
    ((HybridPOHMM.name,), ALL),
    title="A hybrid",
    asks="Does a discriminative machine that uses the vectors of a POHMM recognise people better?",
    compared=(
        "A machine on a POHMM's vectors",
        "Compare the hybrid with the POHMMs and with the population model.",
    ),
    tried=("Every machine that was tried", "Each line is a machine; lower is better."),
    caption="Equal error rates of the hybrid, of POHMMs and of the population model.",
    method=(
        "The hybrid's POHMM is fitted to everyone's training samples, and a support vector machine tells the "
        "vectors of a person's samples from those of all others; both learn only from training samples.",
    ),
    settings={"kernel, C and γ": MACHINES},
)
