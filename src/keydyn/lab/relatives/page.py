"""The page of `keydyn study relatives`."""

from __future__ import annotations

from keydyn.lab.frame.cells import column, is_bold, number, of_all, percent, span
from keydyn.lab.frame.markdown_rows import Row
from keydyn.lab.frame.page import ResultsPage, Run, Tables

POHMM, HMM = "POHMM", "HMM"
FIGURES = ("Accuracy", "Equal error rate", "Rejection time")


def answer(tables: Tables) -> str:
    """On how many datasets the POHMM is best, and how far the best relative is behind."""
    of_dataset: dict[str, list[Row]] = {}
    for row in tables["relatives"]:
        of_dataset.setdefault(row["Dataset"], []).append(row)
    best, alone, nearest = 0, 0, {}
    for dataset, rows in of_dataset.items():
        bold = [[row["Detector"] for row in rows if is_bold(row[figure])] for figure in FIGURES]
        best += all(POHMM in names for names in bold)
        alone += all(names == [POHMM] for names in bold)
        others = [row["Accuracy"] for row in rows if row["Detector"] not in (POHMM, HMM)]
        nearest[dataset] = max(others, key=number)
    pohmm = column([row for row in tables["relatives"] if row["Detector"] == POHMM], "Accuracy")
    return (
        f"On {of_all(best, len(of_dataset), 'dataset')} no other model is significantly better than the "
        "POHMM by accuracy, equal error rate or rejection time, and on "
        f"{of_all(alone, len(of_dataset), 'dataset')} it is significantly better than all others by all "
        f"three. It identifies {span(pohmm, percent)} of samples, the best of the three relatives "
        f"{span(nearest, percent)}."
    )


PAGE = ResultsPage(
    "The POHMM and its relatives",
    "Is the POHMM better than earlier models that use context?",
    answer,
    (
        Run(
            {
                "relatives": "Compare the lines of a dataset: higher is better for accuracy, lower for the "
                "other two.",
            },
            {
                "lost_context": "What happens as more and more events lose their context (to the right): "
                "log-likelihood, accuracy and equal error rate of each model. Flat lines belong to models "
                "that never had the context."
            },
        ),
    ),
)
