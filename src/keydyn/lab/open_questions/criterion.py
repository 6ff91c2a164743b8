"""Does training that tells people apart recognise them better? The criterion of Section 5.2."""

from __future__ import annotations

from keydyn.lab.frame.study import Values
from keydyn.lab.frame.tables import Table
from keydyn.lab.open_questions.question import Frames, Question, QuestionFigure, QuestionTable
from keydyn.lab.open_questions.trained_scores import CRITERIA, FIRST, FOLDS, FRAME, STEPS, STRENGTHS, pieces
from keydyn.lab.open_questions.trained_tables import (
    best_words,
    compared,
    draw_compared,
    gain_words,
    settings_tried,
    settings_words,
)

TABLE, TRIED = "criterion", "criterion_settings"
DETECTORS = tuple(kind.name for kind in CRITERIA)


def table(measured: Frames, seed: int) -> Table:
    """The criteria beside the models that no criterion has trained."""
    title = "Training by a criterion that tells people apart"
    return compared(TABLE, title, measured[FRAME], DETECTORS, FIRST, seed)


def all_settings(measured: Frames, seed: int) -> Table:
    """What every strength gives."""
    return settings_tried(TRIED, "Every strength that was tried", measured[FRAME], DETECTORS, FIRST)


def answer(values: Values) -> tuple[str, str]:
    """What either criterion changes; and where the least error rate is."""
    found = values[TABLE]
    return (
        "; ".join(gain_words(found, name) for name in DETECTORS) + ".",
        f"{best_words(found)}; {settings_words(found, DETECTORS)}.",
    )


QUESTION = Question(
    "A discriminative criterion",
    "Do models recognise people better that are trained to tell them apart?",
    pieces,
    (FRAME,),
    {
        TABLE: QuestionTable(
            table, "Compare the two criteria with the recommended POHMM, from which their training starts."
        ),
        TRIED: QuestionTable(all_settings, "Each line is a criterion and its strength; lower is better."),
    },
    answer,
    {
        TABLE: QuestionFigure(
            lambda values: draw_compared(values[TABLE]),
            "Equal error rates of POHMMs trained by each person's own likelihood and by two criteria that "
            "compare people, and of the population model. Bars are 95 % intervals over users.",
            "A panel for each dataset, with a dot and an interval for each detector.",
        )
    },
    (
        "The models of all people start from the recommended POHMM of each, fitted to that person's samples, "
        f"and take at most {STEPS} steps of a quasi-Newton search along the gradient of the criterion over "
        "all people's training samples. Training takes long, so that all detectors of this question are "
        "compared on the first enrolments alone "
        f"({', '.join(f'{name}: {n}' for name, n in FOLDS.items() if name != 'simulated')}).",
    ),
    {"strength and lean": STRENGTHS, "steps": STEPS, "enrolments": FOLDS},
)
