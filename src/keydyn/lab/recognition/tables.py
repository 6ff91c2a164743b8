"""Tables of recognition: the paper's two, compared with their published figures, and further ones."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from keydyn.evaluation.rates.confidence import LEVEL, Estimate, compare_with_best, signed_rank_p
from keydyn.evaluation.rates.identification import IdentificationRates, identification
from keydyn.evaluation.rates.verification import TITLES, Verification, recognition, verification
from keydyn.lab.frame.names import capital, dataset_name, detector_name, listed
from keydyn.lab.frame.published import ACCURACY, DETECTORS, EQUAL_ERROR_RATE
from keydyn.lab.frame.score_datasets import Scored
from keydyn.lab.frame.tables import (
    DATASET,
    DETECTOR,
    Column,
    Mark,
    Table,
    mean_column,
    number_column,
    p_column,
    published_beside,
)

Key = tuple[str, str]
RANKS = (1, 2, 5, 10)
RECOMMENDED, REFERENCE = "pohmm-recommended", "pohmm"
METRICS = {"acc": "Accuracy", "eer": "Equal error rate"}
TITLES_OF = (
    ("identification", "Identification accuracy", "acc"),
    ("verification", "Verification: equal error rate, each user at a threshold of their own", "eer"),
)
BOLD_NOTE = "Bold: not significantly worse than the best (Wilcoxon signed-rank over users, Bonferroni"
MEAN_NOTE = "Mean (standard deviation) over users."
CANDIDATES_NOTE = (
    "Every owner is enrolled. Candidates are all users in a closed set; in an open set those who are "
    "enrolled at the time, who are fewer."
)


@dataclass(frozen=True, eq=False)
class RecognitionFigures:
    """All figures of one dataset and detector; `users` has acc, eer, eer_open and eer_raw by user."""

    users: pd.DataFrame
    identification: IdentificationRates
    verification: Verification


def recognition_figures(scored: Scored, seed: int = 0) -> dict[Key, RecognitionFigures]:
    """The figures of every dataset and detector."""
    return {
        key: RecognitionFigures(
            recognition(scores), identification(scores, seed=seed), verification(scores, seed=seed)
        )
        for key, scores in scored.items()
    }


def recognition_frame(measured: Mapping[Key, RecognitionFigures]) -> pd.DataFrame:
    """One row per dataset and detector: measured and published mean and standard deviation."""
    rows = []
    for key, figures in measured.items():
        mean, std = figures.users.mean(), figures.users.std()
        accuracy, rate = ACCURACY.get(key, (None, None)), EQUAL_ERROR_RATE.get(key, (None, None))
        rows.append((*key, mean["acc"], std["acc"], mean["eer"], std["eer"], *accuracy, *rate))
    parts = [f"{name}_{part}" for name in ("acc", "eer") for part in ("mean", "std")]
    columns = ["dataset", "detector", *parts, *(f"published_{name}" for name in parts)]
    return pd.DataFrame(rows, columns=columns)


def recognition_tables(
    measured: Mapping[Key, RecognitionFigures], marks: Mapping[Key, str], note: str = ""
) -> list[Table]:
    """The identification and verification tables of the paper, and one table of both for a CSV file."""
    frame = recognition_frame(measured)
    among = ", among the five published detectors)." if _published(measured) else ")."
    note = f"{MEAN_NOTE} {BOLD_NOTE}{among} {note}".strip()
    bold = {metric: best_of(measured, metric, metric == "acc") for metric in METRICS}
    signs = [marks.get(key, "") for key in measured]
    tables = []
    for name, title, metric in TITLES_OF:
        best = [key in bold[metric] for key in measured]
        tables.append(published_beside(name, title, note, frame.assign(best=best, mark=signs), metric))
    return [*tables, _both(frame, bold, note)]


# An entry this far from the best is bold only in tables with published figures, where it needs an
# explanation.
FAR = 0.1
# Means of rates are quotients of counts, so smaller differences are due to rounding.
SAME = 1e-9


def best_of(measured: Mapping[Key, RecognitionFigures], metric: str, higher_is_better: bool) -> set[Key]:
    """The detectors of each dataset that are set in bold, not being significantly worse than the best.

    In datasets with published figures, only the published detectors are compared, as in the paper. In others,
    an entry that is far from the best is not bold, however few users there are.
    """
    bold = set()
    for dataset in dict.fromkeys(key[0] for key in measured):
        names = [detector for name, detector in measured if name == dataset]
        published = dataset in {key[0] for key in ACCURACY}
        if published:
            names = [name for name in names if name in DETECTORS]
        if not names:
            continue
        figures = pd.DataFrame({name: measured[dataset, name].users[metric] for name in names})
        compared = compare_with_best(figures, higher_is_better)
        means = figures.mean()
        away = (means.max() - means) if higher_is_better else (means - means.min())
        near = compared["bold"] & (published | (away[compared.index] <= FAR))
        bold |= {(dataset, str(name)) for name in compared.index[near]}
    return bold


def open_set_table(measured: Mapping[Key, RecognitionFigures], opened: Collection[str] = ()) -> Table:
    """Equal error rates with the impostor in the cohort, without, and without normalisation.

    Datasets in `opened` are open sets by protocol and have no figures of a closed set.
    """
    ways = {"eer": "Closed set", "eer_open": "Impostor not in the cohort", "eer_raw": "Not normalised"}
    rows = []
    for (dataset, detector), figures in measured.items():
        mean, std = figures.users.mean(), figures.users.std()
        if dataset in opened:
            mean["eer"] = std["eer"] = np.nan
        rows.append((dataset, detector, *(value for way in ways for value in (mean[way], std[way]))))
    names = [f"{way}_{part}" for way in ways for part in ("mean", "std")]
    return Table(
        "open_set",
        "Equal error rate if the impostor is unknown to the system",
        "Closed set: scores are scaled over all templates, the impostor's own among them. Impostor not in "
        "the cohort: that template is left out, as it is for a stranger. Not normalised: scores as they are. "
        "Same templates and same scores in all three; each user at a threshold of their own. A dash: the "
        "protocol is an open set already, or no cohort is left.",
        pd.DataFrame(rows, columns=["dataset", "detector", *names]),
        [DATASET, DETECTOR, *(mean_column(title, way) for way, title in ways.items())],
        labels=2,
    )


def error_rates_table(
    measured: Mapping[Key, RecognitionFigures], names: Collection[str] = tuple(TITLES)
) -> Table:
    """Error rates in the vocabulary of ISO/IEC 19795-1, with confidence intervals; `names` are shown."""
    frames = [
        figures.verification.to_frame().assign(dataset=dataset, detector=detector)
        for (dataset, detector), figures in measured.items()
    ]
    frame = pd.concat(frames, ignore_index=True)
    columns = [DATASET, DETECTOR, Column("Thresholds", "thresholds", lambda kind: kind.split()[0])]
    return Table(
        "error_rates",
        "Error rates with 95 % confidence intervals",
        "Own: each user at a threshold of their own, mean over users. One: all trials pooled at one "
        "threshold. FMR and FNMR are false match and false non-match rate. Intervals by bootstrap over "
        "users. A rate that the number of trials cannot support (rule of three) is not given; no error in n "
        "trials is < 3/n.",
        frame[["dataset", "detector", *frame.columns[:-2]]],
        [*columns, *(Column(capital(TITLES[name]), "text", of=name) for name in names)],
        labels=3,
        across="figure",
    )


def ranks_table(measured: Mapping[Key, RecognitionFigures], opened: Collection[str] = ()) -> Table:
    """Rank-n identification rates; in the open sets in `opened`, among the enrolled users."""
    rows = [
        (*key, n, *(float(values[n - 1]) for values in (of.cmc, of.low, of.high)))
        for key, of in ((key, figures.identification) for key, figures in measured.items())
        for n in RANKS
        if n <= len(of.cmc)
    ]

    def text(*rate: float) -> str:
        return Estimate(*rate).text(3)

    return Table(
        "ranks",
        "Rank-n identification rate",
        "Share of a user's samples whose owner is among the first n, mean over users, with a 95 % interval "
        f"by bootstrap over users. {CANDIDATES_NOTE if opened else 'Closed set.'}",
        pd.DataFrame(rows, columns=["dataset", "detector", "rank", "rate", "low", "high"]),
        [DATASET, DETECTOR, *(Column(f"Rank {n}", ("rate", "low", "high"), text, of=n) for n in RANKS)],
        labels=2,
        across="rank",
    )


def recommended_table(measured: Mapping[Key, RecognitionFigures]) -> Table | None:
    """The recommended POHMM compared with the published one, whatever the result."""
    rows = []
    for dataset in dict.fromkeys(key[0] for key in measured):
        if not {(dataset, RECOMMENDED), (dataset, REFERENCE)} <= set(measured):
            continue
        ours, theirs = measured[dataset, RECOMMENDED].users, measured[dataset, REFERENCE].users
        for metric, sign in (("acc", 1.0), ("eer", -1.0)):
            difference = float(ours[metric].mean() - theirs[metric].mean())
            p = signed_rank_p(ours[metric].to_numpy(), theirs[metric].to_numpy())
            way = "better" if sign * difference > 0 else "worse" if sign * difference < 0 else "equal"
            verdict = way if p < 0.05 else "no significant difference"
            rows.append((dataset, metric, theirs[metric].mean(), ours[metric].mean(), difference, p, verdict))
    if not rows:
        return None
    names = ["dataset", "metric", "pohmm", "pohmm_recommended", "difference", "p", "verdict"]
    columns = [
        *(DATASET, Column("Figure", "metric", lambda metric: METRICS[metric].lower())),
        *(number_column("POHMM", "pohmm"), number_column("POHMM (recommended)", "pohmm_recommended")),
        *(Column("Difference", "difference", "{:+.3f}".format), p_column("p", "p")),
        Column("Verdict at 0.05", "verdict"),
    ]
    return Table(
        "recommended",
        "The recommended settings against the published ones",
        "Two-sided Wilcoxon signed-rank test over users; each line is a test of its own, without correction. "
        "On each of the paper's datasets the recommended settings are those that the other datasets choose "
        "(`keydyn study recommended`).",
        pd.DataFrame(rows, columns=names),
        columns,
        labels=2,
    )


def _both(frame: pd.DataFrame, bold: Mapping[str, set[Key]], note: str) -> Table:
    """Accuracy and equal error rate in one table, a line per dataset and detector."""
    columns = [DATASET, DETECTOR]
    for metric, title in METRICS.items():
        columns.append(mean_column(title, metric, bold=_among(bold[metric])))
        if frame[f"published_{metric}_mean"].notna().any():
            published = f"published_{metric}"
            columns.append(mean_column(f"{title}, published", published, published=lambda _: True))
    title = "Identification accuracy and equal error rate"
    return Table("recognition", title, note, frame, columns, labels=2)


def _among(keys: Collection[Key]) -> Mark:
    return lambda line: (line["dataset"], line["detector"]) in keys


def _published(measured: Mapping[Key, RecognitionFigures]) -> bool:
    return any(key in ACCURACY for key in measured)


def verdict_of(measured: Mapping[Key, RecognitionFigures], opened: Collection[str]) -> str:
    """Three sentences: on identification, on verification, and on how certain the figures are.

    Datasets in `opened` are open sets by protocol.
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
    """The number of users below which no difference from the best of these detectors can be significant.

    If all n differ in the same direction, the signed-rank test's two-sided p-value is 2 / 2ⁿ.
    """
    return math.ceil(math.log2(2.0 * max(n_detectors - 1, 1) / LEVEL))


