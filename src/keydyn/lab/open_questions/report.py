"""Runs and reports all open questions: a section for each, with its answer, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from keydyn.lab.frame.outputs import Outputs, read_frames
from keydyn.lab.frame.report import Section
from keydyn.lab.frame.resuming import Parts, Piece, frame_of, run_pieces
from keydyn.lab.frame.study import ResultsPage, Values
from keydyn.lab.frame.study_data import Row
from keydyn.lab.frame.tables import Table
from keydyn.lab.open_questions import joint_likelihood, keys_from_timings, states, trained
from keydyn.lab.open_questions.question import Frames, Question

# In the order of the report.
QUESTIONS: tuple[Question, ...] = (
    joint_likelihood.QUESTION,
    keys_from_timings.QUESTION,
    trained.CRITERION,
    trained.HYBRID,
    states.QUESTION,
)
LEAD = (
    "The paper ends with questions; each is asked here with the answer that the tables of its section give. "
    "Measured by this run."
)


def run_questions(rows: Sequence[Row], seed: int, parts: Parts) -> dict[str, pd.DataFrame]:
    """Run all measurements, by the name of the frame; parts made from the same inputs are reused.

    The work of all questions is distributed together, so that no core waits for the end of a question.
    """
    pieces: dict[str, Sequence[Piece]] = {}
    for question in QUESTIONS:
        pieces |= question.pieces(rows, seed)
    made = run_pieces([piece for several in pieces.values() for piece in several], parts)
    return {name: frame_of(made, several) for name, several in pieces.items() if several}


def write(outputs: Outputs, measured: Frames, facts: Mapping[str, Any]) -> list[Table]:
    """Write tables, figures and the report; returns the first table of each question for the terminal."""
    outputs.frames(**measured)
    sections, words, shown = [], [], []
    for question in QUESTIONS:
        section = _section(outputs, question, measured, int(facts.get("seed", 0)))
        if section is not None:
            sections.append(section)
            shown.append(section.tables[0])
            # The question, its answer and its method, for the page of results.
            answered = " ".join(question.answered(outputs.tables))
            words += [f"**{question.asks}** {answered}", *question.method]
    outputs.words(words)
    outputs.report("Open questions", [LEAD], sections, facts)
    return shown


def read(folder: Path) -> dict[str, pd.DataFrame]:
    """Read all results that a run kept in its folder."""
    return read_frames(folder, [path.stem for path in sorted(folder.glob("*.parquet"))])


def _section(outputs: Outputs, question: Question, measured: Frames, seed: int) -> Section | None:
    """The section of a question; None if there are no measurements for it."""
    if not all(name in measured for name in question.frames):
        return None
    made = [table.make(measured, seed) for table in question.tables.values()]
    tables = [outputs.table(table) for table in made if table is not None]
    pictures = [
        outputs.figure(figure.draw(outputs.tables), name, figure.caption, figure.alt)
        for name, figure in question.figures.items()
    ]
    paragraphs = [question.asks, " ".join(question.answered(outputs.tables)), *question.method]
    return Section(question.title, paragraphs, tables, pictures)


def answer(values: Values) -> str:
    """The first sentence of each answer."""
    return " ".join(sentences[0] for question in QUESTIONS if (sentences := question.answered(values)))


PAGE = ResultsPage(
    "Open questions",
    "What are the answers to the questions that the paper leaves open?",
    answer,
    tuple(name for question in QUESTIONS for name in question.tables),
    {name: table.reading for question in QUESTIONS for name, table in question.tables.items()},
    {name: figure.caption for question in QUESTIONS for name, figure in question.figures.items()},
)
