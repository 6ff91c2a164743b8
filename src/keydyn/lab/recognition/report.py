"""Writes tables, figures and the report of identification and verification (Section 5.2) from scores."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from keydyn.evaluation.protocols.protocol import OpenSet
from keydyn.evaluation.rates.confidence import Estimate, mean_estimate
from keydyn.evaluation.rates.verification import mean_curve
from keydyn.figures.marginal_density import Typist, marginal_density_figure
from keydyn.lab.drawing.curves import cmc_figure, det_figure, roc_figure
from keydyn.lab.drawing.panels import Curve, intervals_figure
from keydyn.lab.frame.names import (
    capital,
    dataset_name,
    detector_name,
    figures_of,
    lead_of,
    of_all,
    percent,
    span,
)
from keydyn.lab.frame.outputs import Outputs, read_scores
from keydyn.lab.frame.report import Picture, Section
from keydyn.lab.frame.score_datasets import protocol_names, scored_of
from keydyn.lab.frame.study import ResultsPage, Values
from keydyn.lab.frame.study_data import Row
from keydyn.lab.frame.tables import Table, mean_and_deviation, without_empty_columns
from keydyn.lab.recognition.tables import (
    REFERENCE,
    Key,
    RecognitionFigures,
    error_rates_table,
    open_set_table,
    ranks_table,
    recognition_figures,
    recognition_tables,
    recommended_table,
    too_few,
    verdict_of,
)
from keydyn.model import POHMM

read = read_scores
DETECTORS = ("manhattan", "manhattan-scaled", "svm", "hmm", "pohmm", "pohmm-recommended")
VECTOR_DETECTORS = ("manhattan", "manhattan-scaled", "svm")
LONG_TEXT = {"fable", "essay"}
DENSITIES = "marginal_density"
DENSITIES_CAPTION = (
    "Marginal densities of the active and the passive state of a POHMM against histograms of what was "
    "typed: the first user of each dataset. Published settings, but the interval leads the start instead "
    "of the hold time, so that the states differ in tempo."
)
DENSITIES_ALT = (
    "Rows of histograms of intervals and durations with the density of each hidden state over them."
)


IDENTIFIED = (
    "A sample is identified if its owner's template scores highest of all. Templates that tie share the "
    "sample."
)
ACCEPTED = (
    "A sample is accepted if its score against the claimed template reaches a threshold. The equal error "
    "rate is where the false match rate and the false non-match rate cross."
)
CLOSED_AND_OPEN = (
    "In a closed set every impostor is an enrolled user, and the impostor's own template is part of the "
    "cohort that scales the scores: it lowers the impostor's scores for all other templates, which would not "
    "happen in a real system. Leaving it out shows how much difference that makes."
)


def write(outputs: Outputs, table: pa.Table, facts: Mapping[str, Any]) -> list[Table]:
    """Write tables, figures and the report; returns the tables for the terminal."""
    verdict, sections, for_terminal = recognition_sections(outputs, table, facts)
    outputs.report("Identification and verification", [verdict, *lead_of(facts)], sections, facts)
    return for_terminal


def recognition_sections(
    outputs: Outputs, table: pa.Table, facts: Mapping[str, Any]
) -> tuple[str, list[Section], list[Table]]:
    """Write tables and figures; returns the verdict, the report's sections and the terminal's tables."""
    seed = facts.get("seed", 0)
    measured = recognition_figures(scored_of(table), seed)
    outputs.scores(table)
    opened = {name for name, protocol in protocol_names(table).items() if protocol == OpenSet.name}
    few = too_few(measured, list(dict.fromkeys(key[0] for key in measured)))
    tables = recognition_tables(measured, _marks(measured, facts), f"{few} {notes_of(facts)}".strip())
    beyond = [
        without_empty_columns(one)
        for one in (
            ranks_table(measured, opened),
            open_set_table(measured, opened),
            error_rates_table(measured),
        )
    ]
    # Both figures side by side: a file for programs, and for the terminal.
    outputs.table(tables[2])
    roc, det, cmc = _curve_figures(outputs, measured)
    sections = [
        Section("Identification", [IDENTIFIED], [tables[0], beyond[0]], [cmc]),
        Section("Verification", [ACCEPTED], [tables[1]], [roc, det]),
        Section(
            "Closed and open set",
            [CLOSED_AND_OPEN],
            [beyond[1]],
            [_open_figure(outputs, measured, opened, seed)],
        ),
    ]
    recommended = recommended_table(measured)
    if recommended is not None:
        sections.append(Section("Recommended settings", (), [recommended]))
    densities = outputs.kept_figure(DENSITIES, DENSITIES_CAPTION, DENSITIES_ALT)
    if densities:
        sections.append(Section("Hidden states", (), (), densities))
    sections.append(Section("All error rates", (), [beyond[2]]))
    return verdict_of(measured, opened), sections, tables[2:]


def draw_densities(rows: Sequence[Row], outputs: Outputs) -> None:
    """Draw marginal densities for the first user of each dataset, fitted to all of that user's samples."""
    typists = []
    for row in rows:
        samples = row.samples[row.samples.users == row.samples.users[0]]
        tau = list(samples.sequences.feature_names or ()).index("tau")
        model = POHMM.published(emission=list(samples.emission), leading_feature=tau).fit(samples.sequences)
        typists.append(Typist(f"{dataset_name(row.name)}, user {samples.users[0]}", model, samples.sequences))
    outputs.figure(marginal_density_figure(typists), DENSITIES, DENSITIES_CAPTION, DENSITIES_ALT)


