"""Writes tables, figures and the report of continuous verification (Section 5.3) from ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from keydyn.arrays import Floats
from keydyn.evaluation.continuous.lockout import PenaltyAndReward, RankPenalty, WayToWatch
from keydyn.evaluation.continuous.penalty import WINDOW, first_above
from keydyn.evaluation.continuous.rejection import (
    PUBLISHED,
    SHARED,
    TRANSFERABLE,
    Continuous,
    continuous,
    has_published_thresholds,
)
from keydyn.evaluation.rates.confidence import Rate
from keydyn.figures.penalty_over_time import penalty_figure
from keydyn.lab.drawing.panels import Curve, Pen, curves_figure, draw_curves
from keydyn.lab.frame.names import (
    capital,
    dataset_name,
    detector_name,
    figures_of,
    rate_of,
    rate_words,
    size_of,
    span,
)
from keydyn.lab.frame.outputs import Outputs, read_ranks
from keydyn.lab.frame.published import REJECTION_TIME
from keydyn.lab.frame.report import Picture, Section
from keydyn.lab.frame.score_datasets import Ranked, ranked_of
from keydyn.lab.frame.study import ResultsPage, Values
from keydyn.lab.frame.tables import DATASET, DETECTOR, Column, Table, figure_column, published_beside
from keydyn.lab.recognition.tables import REFERENCE

read = read_ranks
DETECTORS = ("hmm", "pohmm", "pohmm-recommended")
PENALTY = "penalty"
Key = tuple[str, str]
WAYS: tuple[tuple[WayToWatch, str], ...] = (
    (RankPenalty(), PUBLISHED),
    (RankPenalty(), TRANSFERABLE),
    (RankPenalty(), SHARED),
    (PenaltyAndReward(), TRANSFERABLE),
    (PenaltyAndReward(), SHARED),
)


def write(outputs: Outputs, table: pa.Table, facts: Mapping[str, Any]) -> list[Table]:
    """Write tables, figures and the report; returns the paper's table for the terminal."""
    ranked = ranked_of(table)
    outputs.ranks(table)
    section, tables = continuous_section(outputs, ranked, facts)
    lead = [
        "After each key, all templates are ranked by how well they predicted it. The ranks of the claimed "
        f"one over the last {WINDOW} keys add up to a penalty; above a threshold, the session ends."
    ]
    outputs.words([*lead, *(picture.caption for picture in section.figures if picture.path.stem == PENALTY)])
    outputs.report("Continuous verification", lead, [section], facts)
    return tables[:1]


def continuous_section(
    outputs: Outputs, ranked: Ranked, facts: Mapping[str, Any]
) -> tuple[Section, list[Table]]:
    """Write the files of continuous verification; returns the section of the report and all its tables."""
    seed = facts.get("seed", 0)
    results = {
        (key, way.name, thresholds): continuous(ranks, way, thresholds, seed=seed)
        for key, ranks in ranked.items()
        for way, thresholds in WAYS
        if thresholds != PUBLISHED or has_published_thresholds(ranks)
    }
    published = {key: result for (key, _, thresholds), result in results.items() if thresholds == PUBLISHED}
    note, figures = "", _penalty(outputs, ranked)
    tables = [watching_table(results, impostors_of(facts, ranked))]
    if published:
        tables = [rejection_table(published), *tables]
        figures = [_rejection(outputs, published), *figures]
    else:
        note = (
            "The published thresholds are the owner's largest level on the sample that an impostor tries. "
            "By this protocol no sample has both, so there is no average maximum rejection time."
        )
    return Section("Continuous verification", [note], tables, figures), tables


def impostors_of(facts: Mapping[str, Any], ranked: Ranked) -> str:
    """Sentences that say who the impostors of these datasets are."""
    protocols = facts.get("protocols", {})
    texts = dict.fromkeys(protocols[name]["impostors"] for name, _ in ranked if name in protocols)
    return " ".join(f"{capital(text)}." for text in texts)


