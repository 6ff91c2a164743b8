"""The page of `keydyn study continuous`."""

from __future__ import annotations

from keydyn.lab.frame.answers import figures_of, rate_of, rate_words, size_of, span
from keydyn.lab.frame.names import detector_name
from keydyn.lab.frame.page import ResultsPage, Run, Values
from keydyn.lab.recognition.page import POHMM

HMM = "hmm"


def answer(values: Values) -> str:
    """Keys until an impostor is rejected, at the paper's threshold and at one that a system can know."""
    sentences = []
    measured, watching = values.get("continuous"), values["watching"]
    detectors = list(dict.fromkeys(watching["detector"]))
    detector = POHMM if POHMM in detectors else detectors[-1]
    if measured is not None:
        means = {
            name: span(figures_of(measured[measured["detector"] == name], "amrt_mean"), _keys)
            for name in (detector, HMM)
        }
        beside = f", with the HMM {means[HMM]}" if HMM in set(detectors) - {detector} else ""
        sentences.append(
            f"With the {detector_name(detector)} and the paper's threshold, an impostor types "
            f"{means[detector]} keys on average before being rejected{beside}."
        )
    shared = watching[
        (watching["detector"] == detector)
        & (watching["watching"] == "rank penalty")
        & (watching["thresholds"] == "shared")
    ]
    limit = "With" if measured is None else "A real system cannot know that threshold: with"
    unnoticed = {
        row["dataset"]: rate_of(row, "unnoticed", "unnoticed_trials") for row in shared.to_dict("records")
    }
    sentences.append(
        f"{limit} one threshold for everybody, it takes {span(figures_of(shared, 'rejection_mean'), _keys)} "
        f"keys, and {span(unnoticed, rate_words, size_of)} of impostors are never noticed."
    )
    return " ".join(sentences)


def _keys(number: float) -> str:
    return f"{number:.2f}"


PAGE = ResultsPage(
    "Continuous verification",
    "Is it still the same person, keystroke by keystroke?",
    answer,
    ("continuous", "watching"),
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
