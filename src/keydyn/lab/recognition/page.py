"""The page of `keydyn study recognition`."""

from __future__ import annotations

from keydyn.lab.frame.cells import column, has_number, is_bold, of_all, percent, plain, span
from keydyn.lab.frame.page import ResultsPage, Run, Tables

POHMM = "POHMM"
LABELS = ("Dataset", "Source")


def answer(tables: Tables) -> str:
    """How well the POHMM does, closed set and open, and whether it is what the paper published."""
    accuracy, errors = (
        [row for row in tables[name] if row["Source"] == "measured"]
        for name in ("identification", "verification")
    )
    detectors = [name for name in accuracy[0] if name not in LABELS]
    detector = POHMM if POHMM in detectors else detectors[-1]
    identified, rates = (span(column(rows, detector), percent) for rows in (accuracy, errors))
    sentences = [
        f"The {detector} identifies {identified} of samples and verifies claims at an equal error rate of "
        f"{rates} if impostors are enrolled too"
    ]
    if len(detectors) > 1:
        best = [
            is_bold(one[detector]) and is_bold(other[detector])
            for one, other in zip(accuracy, errors, strict=True)
        ]
        on = of_all(sum(best), len(best), "dataset")
        sentences[0] += f"; on {on}, no published detector is significantly better by either figure"
    strangers = column(
        [row for row in tables.get("open_set", []) if row["Detector"] == detector],
        "Impostor not in the cohort",
    )
    unknown = [f"the equal error rate is {span(strangers, percent)} if impostors are unknown to the system"]
    rest = "; ".join((unknown if strangers else []) + _reproduced(tables))
    if rest:
        sentences.append(rest[0].upper() + rest[1:])
    return ". ".join(sentences) + "."


def _reproduced(tables: Tables) -> list[str]:
    """A clause on the published figures, if there are any."""
    same = []
    for name in ("identification", "verification"):
        measured: dict[tuple[str, str], str] = {}
        for row in tables[name]:
            for detector in set(row) - set(LABELS):
                key, cell = (row["Dataset"], detector), plain(row[detector])
                if plain(row["Source"]) == "measured":
                    measured[key] = cell
                elif has_number(cell):
                    same.append(measured[key] == cell)
    if not same:
        return []
    return [
        f"the study reproduces {of_all(sum(same), len(same), 'published mean')}, with their standard "
        "deviations"
    ]


PAGE = ResultsPage(
    "Identification and verification",
    "Who typed a sample, and is it the person they claim to be?",
    answer,
    (
        Run(
            {
                "identification": "Each dataset has two lines: what was measured here and what the paper "
                "published. A figure is the share of samples whose author is named; higher is better.",
                "verification": "Read it in the same way. A figure is the error rate at which as many "
                "genuine samples are rejected as impostors are accepted; lower is better.",
                "recommended": "Compare the two POHMM columns. A positive difference is better for accuracy, "
                "a negative one for the equal error rate; the last column says whether it is significant.",
                "open_set": "Read from left to right: the error rate rises as the impostor becomes less "
                "known to the system. The middle column is the one to expect in use.",
            },
            {
                "open_set": "Equal error rates by dataset and detector, with the impostor enrolled (closed "
                "set) and unknown (open set); lower is better. Bars are 95 % intervals over users.",
                "roc": "ROC curves: the nearer to the top left corner, the better. Mean over users, with 95 "
                "% bands.",
                "marginal_density": "What the first user of each dataset typed, and the densities of the two "
                "hidden states, active and passive.",
            },
        ),
    ),
)
