"""All open questions, and the work that they call for."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from keydyn.lab.frame.recordings import Row
from keydyn.lab.frame.resuming import Parts, Piece, frame_of, run_pieces
from keydyn.lab.open_questions import (
    criterion,
    hybrid_machine,
    joint_likelihood,
    keys_from_timings,
    states,
)
from keydyn.lab.open_questions.question import Question

# In the order of the report.
QUESTIONS: tuple[Question, ...] = (
    joint_likelihood.QUESTION,
    keys_from_timings.QUESTION,
    criterion.QUESTION,
    hybrid_machine.QUESTION,
    states.QUESTION,
)


def run_questions(rows: Sequence[Row], seed: int, parts: Parts) -> dict[str, pd.DataFrame]:
    """What was measured, by the name of the frame; parts made from the same inputs are read, not made again.

    The work of all questions is shared out together, so that no core waits for the end of a question.
    """
    pieces: dict[str, Sequence[Piece]] = {}
    for question in QUESTIONS:
        pieces |= question.pieces(rows, seed)
    made = run_pieces([piece for several in pieces.values() for piece in several], parts)
    return {name: frame_of(made, several) for name, several in pieces.items() if several}
