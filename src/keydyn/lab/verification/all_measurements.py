"""Runs all measurements of the verification study; the results are data frames by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from keydyn.decisions.decision import Targets
from keydyn.evaluation.rates.fairness import median_intervals
from keydyn.lab.frame.chosen import SIMULATED
from keydyn.lab.frame.resuming import Parts, frame_of, run_pieces
from keydyn.lab.frame.study_data import Row
from keydyn.lab.transfer.places import Place
from keydyn.lab.verification.forged.attacked import FALSE_ALARMS, FORGERIES
from keydyn.lab.verification.forged.measurements import forged_pieces
from keydyn.lab.verification.measurements import folds_of, pairs, strangers_piece
from keydyn.lab.verification.security import SECURITY, security_pieces
from keydyn.lab.verification.watching_measurements import DATASETS, watching_frame, watching_pieces

CLAIMS, IDENTIFIED, WATCHING, SPEED = "claims", "identified", "watching", "speed"
CHOICES = "choices"
FORGED = (FORGERIES, FALSE_ALARMS)
FRAMES = (CLAIMS, IDENTIFIED, WATCHING, CHOICES, SPEED, *SECURITY, *FORGED)
# The frames named in `FRAMES`; a frame that cannot be made from the given datasets is absent.
Measured = dict[str, pd.DataFrame]


def run_verification(rows: Sequence[Row], places: Sequence[Place], seed: int, parts: Parts) -> Measured:
    """Run all measurements; parts that were made from the same inputs are reused."""
    strangers = {row.name: [strangers_piece(row, pair, seed) for pair in pairs()] for row in rows}
    security = security_pieces(rows, seed)
    forged = forged_pieces(places, seed)
    watched = {row.name: watching_pieces(row, seed) for row in rows if row.name in (*DATASETS, SIMULATED)}
    everything = [
        *(piece for pieces in strangers.values() for piece in pieces),
        *(piece for pieces in security.values() for piece in pieces),
        *forged,
        *(piece for pieces in watched.values() for piece in pieces),
    ]
    made = run_pieces(everything, parts)
    frames: Measured = {}
    for part, name in enumerate((CLAIMS, IDENTIFIED)):
        frames[name] = pd.concat(
            [
                made[piece.names[part]].to_pandas().assign(dataset=row)
                for row, pieces in strangers.items()
                for piece in pieces
            ],
            ignore_index=True,
        )
    frames[SPEED] = pd.concat([_speeds(row, seed) for row in rows], ignore_index=True)
    for name, pieces in security.items():
        if pieces:
            frames[name] = frame_of(made, pieces)
    for part, name in enumerate(FORGED if forged else ()):
        frames[name] = frame_of(made, forged, part)
    of_watching, choices = [], []
    for name, pieces in watched.items():
        tables = {table: made[table] for piece in pieces for table in piece.names}
        frame, chosen = watching_frame(tables, name, seed)
        of_watching.append(frame)
        choices += chosen
    if of_watching:
        frames[WATCHING] = pd.concat(of_watching, ignore_index=True)
        frames[CHOICES] = pd.DataFrame(choices)
    return frames


def protocols_of(rows: Sequence[Row]) -> dict[str, dict[str, str]]:
    """Describe for each dataset how it is split and who the impostors are."""
    open_set = {
        "impostors": "open set: strangers, whom neither population nor cohort nor calibration has seen",
        "normalisation": "none: calibrated likelihood ratios against a cohort",
        "scales": "population, cohort and calibration are learnt from other people",
    }
    return {row.name: row.protocol.describe() | open_set for row in rows}


def choices_of(measured: Measured) -> dict[str, Any]:
    """The settings fixed in advance, and those chosen on people other than those reported."""
    return {
        "operating point": asdict(Targets()),
        "watching": measured[CHOICES].to_dict("records") if CHOICES in measured else [],
    }


def _speeds(row: Row, seed: int) -> pd.DataFrame:
    """The median interval of each person, numbered as in the claims."""
    people, _ = folds_of(row, seed)
    numbers = dict(zip(row.samples.users.tolist(), people.tolist(), strict=True))
    medians = median_intervals(row.samples)
    return pd.DataFrame(
        {
            "dataset": row.name,
            "user": [numbers[user] for user in medians.index],
            "median_interval": medians.to_numpy(),
        }
    )
