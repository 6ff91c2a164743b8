"""Tables of the population study: comparisons with the POHMM, by samples, keys, people and parts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from keydyn.evaluation.continuous.rejection import Continuous, Times
from keydyn.evaluation.rates.confidence import LEVEL, compare_with_best, mean_estimate, signed_rank_p
from keydyn.lab.frame.names import OPEN, dataset_name, detector_name, listed
from keydyn.lab.frame.published import ACCURACY, EQUAL_ERROR_RATE, REJECTION_TIME
from keydyn.lab.frame.tables import (
    DATASET,
    DETECTOR,
    MEASURED,
    PUBLISHED,
    Column,
    Line,
    Table,
    estimate_column,
    fixed,
    is_published,
    mean_column,
    number_column,
    p_column,
)
from keydyn.lab.population.measurements import ACROSS, PARTS, PEOPLE, POPULATION, WITHOUT, user_times
from keydyn.lab.recognition.tables import Key, RecognitionFigures

# Figure → title, whether higher is better, decimals
METRICS = {
    "acc": ("Accuracy", True, 3),
    "eer": ("EER", False, 3),
    "open_eer": ("EER, open set", False, 3),
    "amrt": ("Rejection time", False, 2),
}
WORDS = {"better": "better", "worse": "worse", "no significant difference": "not significantly different"}
PARTS_METRICS = ("acc", "eer", "amrt")
PUBLISHED_FIGURES = {"acc": ACCURACY, "eer": EQUAL_ERROR_RATE, "amrt": REJECTION_TIME}
# The error rates at one threshold, with the suffix of their datasets' names.
ONE = {"eer_one": "", "open_eer_one": OPEN}
NUMBERS = {"enrolment": "Samples", "keystrokes": "Keys", "people": "People"}
INTERVAL_NOTE = "Means over users with 95 % intervals (bootstrap over users)."


# Dataset → figure → detector → the figure of each user
Users = dict[str, dict[str, dict[str, "pd.Series[float]"]]]


def users_of(figures: Mapping[Key, pd.DataFrame], watched: Mapping[Key, Continuous]) -> Users:
    """All figures by user, in the order of `METRICS`; the rejection time is the mean over samples.

    `figures` has acc and eer of each user; names of open sets, if there are any, end with `OPEN`.
    """
    users: Users = {}
    for dataset, detector in watched:
        closed, opened = figures[dataset, detector], figures.get((dataset + OPEN, detector))
        of = {"acc": closed["acc"], "eer": closed["eer"]}
        of |= {} if opened is None else {"open_eer": opened["eer"]}
        for metric, values in (of | {"amrt": user_times(watched[dataset, detector])}).items():
            users.setdefault(dataset, {}).setdefault(metric, {})[detector] = values.rename(str)
    return users


def compared_rows(users: Users, times: Mapping[Key, Times]) -> list[dict[str, Any]]:
    """Rows by dataset and detector, with METRIC_mean, METRIC_std, METRIC_p and METRIC_best of every figure.

    Mean and standard deviation of rejection times are taken from `times`, over samples, as in the paper. The
    test is `compare_with_best`, over users.
    """
    rows = []
    for dataset, metrics in users.items():
        tests = {m: compare_with_best(pd.DataFrame(of), METRICS[m][1]) for m, of in metrics.items()}
        for detector in metrics["acc"]:
            row: dict[str, Any] = {"dataset": dataset, "detector": detector}
            for metric, of in metrics.items():
                mean, std = float(of[detector].mean()), float(of[detector].std())
                if metric == "amrt":
                    of_samples = times[dataset, detector]
                    mean, std = of_samples.mean, np.nan if of_samples.std is None else of_samples.std
                p, best = (tests[metric][name].to_dict()[detector] for name in ("p", "bold"))
                row |= {
                    f"{metric}_mean": mean,
                    f"{metric}_std": std,
                    f"{metric}_p": p,
                    f"{metric}_best": best,
                }
            rows.append(row)
    return rows


def _difference(value: float, low: float, high: float, figure: str = "", digits: int = 3) -> str:
    """A difference with its interval as text, with signs, never −0, and the decimals of the figure."""
    places = METRICS[figure][2] if figure else digits
    texts = [f"{round(one, places) + 0.0:+.{places}f}".replace("-", "−") for one in (value, low, high)]
    return f"{texts[0]} ({texts[1]} to {texts[2]})"


FIGURE = Column("Figure", "figure", lambda metric: METRICS[metric][0])
COMPARISON = (
    Column("Difference", ("difference", "low", "high", "figure"), _difference),
    p_column("p", "p"),
    Column("Verdict", "verdict"),
)


def population_table(
    users: Users, measured: Mapping[Key, RecognitionFigures], watched: Mapping[Key, Continuous]
) -> Table:
    """Accuracy, error rates and rejection times of the three detectors, with the published figures."""
    rows, lines = [], []
    times = {key: of.rejection for key, of in watched.items()}
    for row in compared_rows(users, times):
        dataset, detector = row["dataset"], row["detector"]
        one = {name: measured[dataset + of, detector].verification.one["eer"] for name, of in ONE.items()}
        published = _published(dataset, detector)
        figures = [column for name, rate in one.items() for column in rate.columns(name).items()]
        exact = {name: value for name, value in row.items() if not name.endswith("_best")}
        rows.append(exact | dict(figures) | published)
        lines.append(row | {"source": MEASURED} | {name: rate.value for name, rate in one.items()})
        if (dataset, detector) in ACCURACY:
            theirs = {name: published.get(f"published_{name}") for name in (*row, *one)}
            labels = {"dataset": dataset, "detector": detector, "source": PUBLISHED}
            lines.append(theirs | labels)
    columns = [
        DATASET,
        Column("Detector", ("detector", "source"), _detector, published=is_published),
        *(
            mean_column(title, metric, digits, bold=itemgetter(f"{metric}_best"), published=is_published)
            for metric, (title, _, digits) in METRICS.items()
        ),
        Column("EER, one threshold", "eer_one", fixed, published=is_published),
        Column("EER, one threshold, open set", "open_eer_one", fixed, published=is_published),
    ]
    return Table(
        "population",
        "The population model beside the POHMM",
        "Mean (standard deviation) over users; each user has a threshold of their own, unless the column "
        "says one threshold. Rejection time: keys until an impostor is rejected (average maximum rejection "
        "time), mean (standard deviation) over samples. Bold: not significantly worse than the best of the "
        "three (Wilcoxon signed-rank over users, p above 0.05 / 2). Closed set: every impostor is enrolled. "
        "Open set: the impostor is unknown, and nothing was learnt from that person.",
        pd.DataFrame(rows),
        columns,
        labels=2,
        lines=lines,
    )


def _detector(name: str, source: str) -> str:
    return detector_name(name) + (f", {source}" if source == PUBLISHED else "")


def significance_table(users: Users, seed: int = 0) -> Table:
    """Tests of the population model against each of the others, figure by figure."""
    rows = []
    for dataset, metrics in users.items():
        for metric, of in metrics.items():
            others = [name for name in of if name != POPULATION]
            for other in others:
                test = _compared(of[POPULATION], of[other], METRICS[metric][1], len(others), seed)
                rows.append({"dataset": dataset, "figure": metric, "against": other, **test})
    return Table(
        "significance",
        "What the population model gains",
        "Differences of the means over users, with 95 % intervals (bootstrap over users). Two-sided Wilcoxon "
        "signed-rank test over users, at 0.05 / 2 (Bonferroni: two detectors).",
        pd.DataFrame(rows),
        [DATASET, FIGURE, Column("Against", "against", detector_name), *COMPARISON],
        labels=3,
    )


def gains_words(gains: pd.DataFrame) -> list[str]:
    """The verdicts of `significance_table` as sentences, a paragraph per detector compared."""
    paragraphs = []
    for other, of in gains.groupby("against", sort=False):
        sentences = [f"The population model compared with the {detector_name(other)}:"]
        for metric, verdicts in of.groupby("figure", sort=False):
            found = [
                f"{WORDS[str(verdict)]} on {listed([dataset_name(name) for name in names])}"
                for verdict, names in verdicts.groupby("verdict", sort=False)["dataset"]
            ]
            sentences.append(f"{METRICS[str(metric)][0]} is {'; '.join(found)}.")
        paragraphs.append(" ".join(sentences))
    return paragraphs


def curve_frame(users: pd.DataFrame, what: str, seed: int = 0) -> pd.DataFrame:
    """Means with intervals by one of `NUMBERS`: dataset, detector, setting, number, and both figures."""
    rows = []
    keys = ["dataset", "detector", "setting", "number"]
    for labels, of in users[users["what"] == what].groupby(keys, sort=False):
        # A user's figures are averaged over draws of people to learn from.
        means = of.groupby("user", sort=False)[["acc", "eer"]].mean()
        row = dict(zip(keys, labels, strict=True))
        for metric in ("acc", "eer"):
            row |= mean_estimate(means[metric], seed).columns(metric)
        rows.append(row)
    return pd.DataFrame(rows)


def curve_table(frame: pd.DataFrame, what: str, title: str, note: str) -> Table:
    """The values behind a figure of curves."""
    enrolled = Column("Enrolled with", "setting", lambda n: f"{n} sample{'' if n == '1' else 's'}")
    columns = [
        *(DATASET, enrolled if what == PEOPLE else DETECTOR, Column(NUMBERS[what], "number", "{:g}".format)),
        *(estimate_column(METRICS[name][0], name) for name in ("acc", "eer")),
    ]
    table = frame.drop(columns=[] if what == PEOPLE else ["setting"])
    return Table(what, title, f"{note} {INTERVAL_NOTE}", table, columns, labels=3)


def parts_table(users: Users, measured: pd.DataFrame, seed: int = 0) -> Table:
    """The population model without each of its parts, compared with the whole model."""
    rows = []
    of_parts = measured[measured["what"] == PARTS]
    for (dataset, part), of in of_parts.groupby(["dataset", "setting"], sort=False):
        without, row = of.set_index("user"), {"dataset": dataset, "without": part}
        for metric in PARTS_METRICS:
            whole = users[str(dataset)][metric][POPULATION]
            test = _compared(without[metric], whole, METRICS[metric][1], len(WITHOUT), seed)
            row |= {f"{metric}_{name}" if name != "mean" else metric: value for name, value in test.items()}
        rows.append(row)
    columns = [DATASET, Column("Without", "without")]
    for metric in PARTS_METRICS:
        columns += _part_columns(metric)
    return Table(
        "parts",
        "What each part of the population model gives",
        "Closed set, with the paper's protocol. Differences are from the whole model, with 95 % intervals "
        "(bootstrap over users). Bold: significant by the two-sided Wilcoxon signed-rank test over users, at "
        f"0.05 / {len(WITHOUT)} (Bonferroni).",
        pd.DataFrame(rows),
        columns,
        labels=2,
    )


def _part_columns(metric: str) -> list[Column]:
    title, _, digits = METRICS[metric]
    ends = (f"{metric}_difference", f"{metric}_low", f"{metric}_high")

    def significant(row: Line) -> bool:
        return bool(row[f"{metric}_p"] < row[f"{metric}_level"])

    return [
        number_column(title, metric, digits),
        Column(f"{title}, difference", ends, partial(_difference, digits=digits), significant),
        p_column(f"{title}, p", f"{metric}_p"),
    ]


def across_table(users: Users, measured: pd.DataFrame, seed: int = 0) -> Table | None:
    """People of one dataset with the population of another or their own; None if not measured."""
    rows = []
    of_datasets = measured[measured["what"] == ACROSS]
    for (asked, learnt), of in of_datasets.groupby(["dataset", "setting"], sort=False):
        with_other = of.set_index("user")
        for metric in ("acc", "eer"):
            own = users[str(asked)][metric]
            for other in own:
                test = _compared(with_other[metric], own[other], METRICS[metric][1], len(own), seed)
                rows.append(
                    {"people": asked, "learnt_from": learnt, "figure": metric, "against": other, **test}
                )
    if not rows:
        return None
    columns = [
        *(Column("People", "people", dataset_name), Column("Learnt from", "learnt_from", dataset_name)),
        *(FIGURE, number_column("Value", "mean"), Column("Against", "against", _against), *COMPARISON),
    ]
    return Table(
        "across",
        "The population of another dataset",
        "Nothing was learnt from the people who are tested, or from their dataset. Closed set, with the "
        "paper's protocol. Some people may have typed for both datasets; their identifiers do not show it. "
        "Differences have 95 % intervals (bootstrap over users); two-sided Wilcoxon signed-rank test over "
        "users, at 0.05 / 3 (Bonferroni).",
        pd.DataFrame(rows),
        columns,
        labels=3,
    )


def _against(detector: str) -> str:
    return detector_name(detector) + (", own dataset" if detector == POPULATION else "")


def _compared(
    ours: pd.Series[float], theirs: pd.Series[float], higher_is_better: bool, n_tests: int, seed: int
) -> dict[str, Any]:
    """The mean, its difference with interval, p, the corrected level and the verdict."""
    pairs = pd.DataFrame({"ours": ours, "theirs": theirs}).to_numpy(dtype=np.float64)
    difference, low, high = mean_estimate(pairs[:, 0] - pairs[:, 1], seed).numbers
    level = LEVEL / n_tests
    p = signed_rank_p(pairs[:, 0], pairs[:, 1])
    better = (difference > 0) == higher_is_better
    verdict = "no significant difference" if p >= level else "better" if better else "worse"
    return {
        "mean": float(ours.mean()),
        "difference": difference,
        "low": low,
        "high": high,
        "p": p,
        "level": level,
        "verdict": verdict,
    }


def _published(dataset: str, detector: str) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for metric, figures in PUBLISHED_FIGURES.items():
        mean, std = figures.get((dataset, detector), (None, None))
        found |= {f"published_{metric}_mean": mean, f"published_{metric}_std": std}
    return found
