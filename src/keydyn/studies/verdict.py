"""The study of relatives in a paragraph, computed from its tables."""

from __future__ import annotations

import pandas as pd

from keydyn.evaluation.names import dataset_name, detector_name
from keydyn.studies.relatives_work import ESTIMATION, SCORING, UNSEEN

POHMM, HMM = "pohmm", "hmm"
FIGURES = {"acc": "accuracy", "eer": "equal error rate", "amrt": "rejection time"}


def verdict(measured: pd.DataFrame, lost: pd.DataFrame) -> str:
    """Who is best and where, and what lost contexts do to whom."""
    sentences = [*_best(measured), _against_hmm(measured)]
    for dataset in dict.fromkeys(lost["dataset"]):
        sentences += _losses(str(dataset), lost[lost["dataset"] == dataset])
    return " ".join(sentences)


def _best(measured: pd.DataFrame) -> list[str]:
    """For each figure, on how many rows each model is best or not significantly worse."""
    n_rows = measured["dataset"].nunique()
    sentences = []
    for metric, title in FIGURES.items():
        counts = measured.groupby("detector", sort=False)[f"{metric}_best"].sum()
        counts = counts.sort_values(ascending=False, kind="stable")
        told = ", ".join(f"{detector_name(name)} on {int(n)}" for name, n in counts.items())
        sentences.append(f"By {title}, best or not significantly worse than the best: {told} of {n_rows}.")
    return sentences


def _against_hmm(measured: pd.DataFrame) -> str:
    """How much of the way from the HMM to the POHMM the best relative goes, by accuracy."""
    table = measured.pivot_table(index="dataset", columns="detector", values="acc_mean", sort=False)
    means = table.mean()
    relatives = means.drop([POHMM, HMM])
    best = str(relatives.idxmax())
    return (
        f"Mean accuracy over the rows: {detector_name(HMM)} {means[HMM]:.3f}, the best relative "
        f"({detector_name(best)}) {relatives[best]:.3f}, {detector_name(POHMM)} {means[POHMM]:.3f}."
    )


def _losses(dataset: str, lost: pd.DataFrame) -> list[str]:
    """Where the POHMM meets the HMM, and who is ahead in between."""
    name = dataset_name(dataset)
    table = lost.set_index(["situation", "share", "detector"]).sort_index()
    likelihood, accuracy = table["log_likelihood"], table["acc"]
    sentences = []
    gaps = [likelihood[s, 1.0, POHMM] - likelihood[s, 1.0, HMM] for s in (ESTIMATION, UNSEEN)]
    largest = max(map(abs, gaps))
    meets = "meets the HMM" if largest < 1e-9 else f"misses the HMM by {largest:.2g} nats an event"
    sentences.append(f"{name}: with no name in estimation the POHMM {meets}.")
    shares = sorted(set(lost["share"]))
    for situation, words in (
        (ESTIMATION, "missing in estimation"),
        (SCORING, "missing in scoring"),
        (UNSEEN, "unseen in scoring"),
    ):
        ahead = [s for s in shares if accuracy[situation, s].idxmax() == POHMM]
        below = [s for s in shares if likelihood[situation, s, POHMM] < likelihood[situation, s, HMM] - 1e-9]
        told = f"is the most accurate of all at {_list(ahead)} {words}" if ahead else f"never leads ({words})"
        if below:
            told += f", but less likely than the HMM at {_list(below)}"
        sentences.append(f"There the POHMM {told}.")
    falls = {
        str(detector): accuracy[SCORING, 0.0, detector] - accuracy[SCORING, 1.0, detector]
        for detector in dict.fromkeys(lost["detector"])
        if detector != HMM
    }
    told = ", ".join(f"{detector_name(model)} {fall:+.3f}" for model, fall in falls.items())
    sentences.append(f"Accuracy lost when all contexts are missing in scoring: {told}.")
    return sentences


def _list(shares: list[float]) -> str:
    texts = [f"{share:.0%}" for share in shares]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
