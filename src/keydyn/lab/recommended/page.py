"""The page of `keydyn study recommended`."""

from __future__ import annotations

from keydyn.lab.frame.answers import figures_of, of_all, percent, span
from keydyn.lab.frame.page import ResultsPage, Run, Values

ALL = "all"


def answer(values: Values) -> str:
    """What all datasets choose together, and whether each would be served the same by the others."""
    frame = values["choices"]
    best, others = frame[frame["dataset"] == ALL].iloc[0], frame[frame["dataset"] != ALL]
    same = int((others["chosen"] == best["chosen"]).sum())
    return (
        f"{best['chosen'].capitalize()}: these settings have the lowest mean equal error rate over all "
        f"recordings, {percent(best['eer_on_the_others'])}. The other datasets choose them for "
        f"{of_all(same, len(others), 'dataset')}; what they choose has an equal error rate of "
        f"{span(figures_of(others, 'eer'), percent)} on the dataset itself, which had no part in it."
    )


PAGE = ResultsPage(
    "Recommended settings",
    "Which settings of the POHMM recognise people best?",
    answer,
    ("choices",),
    (
        Run(
            {
                "choices": "Each line says what the other datasets choose, and how well that choice does on "
                "this dataset (acc: accuracy, higher is better; eer: equal error rate, lower is better).",
                "candidates": "Each line is a candidate, each column a dataset; lower is better.",
            },
        ),
    ),
)
