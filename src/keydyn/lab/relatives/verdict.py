"""The study of relatives in a paragraph that is written from its tables."""

from __future__ import annotations

import pandas as pd

from keydyn.lab.frame.names import dataset_name, detector_name
from keydyn.lab.relatives.measurements import ESTIMATION, SCORING, UNSEEN

POHMM, HMM = "pohmm", "hmm"
# Nats per event below which a difference is rounding.
ROUNDING = 1e-9
WORDS = {
    ESTIMATION: "of names missing in estimation",
    SCORING: "missing in scoring",
    UNSEEN: "unseen in scoring",
}
FIGURES = {"acc": "accuracy", "eer": "equal error rate", "amrt": "rejection time"}


def verdict(measured: pd.DataFrame, lost: pd.DataFrame) -> str:
    """Which model is best where, and what lost contexts do to each."""
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
        counted = ", ".join(f"{detector_name(name)} on {int(n)}" for name, n in counts.items())
        sentences.append(f"By {title}, best or not significantly worse than the best: {counted} of {n_rows}.")
    return sentences


def _against_hmm(measured: pd.DataFrame) -> str:
    """Where the best relative stands between the HMM and the POHMM, by accuracy."""
    table = measured.pivot_table(index="dataset", columns="detector", values="acc_mean", sort=False)
    means = table.mean()
    relatives = means.drop([POHMM, HMM])
    best = str(relatives.idxmax())
    return (
        f"Mean accuracy over the rows: {detector_name(HMM)} {means[HMM]:.3f}, the best relative "
        f"({detector_name(best)}) {relatives[best]:.3f}, {detector_name(POHMM)} {means[POHMM]:.3f}."
    )


def _losses(dataset: str, lost: pd.DataFrame) -> list[str]:
    """Where the POHMM meets the HMM, who is ahead in between, and what is lost in the end."""
    table = lost.set_index(["situation", "share", "detector"]).sort_index()
    likelihood, accuracy = table["log_likelihood"], table["acc"]
    gaps = [likelihood[which, 1.0, POHMM] - likelihood[which, 1.0, HMM] for which in (ESTIMATION, UNSEEN)]
    gap = max(map(abs, gaps))
    meets = "meets the HMM" if gap < ROUNDING else f"misses the HMM by {gap:.2g} nats per event"
    leads, falls_behind = [], []
    for situation, words in WORDS.items():
        of_shares = {share: accuracy[situation, share] for share in sorted(set(lost["share"]))}
        ahead = [share for share, of in of_shares.items() if of[POHMM] > of.drop(POHMM).max()]
        leads.append(f"with {_list(ahead)} {words}")
        gained = {s: likelihood[situation, s, POHMM] - likelihood[situation, s, HMM] for s in of_shares}
        behind = [share for share, gain in gained.items() if gain < -ROUNDING]
        falls_behind.append(f"with {_list(behind)} {words}")
    falls = {
        str(model): accuracy[SCORING, 0.0, model] - accuracy[SCORING, 1.0, model]
        for model in dict.fromkeys(lost["detector"])
        if model != HMM
    }
    losses = ", ".join(f"{detector_name(model)} {fall:.3f}" for model, fall in falls.items())
    return [
        f"{dataset_name(dataset)}: with no name in estimation the POHMM {meets}.",
        f"It is more accurate than all others {_joined(leads)}.",
        f"It is less likely than the HMM {_joined(falls_behind)}.",
        f"With all names missing in scoring alone its accuracy is {accuracy[SCORING, 1.0, POHMM]:.3f}, the "
        f"HMM's {accuracy[SCORING, 1.0, HMM]:.3f}; accuracy gained there by contexts: {losses}.",
    ]


def _list(shares: list[float]) -> str:
    return _joined([f"{share:.0%}" for share in shares]) if shares else "no share"


def _joined(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
