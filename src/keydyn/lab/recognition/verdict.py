"""What a recognition report says first: how well people are recognised, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import numpy as np

from keydyn.evaluation.rates.significance import LEVEL
from keydyn.lab.frame.names import dataset_name, detector_name
from keydyn.lab.recognition.tables import Key, RecognitionFigures, best_of

# A bold entry whose accuracy is so far from the best needs an explanation.
FAR = 0.1


def verdict_of(measured: Mapping[Key, RecognitionFigures], opened: Collection[str]) -> str:
    """Three sentences: identification, verification, and what the numbers can bear.

    Datasets in `opened` are open sets by their protocol.
    """
    closed = [name for name in dict.fromkeys(key[0] for key in measured) if name not in opened]
    datasets = closed or list(dict.fromkeys(key[0] for key in measured))
    best = {name: _best(measured, name, "acc", largest=True) for name in datasets}
    surest = {name: _best(measured, name, "eer", largest=False) for name in datasets}
    return " ".join(
        [
            _listed(
                [_identified(measured, key, many=len(datasets) > 1) for key in best.values()],
                "In identification",
            ),
            _listed(
                [_verified(measured, key, opened, len(datasets) > 1) for key in surest.values()],
                "In verification",
            ),
            _certainty(measured, datasets),
        ]
    )


def users_needed(n_detectors: int) -> int:
    """How many users it takes before any difference from the best of so many detectors is significant.

    If all n differ in the same direction, the signed-rank test's two-sided p-value is 2 / 2ⁿ.
    """
    return math.ceil(math.log2(2.0 * max(n_detectors - 1, 1) / LEVEL))


def too_few(measured: Mapping[Key, RecognitionFigures], datasets: Collection[str]) -> str:
    """A sentence about bold entries that surprise because there are few users; empty if none does."""
    bold = best_of(measured, "acc", higher_is_better=True)
    for name in datasets:
        detectors = [detector for dataset, detector in measured if dataset == name]
        users, needed = len(measured[name, detectors[0]].users), users_needed(len(detectors))
        if len(detectors) > 1 and users < needed:
            return (
                f"So few users ({users}) cannot tell detectors apart: with fewer than {needed} no difference "
                "can be significant, so all entries are bold, however far apart they are."
            )
        means = {detector: float(measured[name, detector].users["acc"].mean()) for detector in detectors}
        best = max(means.values())
        far = {d: mean for d, mean in means.items() if (name, d) in bold and best - mean > FAR}
        if far:
            worst = min(far, key=far.__getitem__)
            return (
                f"With {users} users only a difference that nearly all of them share is significant: "
                f"{detector_name(worst)} is bold although its accuracy is {far[worst]:.3f} beside {best:.3f}."
            )
    return ""


def _best(measured: Mapping[Key, RecognitionFigures], dataset: str, metric: str, largest: bool) -> Key:
    keys = [key for key in measured if key[0] == dataset]
    sign = -1.0 if largest else 1.0
    return min(keys, key=lambda key: sign * float(measured[key].users[metric].mean()))


def _identified(measured: Mapping[Key, RecognitionFigures], key: Key, many: bool) -> str:
    of = measured[key].identification
    where = f" on {dataset_name(key[0])}" if many else f" of {len(measured[key].users)} users"
    low, high = of.low[0], of.high[0]
    interval = f" (95 % interval {100 * low:.0f} to {100 * high:.0f} %)" if high > low else ""
    share = f"{100 * of.cmc[0]:.0f} % of samples{where} identified{interval}"
    return f"{detector_name(key[1])} does best with {share}"


def _verified(
    measured: Mapping[Key, RecognitionFigures], key: Key, opened: Collection[str], many: bool
) -> str:
    where = f" on {dataset_name(key[0])}" if many else ""
    closed, strangers = (100 * measured[key].users[way].mean() for way in ("eer", "eer_open"))
    text = (
        f"{detector_name(key[1])} has the lowest equal error rate{where}, {closed:.1f} % with impostors who"
    )
    if key[0] in opened:
        return f"{text} are strangers"
    if np.isnan(strangers):
        return f"{text} are enrolled too"
    return f"{text} are enrolled too, {strangers:.1f} % with strangers, which is what to expect in use"


def _certainty(measured: Mapping[Key, RecognitionFigures], datasets: list[str]) -> str:
    few = too_few(measured, datasets)
    if few:
        return few
    detectors = {detector for _, detector in measured}
    if len(detectors) == 1:
        return "There is no other detector to compare it with."
    if len(datasets) > 1:
        return "Entries in bold are not significantly worse than the best of their dataset."
    bold = sorted(
        detector_name(detector)
        for dataset, detector in best_of(measured, "acc", higher_is_better=True)
        if dataset == datasets[0]
    )
    if len(bold) == 1:
        return f"All other detectors identify significantly fewer samples than {bold[0]}."
    return f"{', '.join(bold[:-1])} and {bold[-1]} cannot be told apart by their accuracy."


def _listed(texts: list[str], beginning: str) -> str:
    return f"{beginning}, {'; '.join(texts)}."
