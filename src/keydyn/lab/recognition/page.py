"""The page of `keydyn study recognition`."""

from __future__ import annotations

import pandas as pd

from keydyn.lab.frame.answers import figures_of, of_all, percent, span
from keydyn.lab.frame.names import detector_name
from keydyn.lab.frame.page import ResultsPage, Run, Values
from keydyn.lab.frame.tables import mean_and_deviation

POHMM = "pohmm"


def answer(values: Values) -> str:
    """How well the POHMM does, closed set and open, and whether it is what the paper published."""
    accuracy, errors = values["identification"], values["verification"]
    detectors = list(dict.fromkeys(accuracy["detector"]))
    detector = POHMM if POHMM in detectors else detectors[-1]
    ours, our_errors = (frame[frame["detector"] == detector] for frame in (accuracy, errors))
    first = (
        f"The {detector_name(detector)} identifies {span(figures_of(ours, 'acc_mean'), percent)} of samples "
        "and verifies claims at an equal error rate of "
        f"{span(figures_of(our_errors, 'eer_mean'), percent)} if impostors are enrolled too"
    )
    if len(detectors) > 1:
        best = [one and other for one, other in zip(ours["best"], our_errors["best"], strict=True)]
        on = of_all(sum(best), len(best), "dataset")
        first += f"; on {on}, no published detector is significantly better by either figure"
    rest = [_strangers(values.get("open_set"), detector), _reproduced(values)]
    second = "; ".join(filter(None, rest))
    return ". ".join(filter(None, [first, second[:1].upper() + second[1:]])) + "."


def _strangers(frame: pd.DataFrame | None, detector: str) -> str:
    """A clause on impostors who are not enrolled, if that was measured."""
    rates = {} if frame is None else figures_of(frame[frame["detector"] == detector], "eer_open_mean")
    return (
        f"the equal error rate is {span(rates, percent)} if impostors are unknown to the system"
        if rates
        else ""
    )


def _reproduced(values: Values) -> str:
    """A clause on the published figures, if there are any."""
    same = []
    for name, metric in (("identification", "acc"), ("verification", "eer")):
        frame = values[name]
        for row in frame[frame[f"published_{metric}_mean"].notna()].to_dict("records"):
            ours, theirs = (
                mean_and_deviation(row[f"{of}{metric}_mean"], row[f"{of}{metric}_std"])
                for of in ("", "published_")
            )
            same.append(ours == theirs)
    if not same:
        return ""
    counted = of_all(sum(same), len(same), "published mean")
    return f"the study reproduces {counted}, with their standard deviations"


PAGE = ResultsPage(
    "Identification and verification",
    "Who typed a sample, and is it the person they claim to be?",
    answer,
    ("identification", "verification", "open_set"),
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
