"""A page of results: docs/results/STUDY.md, and what a study's own report begins with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pandas as pd

# Tables that a run left, by name: their exact values, as in the CSV files.
Values = Mapping[str, pd.DataFrame]


@dataclass(frozen=True)
class Run:
    """A run of a study, as its page shows it.

    Attributes
    ----------
    tables : their names, each with a sentence that says how to read it, in the order of the page
    figures : their names with captions; the first is shown at the top
    title : the heading of a run that is not the first
    folder : the folder of the run below out/, if it is not called like the study
    arguments : those that the run gives to the command
    """

    tables: Mapping[str, str]
    figures: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    folder: str = ""
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class ResultsPage:
    """A study's page.

    Attributes
    ----------
    question : what the study asks, in one sentence
    answer : what it found, in two sentences, from the values of a run
    values : the tables that the answer is computed from, as far as a run has them
    runs : what is shown; the first run answers the question
    """

    title: str
    question: str
    answer: Callable[[Values], str]
    values: tuple[str, ...]
    runs: tuple[Run, ...]

    def opening(self, tables: Values) -> list[str]:
        """The paragraphs that a report begins with."""
        return [self.question, self.answer(tables)]