def rejection_table(results: Mapping[Key, Continuous]) -> Table:
    """The average maximum rejection time, compared with the published figures."""
    rows = [
        (*key, result.rejection.mean, result.rejection.std, *REJECTION_TIME.get(key, (None, None)))
        for key, result in results.items()
    ]
    parts = ["amrt_mean", "amrt_std"]
    columns = ["dataset", "detector", *parts, *(f"published_{part}" for part in parts)]
    return published_beside(
        "continuous",
        "Continuous verification: average maximum rejection time",
        "Keys that an impostor types before being rejected, at the lowest threshold that never rejects the "
        "genuine user on that sample; no real system can know this threshold. Mean (standard deviation) over "
        "samples. Closed set. Templates that tie share a rank here; in the published figures, rounding "
        "errors broke the ties.",
        pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(columns[2:], np.float64)),
        "amrt",
        digits=2,
    )


def watching_table(results: Mapping[tuple[Key, str, str], Continuous], impostors: str = "") -> Table:
    """Both ways to watch a session, at thresholds known beforehand and at the published ones."""
    rows, lines = [], []
    for ((dataset, detector), way, thresholds), result in results.items():
        labels: dict[str, Any] = {"dataset": dataset, "detector": detector}
        labels |= {"watching": way, "thresholds": thresholds}
        rows.append(
            labels
            | {
                "rejection_mean": result.rejection.mean,
                "rejection_std": result.rejection.std,
                "ania": result.ania.value,
                "anga": None if result.anga is None else result.anga.value,
            }
            | _with_trials("locked_out", result.locked_out)
            | _with_trials("unnoticed", result.unnoticed)
        )
        lines.append(vars(result) | labels)
    columns = [
        *(DATASET, DETECTOR, Column("Watching", "watching"), Column("Thresholds", "thresholds")),
        *(figure_column("Rejection time", "rejection"), figure_column("ANIA", "ania", 1)),
        *(figure_column("ANGA", "anga"), figure_column("Genuine users ever locked out", "locked_out")),
        figure_column("Impostors never noticed", "unnoticed"),
    ]
    shares = [f"{name}{end}" for name in ("locked_out", "unnoticed") for end in ("", "_low", "_high")]
    numbers = ["rejection_mean", "rejection_std", "ania", "anga", *shares]
    return Table(
        "watching",
        "Two ways to watch a session",
        "Thresholds: published, the genuine user's own maximum on the same sample; transferable, the "
        "maximum of that user's other samples; shared, the level that 95 % of other users' genuine samples "
        "stay below. ANIA and ANGA: average number of impostor and genuine actions between lock-outs. "
        "Penalty and reward: trust after Bours, from the share of other templates that the claimed one "
        f"beats at each key. {impostors}".strip(),
        pd.DataFrame(rows).astype(dict.fromkeys(numbers, np.float64)),
        columns,
        labels=4,
        lines=lines,
    )


def _with_trials(name: str, rate: Rate | None) -> dict[str, float | None]:
    return (rate or Rate(None)).columns(name) | {f"{name}_trials": rate.trials if rate else None}


def _rejection(outputs: Outputs, results: Mapping[Key, Continuous]) -> Picture:
    panels: dict[str, dict[str, Any]] = {}
    for (dataset, detector), result in results.items():
        times = result.per_sample["rejection_time"].dropna().to_numpy(dtype=np.float64)
        panels.setdefault(dataset, {})[detector] = times
    return outputs.figure(
        rejection_figure(panels),
        "rejection",
        "How many samples have a maximum rejection time (mean over impostors) of at most N keys.",
        "Rising lines, a panel for each dataset and a line for each detector.",
    )


