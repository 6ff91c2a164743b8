"""Defines an open question: one object from which its part of the report and of the page follow.

Each question has a file of its own, which ends in `QUESTION = Question(…)`. To add one, write such a file,
add its `QUESTION` to `report.py`, and add the names of its tables, figures and frames to `study.py`. The
study does the rest: it runs the pieces of work of all questions together, keeps them so that it can resume,
writes each frame, table and figure, and gives each question a section of the report, which begins with its
answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from keydyn.evaluation.rates.confidence import mean_estimate
from keydyn.lab.frame.resuming import Piece
from keydyn.lab.frame.study import Values
from keydyn.lab.frame.study_data import Row
from keydyn.lab.frame.tables import DECIMALS, Table, with_interval

# The measurements, by the name of the frame.
Frames = Mapping[str, pd.DataFrame]


def mean_columns(values: Any, name: str, seed: int) -> dict[str, Any]:
    """The mean over people with its interval, as columns of a table; empty if a value is missing."""
    figures = np.asarray(values, dtype=np.float64)
    if len(figures) and not np.isnan(figures).any():
        return dict(mean_estimate(figures, seed).columns(name))
    return dict.fromkeys(with_interval(name))


@dataclass(frozen=True)
class QuestionTable:
    """A table of a question.

    Attributes
    ----------
    make : returns the table, given the measurements and the seed of its intervals; None without measurements
    reading : a sentence that says how to read it
    """

    make: Callable[[Frames, int], Table | None]
    reading: str


@dataclass(frozen=True)
class QuestionFigure:
    """A figure of a question.

    Attributes
    ----------
    draw : returns the figure, given the values of the question's tables
    caption : explains what the figure shows
    alt : a description for readers who cannot see it
    """

    draw: Callable[[Values], Figure]
    caption: str
    alt: str


@dataclass(frozen=True)
class Question:
    """A question, with its measurements and its answer.

    Attributes
    ----------
    title : the heading of its section
    asks : the question, in one sentence
    pieces : returns the pieces of work for these rows and this seed, by the frame that they add rows to; the
        name of a piece is unique in the study, and each has one part, a frame
    frames : the names of the frames it needs; the question is left out if one is missing
    tables, figures : by name, in the order of the report; the first table always exists
    answer : returns two sentences, computed from the values of the tables: the finding, and its limits. The
        second may be empty if no dataset provides the data for it
    method : paragraphs that describe the measurements
    settings : its entries in run.json
    """

    title: str
    asks: str
    pieces: Callable[[Sequence[Row], int], Mapping[str, Sequence[Piece]]]
    frames: Sequence[str]
    tables: Mapping[str, QuestionTable]
    answer: Callable[[Values], tuple[str, str]]
    figures: Mapping[str, QuestionFigure]
    method: Sequence[str] = ()
    settings: Mapping[str, Any] | None = None

    def answered(self, values: Values) -> list[str]:
        """The sentences of the answer; none if the question was not measured."""
        first = next(iter(self.tables))
        if first not in values or values[first].empty:
            return []
        # Rounded as in the files, so that the page and the report agree.
        as_kept = {name: frame.round(DECIMALS) for name, frame in values.items()}
        return [sentence for sentence in self.answer(as_kept) if sentence]