def _curve_figures(
    outputs: Outputs, measured: Mapping[Key, RecognitionFigures]
) -> tuple[Picture, Picture, Picture]:
    roc: dict[str, dict[str, Curve]] = {}
    det: dict[str, dict[str, Curve]] = {}
    cmc: dict[str, dict[str, Curve]] = {}
    for (dataset, detector), figures in measured.items():
        mean = mean_curve(figures.verification.curves)
        roc.setdefault(dataset, {})[detector] = Curve(mean.fmr, 1 - mean.fnmr, 1 - mean.high, 1 - mean.low)
        pooled = figures.verification.pooled
        det.setdefault(dataset, {})[detector] = Curve(pooled.fmr, pooled.fnmr)
        ranks = figures.identification.to_frame()
        cmc.setdefault(dataset, {})[detector] = Curve(
            *(ranks[name].to_numpy(dtype=float) for name in ("rank", "rate", "low", "high"))
        )
    return (
        outputs.figure(
            roc_figure(roc),
            "roc",
            "ROC curves, each user at thresholds of their own, mean over users with a 95 % band (bootstrap "
            "over users). Scores as the protocol normalises them.",
            "True match rate against false match rate, a panel for each dataset, a line for each detector.",
        ),
        outputs.figure(
            det_figure(det),
            "det",
            "DET curves of all trials pooled, one threshold for everybody.",
            "False non-match rate against false match rate on normal-deviate axes.",
        ),
        outputs.figure(
            cmc_figure(cmc),
            "cmc",
            "Cumulative match characteristic: how often the owner is among the first n, mean over users with "
            "a 95 % band.",
            "Identification rate against rank, a panel for each dataset and a line for each detector.",
        ),
    )


def _open_figure(
    outputs: Outputs, measured: Mapping[Key, RecognitionFigures], opened: Collection[str], seed: int
) -> Picture:
    ways = {"eer": "closed set", "eer_open": "impostor not in the cohort"}
    panels: dict[str, dict[str, dict[str, Estimate]]] = {}
    for (dataset, detector), figures in measured.items():
        for way, title in ways.items():
            rates = figures.users[way]
            if rates.isna().any() or (way == "eer" and dataset in opened):
                continue
            panels.setdefault(dataset, {}).setdefault(title, {})[detector] = mean_estimate(rates, seed)
    return outputs.figure(
        intervals_figure(panels, "equal error rate, mean over users"),
        "open_set",
        "Equal error rate with the impostor in the cohort that normalises the scores and without, and 95 % "
        "intervals (bootstrap over users).",
        "For each dataset and detector two dots with intervals: closed set and open set.",
    )


def _marks(measured: Mapping[Key, RecognitionFigures], facts: Mapping[str, Any]) -> dict[Key, str]:
    """Marks for vector detectors on published long texts whose vectors are ours, not the authors'."""
    ours = {name for name, source in facts.get("vectors", {}).items() if source == "ours"}
    return {key: "†" for key in measured if key[1] in VECTOR_DETECTORS and key[0] in ours & LONG_TEXT}


def notes_of(facts: Mapping[str, Any]) -> str:
    """Notes for reading the tables: who the impostors are, and where the vectors come from."""
    impostors = dict.fromkeys(protocol["impostors"] for protocol in facts.get("protocols", {}).values())
    notes = [f"{capital(text)}." for text in impostors]
    sources = {name: facts.get("vectors", {}).get(name) for name in LONG_TEXT}
    if "ours" in sources.values():
        notes.append("† Feature vectors are ours: the authors' own are not in the data folder.")
    elif any(sources.values()):
        notes.append("Long-text vectors are the authors' own, read from the data folder.")
    return " ".join(notes)


def answer(values: Values) -> str:
    """The results of the POHMM in closed and open sets, and whether they match the published ones."""
    accuracy, errors = values["identification"], values["verification"]
    detectors = list(dict.fromkeys(accuracy["detector"]))
    detector = REFERENCE if REFERENCE in detectors else detectors[-1]
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
    return ". ".join(filter(None, [first, capital(second)])) + "."


def _strangers(frame: pd.DataFrame | None, detector: str) -> str:
    """A clause about impostors who are not enrolled, if they were measured."""
    rates = {} if frame is None else figures_of(frame[frame["detector"] == detector], "eer_open_mean")
    return (
        f"the equal error rate is {span(rates, percent)} if impostors are unknown to the system"
        if rates
        else ""
    )


def _reproduced(values: Values) -> str:
    """A clause about the published figures, if there are any."""
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
    {
        "identification": "Each dataset has two lines: what was measured here and what the paper published. "
        "A figure is the share of samples whose author is named; higher is better.",
        "verification": "Read it in the same way. A figure is the error rate at which as many genuine "
        "samples are rejected as impostors are accepted; lower is better.",
        "recommended": "Compare the two POHMM columns. A positive difference is better for accuracy, a "
        "negative one for the equal error rate; the last column says whether it is significant.",
        "open_set": "Read from left to right: the error rate rises as the impostor becomes less known to the "
        "system. The middle column is the one to expect in use.",
    },
    {
        "open_set": "Equal error rates by dataset and detector, with the impostor enrolled (closed set) and "
        "unknown (open set); lower is better. Bars are 95 % intervals over users.",
        "roc": "ROC curves: the nearer to the top left corner, the better. Mean over users, with 95 % bands.",
        "marginal_density": "What the first user of each dataset typed, and the densities of the two hidden "
        "states, active and passive.",
    },
)
