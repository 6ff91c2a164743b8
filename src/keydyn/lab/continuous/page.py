"""The page of `keydyn study continuous`."""

from __future__ import annotations

from keydyn.lab.frame.cells import column, span
from keydyn.lab.frame.page import ResultsPage, Run, Tables
from keydyn.lab.recognition.page import POHMM


def answer(tables: Tables) -> str:
    """Keys until an impostor is rejected, at the paper's threshold and at one that a system can know."""
    sentences = []
    measured = [row for row in tables.get("continuous", []) if row["Source"] == "measured"]
    detectors = list(dict.fromkeys(row["Detector"] for row in tables["watching"]))
    detector = POHMM if POHMM in detectors else detectors[-1]
    if measured:
        beside = (
            f", with the HMM {span(column(measured, 'HMM'))}" if "HMM" in set(detectors) - {detector} else ""
        )
        sentences.append(
            f"With the {detector} and the paper's threshold, an impostor types "
            f"{span(column(measured, detector))} keys on average before being rejected{beside}."
        )
    shared = [
        row
        for row in tables["watching"]
        if (row["Detector"], row["Watching"], row["Thresholds"]) == (detector, "rank penalty", "shared")
    ]
    limit = "A real system cannot know that threshold: with" if measured else "With"
    sentences.append(
        f"{limit} one threshold for everybody, it takes {span(column(shared, 'Rejection time'))} keys, and "
        f"{span(column(shared, 'Impostors never noticed'))} of impostors are never noticed."
    )
    return " ".join(sentences)


PAGE = ResultsPage(
    "Continuous verification",
    "Is it still the same person, keystroke by keystroke?",
    answer,
    (
        Run(
            {
                "continuous": "Each dataset has two lines: what was measured here and what the paper "
                "published. A figure is a number of keys; lower is better.",
                "watching": "Compare lines with the same thresholds. ANIA, the keys between lock-outs of an "
                "impostor, should be low, and ANGA, the same of the genuine user, high.",
            },
            {
                "penalty": "One essay, key by key: the penalty of its author, and those of impostors' "
                "templates with a band that holds 95 % of them. Above the line the session ends.",
                "rejection": "The share of samples (upwards) on which impostors are rejected within so many "
                "keys (to the right); the further to the left, the better.",
            },
        ),
    ),
)