def _penalty(outputs: Outputs, ranked: Ranked) -> list[Picture]:
    """The paper's example: the dataset with the longest recording, the POHMM, its first genuine sample."""
    keys = [key for key in ranked if key[1] == "pohmm"] or list(ranked)
    dataset, detector = max(keys, key=lambda key: int(ranked[key].lengths.max()))
    ranks = ranked[dataset, detector]
    first = int(np.argmax((ranks.own & ranks.trials).any(axis=1)))
    levels = RankPenalty().levels(ranks)[ranks.offsets[first] : ranks.offsets[first + 1]]
    is_owner = ranks.own[first]
    genuine, others = levels[:, is_owner][:, 0], levels[:, ~is_owner & ranks.enrolled[first]]
    threshold = float(genuine.max())
    times = [first_above(others[:, place], threshold) for place in range(others.shape[1])]
    title = f"{dataset_name(dataset)}, {detector_name(detector)}, user {ranks.owners[first]}"
    return [
        outputs.figure(
            penalty_figure(genuine, others, threshold, title),
            PENALTY,
            "The example of the rank penalty is the first sample of the first user of "
            f"{dataset_name(dataset)}, with the templates of {others.shape[1]} others as impostors and a "
            f"band that holds 95 % of them. At the threshold, they are rejected after {np.mean(times):.0f} "
            "keys on average.",
            "A line for the genuine user below a horizontal threshold; the impostors' mean rises above it.",
        )
    ]


HMM = "hmm"


def answer(values: Values) -> str:
    """The keys until an impostor is rejected, at the paper's threshold and at one that a system can know."""
    sentences = []
    measured, watching = values.get("continuous"), values["watching"]
    detectors = list(dict.fromkeys(watching["detector"]))
    detector = REFERENCE if REFERENCE in detectors else detectors[-1]
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
    {
        "continuous": "Each dataset has two lines: what was measured here and what the paper published. A "
        "figure is a number of keys; lower is better.",
        "watching": "Compare lines with the same thresholds. ANIA, the keys between lock-outs of an "
        "impostor, should be low, and ANGA, the same of the genuine user, high.",
    },
    {
        "penalty": "One essay, key by key: the penalty of its author, and those of impostors' templates with "
        "a band that holds 95 % of them. Above the line the session ends.",
        "rejection": "The share of samples (upwards) on which impostors are rejected within a number of keys "
        "(to the right); the further to the left, the better.",
    },
)


LEAST = 5.0  # keys, the shortest axis


def rejection_figure(panels: Mapping[str, Mapping[str, Floats]]) -> Figure:
    """Plot the share of impostor sessions rejected after at most N keys.

    `panels` maps dataset → detector → (R,) keys until rejection, one per impostor session. They are infinite
    if the impostor was never rejected, so that the line ends below 1.
    """

    def draw(axes: Axes, times: Any, pens: Mapping[str, Pen]) -> None:
        ends = [float(t[np.isfinite(t)].max()) for t in times.values() if np.isfinite(t).any()]
        end = max([*ends, LEAST])
        curves = {name: shares(t, 1.04 * end) for name, t in times.items()}
        draw_curves(axes, curves, pens, drawstyle="steps-post")
        axes.set(ylim=(0.0, 1.02), xlim=(-0.02 * end, 1.04 * end))
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))

    return curves_figure(panels, ("keys until rejection", "share of impostors rejected"), draw, sharey=True)


def shares(times: Floats, end: float) -> Curve:
    """The empirical distribution function of the times, from 0 to `end`."""
    if len(times) == 0:
        raise ValueError("there are no rejection times")
    if np.isnan(times).any() or (times < 0).any():
        raise ValueError("rejection times must be 0 or more, infinite where there was none")
    at, count = np.unique(times[np.isfinite(times)], return_counts=True)
    reached = np.cumsum(count) / len(times)
    last = reached[-1] if len(reached) else 0.0
    return Curve(np.concatenate([[0.0], at, [end]]), np.concatenate([[0.0], reached, [last]]))
