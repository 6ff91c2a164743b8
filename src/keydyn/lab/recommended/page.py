"""The page of `keydyn study recommended`."""

from __future__ import annotations

from keydyn.lab.frame.cells import column, of_all, percent, span
from keydyn.lab.frame.page import ResultsPage, Run, Tables

ALL = "all"


def answer(tables: Tables) -> str:
    """What all datasets choose together, and whether each would be served the same by the others."""
    chosen = {row["dataset"]: row for row in tables["choices"]}
    best = chosen.pop(ALL)
    same = sum(row["chosen"] == best["chosen"] for row in chosen.values())
    return (
        f"{best['chosen'].capitalize()}: these settings have the lowest mean equal error rate over all "
        f"recordings, {percent(best['eer on the others'])}. The other datasets choose them for "
        f"{of_all(same, len(chosen), 'dataset')}; what they choose has an equal error rate of "
        f"{span(column(chosen.values(), 'eer', 'dataset'), percent)} on the dataset itself, which had no "
        "part in it."
    )


PAGE = ResultsPage(
    "Recommended settings",
    "Which settings of the POHMM recognise people best?",
    answer,
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