def too_few(measured: Mapping[Key, RecognitionFigures], datasets: Collection[str]) -> str:
    """A sentence about bold entries that surprise because there are few users; empty if there are none."""
    bold = best_of(measured, "acc", higher_is_better=True)
    for name in datasets:
        detectors = [detector for dataset, detector in measured if dataset == name]
        users, needed = len(measured[name, detectors[0]].users), users_needed(len(detectors))
        if len(detectors) > 1 and users < needed:
            return (
                f"So few users ({users}) cannot tell detectors apart: with fewer than {needed} no difference "
                f"can be significant, and entries within {FAR:g} of the best are bold."
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
    tied = _tied(measured, key, "acc")
    return (
        f"{tied} do equally well with {share}" if tied else f"{detector_name(key[1])} does best with {share}"
    )


def _tied(measured: Mapping[Key, RecognitionFigures], best: Key, metric: str) -> str:
    """The names of detectors whose mean equals the best one's, as a phrase; empty if there is only one."""
    value = float(measured[best].users[metric].mean())
    same = [key for key in measured if key[0] == best[0]]
    means = {detector_name(key[1]): float(measured[key].users[metric].mean()) for key in same}
    names = [name for name, mean in means.items() if abs(mean - value) < SAME]
    if len(names) < 2:
        return ""
    if len(names) == len(means) > 2:
        return f"all {len(names)} detectors"
    return listed(names)


def _verified(
    measured: Mapping[Key, RecognitionFigures], key: Key, opened: Collection[str], many: bool
) -> str:
    where = f" on {dataset_name(key[0])}" if many else ""
    closed, strangers = (100 * measured[key].users[way].mean() for way in ("eer", "eer_open"))
    tied = _tied(measured, key, "eer")
    best = f"{tied} have" if tied else f"{detector_name(key[1])} has"
    text = f"{best} the lowest equal error rate{where}, {closed:.1f} % with impostors who"
    if key[0] in opened:
        return f"{text} are strangers"
    if np.isnan(strangers):
        return f"{text} are enrolled too"
    of = f" for {detector_name(key[1])}" if tied else ""
    return f"{text} are enrolled too, {strangers:.1f} %{of} with strangers, which is what to expect in use"


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
