"""Writes the report of score files, which compares systems by their scores alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import file_digest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

from keydyn.evaluation.rates.detection_cost import DetectionCost
from keydyn.evaluation.rates.system_figures import SystemFigures
from keydyn.evaluation.score_files.reading import own_systems
from keydyn.evaluation.scored_claims import ScoredClaims
from keydyn.lab.frame.names import detector_name, rate_words
from keydyn.lab.frame.outputs import Outputs
from keydyn.lab.frame.report import Picture, Section
from keydyn.lab.frame.score_datasets import words
from keydyn.lab.frame.tables import Table
from keydyn.lab.standard_report.page import write_standard
from keydyn.lab.standard_report.standard_limits import point_of_claims
from keydyn.lab.system_scores import figures
from keydyn.lab.system_scores.tables import (
    Systems,
    attacks_table,
    compared_table,
    conventions_table,
    costs_table,
    rates_table,
    systems_table,
)

# Name → function that draws it, caption, and a description for readers who cannot see it.
PICTURES: dict[str, tuple[Callable[[Systems], Figure | None], str, str]] = {
    "det": (
        figures.det,
        "DET curves of all claims pooled, with 95 % bands over people.",
        "False non-match rate against false match rate on normal-deviate axes, a line for each system.",
    ),
    "roc": (
        figures.roc,
        "ROC curves of all claims pooled, with 95 % bands over people.",
        "True match rate against false match rate, a line for each system.",
    ),
    "cmc": (
        figures.cmc,
        "Cumulative match characteristic: how often the owner is among the first n, with a 95 % band.",
        "Identification rate against rank, a line for each system.",
    ),
    "epc": (
        figures.epc,
        "Expected performance curve: half total error rate at thresholds that other people chose, for each "
        "weight of false matches, with 95 % bands over people.",
        "Half total error rate against the weight of false matches, a line for each system.",
    ),
    "tippett": (
        figures.tippett,
        "Tippett plot: the share of claims with at least a score. Genuine claims should stay at 100 % where "
        "impostors' have fallen to 0.",
        "Two falling lines, genuine and impostor, a panel for each system.",
    ),
    "calibration": (
        figures.calibration,
        "Reliability: likelihood ratios as stated and as observed. On the thin line the two agree.",
        "Observed against stated ratios, a panel for each system.",
    ),
    "ape": (
        figures.ape,
        "Prior-error plot (APE): error rate of Bayes decisions at each prior.",
        "Error rate against prior log-odds, a panel for each system.",
    ),
    "attacks": (
        figures.attacks,
        "How often attacks are accepted (IAPMR) at thresholds of each false match rate.",
        "Share of attacks accepted against false match rate, a panel for each system.",
    ),
}


ABOUT = {
    "rates": "All claims share one threshold. The equal error rate is given on straight lines between "
    "the points of the curve, and on its convex hull.",
    "ratios": "Scores are taken as natural-log likelihood ratios. The difference between a cost and its "
    "minimum is what calibration loses.",
    "scores": "Scores are not taken as likelihood ratios, so there are minimum costs only; `--ratios` "
    "says that they are natural-log likelihood ratios.",
    "elsewhere": "A threshold that is found on the claims that it is judged by looks better than it is. "
    "Here each half of the people has thresholds that the other half chose.",
    "attacks": "An attack is accepted if it scores at least the threshold; thresholds are those of "
    "claims by other people who did not try to imitate anyone.",
}


def write(outputs: Outputs, table: pa.Table, facts: Mapping[str, Any]) -> list[Table]:
    """Write tables, figures and the report; returns the tables for the terminal."""
    cost, ratios, seed = DetectionCost(**facts["cost"]), facts["ratios"], facts["seed"]
    systems = {
        name: SystemFigures(claims, cost, ratios, seed=seed)
        for name, claims in own_systems(table.to_pandas()).items()
    }
    outputs.scores(table)
    rates, costs = rates_table(systems), costs_table(systems)
    compared, attacked = compared_table(systems), attacks_table(systems)
    sections = [
        Section("Error rates", [ABOUT["rates"]], [rates], _drawn(outputs, systems, "det", "roc")),
        Section(
            "Costs and calibration",
            [ABOUT["ratios" if ratios else "scores"]],
            [costs],
            _drawn(outputs, systems, "tippett", *(["calibration"] if ratios else []), "ape"),
        ),
        Section("Thresholds of other people", [ABOUT["elsewhere"]], (), _drawn(outputs, systems, "epc")),
        Section("Identification", (), (), _drawn(outputs, systems, "cmc")),
        Section("Systems compared", (), [] if compared is None else [compared]),
        Section(
            "Attacks",
            [ABOUT["attacks"]],
            [] if attacked is None else [attacked],
            _drawn(outputs, systems, "attacks"),
        ),
        Section("By the definitions of others", (), [conventions_table(systems)]),
        Section("What was compared", (), [systems_table(systems)]),
    ]
    kept = [section for section in sections if section.tables or section.figures]
    outputs.report("Scores evaluated", [verdict(systems), *_warnings(systems)], kept, facts)
    return [
        rates,
        costs,
        *([] if compared is None else [compared]),
        *([] if attacked is None else [attacked]),
        *(_standard(outputs, systems, kept, facts) if "standard" in facts else []),
    ]


def _standard(
    outputs: Outputs, systems: Systems, found: Sequence[Section], facts: Mapping[str, Any]
) -> list[Table]:
    """Write the standard report; systems with unknown people are not judged."""
    judged = [
        point_of_claims(detector_name(name), one.claims)
        for name, one in systems.items()
        if one.claims.has_people
    ]
    attacks = [attack for _, tried in judged for attack in tried]
    return write_standard(outputs, [point for point, _ in judged], attacks, found, facts)


def verdict(systems: Systems) -> str:
    """A sentence that names the system with the lowest equal error rate."""
    best = min(systems, key=lambda name: systems[name].curve.eer)
    rates = systems[best].rates
    interval = rates["eer"].text(1)
    first = f"{detector_name(best)} has " + ("the lowest" if len(systems) > 1 else "an")
    sentence = f"{first} equal error rate{' of all systems' if len(systems) > 1 else ''}, {interval}"
    strict = rates["fnmr_at_fmr_1"]
    if strict.supported:
        sentence += f"; at a false match rate of 1 % it rejects {rate_words(strict)} of genuine claims"
    return sentence + "."


def score_table(systems: Mapping[str, ScoredClaims]) -> pa.Table:
    """All claims in the format of scores.parquet; unknown people have no name."""
    return pa.concat_tables([_rows(name, claims) for name, claims in systems.items()]).unify_dictionaries()


def _rows(name: str, claims: ScoredClaims) -> pa.Table:
    n = len(claims)
    nothing = np.zeros(n, dtype=np.int64)
    same = {"dataset": "scores", "detector": name, "protocol": "of the file", "normalisation": "none"}
    if claims.people:
        names = np.array(claims.people, dtype=object)
        user, reference = words(names, claims.typist), words(names, claims.claimed)
    else:
        user = words(np.array([""], dtype=object), nothing)
        reference = words(np.array(["", "other"], dtype=object), (~claims.genuine).astype(np.int64))
    attack = nothing - 1 if claims.attack is None else claims.attack
    return pa.table(
        {
            **{key: words(np.array([text], dtype=object), nothing) for key, text in same.items()},
            "fold": pa.array(nothing.astype(np.int32)),
            "user": user,
            "session": pa.array(claims.sample),
            "reference": reference,
            "score": pa.array(claims.score),
            "trial": pa.array(np.ones(n, dtype=bool)),
            "attack": words(np.array([*claims.attacks, ""], dtype=object), attack),
        }
    )


def digests(sources: Sequence[str], comparisons: Path | None = None) -> dict[str, str]:
    """SHA-256 of every file read, by its name."""
    paths = [Path(part) for one in sources for part in ([one] if Path(one).exists() else one.split(","))]
    found = {}
    for path in [*paths, *([comparisons] if comparisons else [])]:
        with path.open("rb") as file:
            found[path.name] = file_digest(file, "sha256").hexdigest()
    return found


def _drawn(outputs: Outputs, systems: Systems, *names: str) -> list[Picture]:
    pictures = []
    for name in names:
        draw, caption, alt = PICTURES[name]
        figure = draw(systems)
        if figure is not None:
            pictures.append(outputs.figure(figure, name, caption, alt))
    return pictures


def _warnings(systems: Systems) -> list[str]:
    nameless = [detector_name(name) for name, one in systems.items() if not one.claims.has_people]
    if not nameless:
        return []
    return [
        f"The scores of {', '.join(nameless)} do not say whose they are, so there are no intervals, no rates "
        "by person and no tests: how alike the scores of one person are cannot be known."
    ]
