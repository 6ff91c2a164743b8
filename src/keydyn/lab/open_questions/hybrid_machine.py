"""Does a discriminative machine on what a POHMM makes of samples recognise people better? (Section 5.2)"""

from __future__ import annotations

from keydyn.detectors import HybridPOHMM
from keydyn.lab.frame.study import Values
from keydyn.lab.frame.tables import Table
from keydyn.lab.open_questions.question import Frames, Question, QuestionFigure, QuestionTable
from keydyn.lab.open_questions.trained_scores import ALL, FRAME, MACHINES, pieces
from keydyn.lab.open_questions.trained_tables import (
    best_words,
    compared,
    draw_compared,
    gain_words,
    settings_tried,
    settings_words,
)

TABLE, TRIED = "hybrid", "hybrid_settings"
DETECTORS = (HybridPOHMM.name,)


def table(measured: Frames, seed: int) -> Table:
    """The hybrid beside the models alone."""
    return compared(TABLE, "A machine on a POHMM's vectors", measured[FRAME], DETECTORS, ALL, seed)


def all_settings(measured: Frames, seed: int) -> Table:
    """What every machine gives."""
    return settings_tried(TRIED, "Every machine that was tried", measured[FRAME], DETECTORS, ALL)


def answer(values: Values) -> tuple[str, str]:
    """What the hybrid changes; and where the least error rate is."""
    found = values[TABLE]
    return (
        gain_words(found, HybridPOHMM.name) + ".",
        f"{best_words(found)}; {settings_words(found, DETECTORS)}.",
    )


QUESTION = Question(
    "A hybrid",
    "Does a discriminative machine on what a POHMM makes of a sample recognise people better?",
    pieces,
    (FRAME,),
    {
        TABLE: QuestionTable(table, "Compare the hybrid with the POHMMs and with the population model."),
        TRIED: QuestionTable(all_settings, "Each line is a machine; lower is better."),
    },
    answer,
    {
        TABLE: QuestionFigure(
            lambda values: draw_compared(values[TABLE]),
            "Equal error rates of the hybrid, of POHMMs and of the population model. Bars are 95 % intervals "
            "over users.",
            "A panel for each dataset, with a dot and an interval for each detector.",
        )
    },
    (
        "The hybrid's POHMM is fitted to everyone's training samples, and a support vector machine tells the "
        "vectors of a person's samples from those of all others; both learn from training samples alone.",
    ),
    {"kernel, C and γ": MACHINES},
)
