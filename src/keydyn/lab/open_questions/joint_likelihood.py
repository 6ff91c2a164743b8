"""Does the text that people write help to recognise them? The joint likelihood of Section 7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from keydyn.detectors import make_detector
from keydyn.evaluation.protocols.protocol import MonacoTappert
from keydyn.evaluation.rates.confidence import signed_rank_p
from keydyn.keystrokes.samples import Samples
from keydyn.lab.drawing.curves import user_curves_figure
from keydyn.lab.drawing.panels import curves_of
from keydyn.lab.frame.chosen import SIMULATED
from keydyn.lab.frame.names import dataset_name, listed, percent
from keydyn.lab.frame.resuming import Piece
from keydyn.lab.frame.score_datasets import inputs_of
from keydyn.lab.frame.study import Values
from keydyn.lab.frame.study_data import Row
from keydyn.lab.frame.tables import DATASET, Column, Table, estimate_column, fixed, share_column
from keydyn.lab.open_questions.question import Frames, Question, QuestionFigure, QuestionTable, mean_columns
from keydyn.lab.open_questions.typed_text import (
    BOTH,
    DETECTOR,
    ORDER,
    TEXT,
    TIMES,
    evidence,
    groups_of_same_texts,
    kept_keys,
    of_common_text,
    with_keys,
)

ALL, SAME = "joint_likelihood", "same_text"
# Numbers of first keys of a sample that are judged, in addition to all keys.
LENGTHS = {"essay": (10, 50, 100, 250), "fable": (10, 25, 50), SIMULATED: (5,)}
COPIED = ("fable", SIMULATED)
AS_TYPED, UNDONE, COMMON = "as typed", "corrections undone", "the common text"
FIGURES = {"acc": "accuracy", "eer": "equal error rate, closed set", "eer_open": "equal error rate, open set"}


def pieces(rows: Sequence[Row], seed: int) -> Mapping[str, Sequence[Piece]]:
    """Pieces for all people of long texts, and for groups of people who copied the same texts."""
    return {
        ALL: [_piece(row, ALL, all_people) for row in rows if row.name in LENGTHS],
        SAME: [_piece(row, SAME, same_texts) for row in rows if row.name in COPIED],
    }


def _piece(row: Row, name: str, make: Any) -> Piece:
    inputs = inputs_of(row, make_detector(DETECTOR)) | {"order": ORDER, "lengths": LENGTHS[row.name]}
    cost = float(row.samples.sequences.n_events)
    title = f"{row.name} · joint likelihood" + (" on the same texts" if name == SAME else "")
    return Piece((f"{row.name}-{name}",), inputs, [partial(make, row)], title, cost)


def all_people(row: Row) -> pd.DataFrame:
    """The results of `evidence` under the protocol of the row."""
    return evidence(row.protocol, row.samples, LENGTHS[row.name]).assign(dataset=row.name)


def same_texts(row: Row) -> pd.DataFrame:
    """The results of `evidence` among people who copied the same texts, with and without typing errors.

    Each text in turn is left out of all enrolments. `group` numbers the groups, `people` and `samples` are
    counts, and `errors` names the treatment of typing errors.
    """
    frames = []
    for number, group in enumerate(groups_of_same_texts(row.samples), 1):
        labels: dict[str, Any] = {
            "dataset": row.name,
            "group": number,
            "people": len(group.people[1]),
            "samples": int(group.numbers.max()) + 1,
        }
        kept: dict[str, Samples] = {
            AS_TYPED: group,
            UNDONE: with_keys(group, kept_keys(group.sequences)),
            COMMON: of_common_text(group),
        }
        for errors, samples in kept.items():
            timed = ~np.isnan(samples.sequences.X).all(axis=1)
            left = float(timed.sum() / group.sequences.n_events)
            found = evidence(MonacoTappert(), samples, ())
            frames.append(found.assign(**labels, errors=errors, left=left))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame({"user": []}, dtype=str)


def joint_table(measured: Frames, seed: int) -> Table:
    """Recognition by each kind of evidence, by the number of keys."""
    rows = []
    for (dataset, keys), several in measured[ALL].groupby(["dataset", "keys"], sort=False):
        people = several["user"].nunique()
        times = several[several["evidence"] == TIMES].set_index("user")
        for name, found in several.groupby("evidence", sort=False):
            own = found.set_index("user").loc[times.index]
            line: dict[str, Any] = {"dataset": dataset, "keys": keys, "evidence": name, "people": people}
            for figure in (*FIGURES, "rejection"):
                line |= mean_columns(own[figure], figure, seed)
            compared = name == BOTH
            for figure in ("acc", "eer_open"):
                both = own[figure].to_numpy(), times[figure].to_numpy()
                line[f"{figure}_p"] = signed_rank_p(*both) if compared else None
            rows.append(line)
    columns = [
        *(DATASET, Column("Keys", "keys"), Column("Evidence", "evidence")),
        estimate_column("Accuracy, %", "acc", 1, 100.0),
        estimate_column("EER closed, %", "eer", 1, 100.0),
        estimate_column("EER open, %", "eer_open", 1, 100.0),
        estimate_column("Rejection, keys", "rejection", 1),
        Column("p, accuracy", "acc_p", fixed),
        Column("p, EER open", "eer_open_p", fixed),
    ]
    note = (
        "Means over people with 95 % intervals. EER open: the impostor's own template is left out of the "
        "cohort that normalises. Rejection: the average maximum rejection time, whole samples, closed set. "
        f"p: Wilcoxon's signed-rank test of {BOTH} against {TIMES} over people, not corrected for the number "
        "of lines."
    )
    title = "How people type, what they type, and both"
    return Table(ALL, title, note, pd.DataFrame(rows), columns, labels=3)


def same_text_table(measured: Frames, seed: int) -> Table | None:
    """Recognition among people who copied the same texts; None if there are none."""
    if SAME not in measured or measured[SAME].empty:
        return None
    rows = []
    keys = ["dataset", "group", "errors", "evidence"]
    for values, found in measured[SAME].groupby(keys, sort=False):
        line: dict[str, Any] = dict(zip(keys, values, strict=True))
        line |= {name: found[name].iloc[0] for name in ("people", "samples", "left")}
        line["chance"] = 1.0 / line["people"]
        for figure in FIGURES:
            line |= mean_columns(found[figure], figure, seed)
        rows.append(line)
    columns = [
        *(DATASET, Column("Group", ("group", "people"), lambda group, people: f"{group}: {people} people")),
        *(Column("Typing errors", "errors"), Column("Evidence", "evidence")),
        share_column("Keys left", "left"),
        estimate_column("Accuracy, %", "acc", 1, 100.0),
        share_column("By chance", "chance"),
        estimate_column("EER closed, %", "eer", 1, 100.0),
        estimate_column("EER open, %", "eer_open", 1, 100.0),
    ]
    note = (
        "People of a group have copied the same texts, and each text in turn is left out of everybody's "
        "enrolment. Corrections undone: backspaces, what they erased and keys that print nothing are left "
        "out. The common text: samples are changed to the text that they have in common, in which keys that "
        "a sample lacks have no times; people still differ in where they begin and end."
    )
    title = "Among people who have copied the same texts"
    return Table(SAME, title, note, pd.DataFrame(rows), columns, labels=4)


def draw(values: Values) -> Figure:
    """Plot accuracy and equal error rates against the number of keys, a column per dataset."""
    figures = {title: figure for figure, title in FIGURES.items()}
    return user_curves_figure(curves_of(values[ALL], "keys", figures, "evidence"), "keys typed")


def answer(values: Values) -> tuple[str, str]:
    """The gain from the text on whole samples, and its value among people who typed the same text."""
    found = []
    for dataset, rows in values[ALL].groupby("dataset", sort=False):
        whole = rows[rows["keys"] == rows["keys"].max()].set_index("evidence")
        times, text, both = (whole.loc[name] for name in (TIMES, TEXT, BOTH))
        clear = "" if both["eer_open_p"] < 0.05 else ", which may be chance"
        found.append(
            f"{percent(text['acc'])} of samples of {int(whole['keys'].iloc[0])} keys of "
            f"{dataset_name(dataset)}, how they type it {percent(times['acc'])} and both "
            f"{percent(both['acc'])}, with which the equal error rate of an open set goes from "
            f"{percent(times['eer_open'])} to {percent(both['eer_open'])}{clear}"
        )
    same = []
    copied = values.get(SAME, pd.DataFrame(columns=["dataset", "group", "evidence"]))
    texts = copied[copied["evidence"] == TEXT]
    for (name, number), rows in texts.groupby(["dataset", "group"], sort=False):
        acc = rows.set_index("errors")["acc"]
        same.append(
            f"{percent(acc[AS_TYPED])} as typed and {percent(acc[COMMON])} without typing errors, where "
            f"chance is {percent(rows['chance'].iloc[0])} ({dataset_name(name)}, group {number})"
        )
    return (
        f"What people write identifies {'; '.join(found)}.",
        f"Where all have copied the same texts, what they write identifies {listed(same)}." if same else "",
    )


QUESTION = Question(
    "The joint likelihood",
    "Does what people write, in addition to how they type it, tell who they are?",
    pieces,
    (ALL,),
    {
        ALL: QuestionTable(
            joint_table, f"Compare the lines of a dataset and a number of keys: {BOTH} with {TIMES} alone."
        ),
        SAME: QuestionTable(
            same_text_table,
            f"The lines of {TEXT} should be at chance where typing errors are removed; what they have above "
            "chance as typed is due to typing errors and the habit of correcting them.",
        ),
    },
    answer,
    {
        ALL: QuestionFigure(
            draw,
            "Recognition by times, by text and by both, by the number of keys typed, with 95 % bands over "
            "people.",
            "A column of panels for each dataset, with three lines over the number of keys.",
        )
    },
    (
        f"{TIMES} is the likelihood of the times under a person's POHMM with the published settings, {TEXT} "
        "that of the keys under a chain of the keys that the person typed for enrolment, with Witten and "
        f"Bell's share for pairs that did not occur, and {BOTH} their product, with no weight to choose. "
        "Texts are those of the enrolment: essays of one person share subjects, and some belong to one "
        "story, so the text also reveals the subject.",
        "Samples of fable are of the same text where they share half of the runs of four keys. One group of "
        "people has copied four rhymes, each once, another one fable four times. Under the paper's protocol "
        "the owner of a sample of the first group has not typed its text for enrolment while others have: "
        "there the text speaks against the owner.",
    ),
    {"detector": DETECTOR, "order of the text": ORDER, "lengths": LENGTHS},
)
