"""Measures ways to watch sessions at equal rates of false lock-outs, for the verification study.

People are divided into five folds. The population, the cohort and the calibration of a fold are learnt from
the people of the other four, and so are the limits and settings of each way to watch, so that nothing is
chosen on the people reported. A part keeps, for each way and setting, the highest level so far at each key,
which is enough to find the key at which a limit is first exceeded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from keydyn.arrays import Floats, Integers
from keydyn.decisions.calibration.sequential import ALLOWED, faded, increments, suspicion, wald_bounds
from keydyn.decisions.calibration.trials import MS_PER_HOUR, hours_of
from keydyn.decisions.liveness.not_typed import times_of
from keydyn.decisions.watching.watched import faded_ratios
from keydyn.detectors import PopulationDetector
from keydyn.evaluation.continuous.penalty import HIGHEST, TrustSettings, ranks, trust, window_penalty
from keydyn.keystrokes.samples import Samples
from keydyn.keystrokes.schema import SAMPLE
from keydyn.lab.frame.resuming import Piece
from keydyn.lab.frame.score_datasets import inputs_of
from keydyn.lab.frame.study_data import Row
from keydyn.lab.verification.measurements import BACKGROUND, FOLDS, background_of, folds_of
from keydyn.lab.verification.watch_comparison import Compared, TriedSessions, compare
from keydyn.lab.verification.watched_people import OTHERS, together, watched_people

DATASETS = ("fable", "essay")
# False lock-outs per hour of typing at which the ways are compared; the hours of typing support these rates.
PER_HOUR: Mapping[str, tuple[float, ...]] = {"fable": (3.0,), "essay": (1.0, 0.5)}
OTHERWISE = (3.0,)
# The figures of each way, in the order of the frame's columns.
FIGURES = (
    "lockouts_per_hour",
    "genuine_locked",
    *(f"{who}_{what}" for who in ("start", "change") for what in ("median", "mean", "unnoticed")),
)


def watching_pieces(row: Row, seed: int) -> list[Piece]:
    """One piece per fold, with its sessions and their levels under every way to watch."""
    pieces = []
    for fold in range(FOLDS):
        names = _names(row.name, fold)
        inputs = inputs_of(row, PopulationDetector()) | {
            "seed": seed,
            "people": [FOLDS, fold, OTHERS],
            "samples of each": BACKGROUND,
        }
        what, cost = f"{row.name} · watching {fold + 1}", float(4 * row.samples.sequences.n_events)
        pieces.append(Piece(names, inputs, [partial(_watched, row, fold, seed)], what, cost))
    return pieces


def watching_frame(tables: Mapping[str, pa.Table], name: str, seed: int) -> tuple[pd.DataFrame, list[Any]]:
    """One row per rate and way for a dataset, with intervals over people; and the choices of each fold.

    `tables` are those of the dataset's pieces. In the columns, an impostor types from the `start`, or takes
    over after a `change`.
    """
    sessions, ways = _joined(tables, name)
    rows, choices = [], []
    for per_hour in PER_HOUR.get(name, OTHERWISE):
        for one in compare(ways, sessions, per_hour, int(sessions.lengths.max()), seed=seed):
            labels = {"dataset": name, "target_per_hour": per_hour, "way": one.way}
            rows.append(labels | _figures(one))
            choices += [
                labels | {"fold": fold, "setting": SETTINGS[one.way][variant], "level": level}
                for fold, (variant, level) in enumerate(one.choices)
            ]
    changes = ~sessions.genuine & ~sessions.from_start
    keys = (sessions.lengths - sessions.changed)[changes].max()
    genuine = sessions.hours[sessions.offsets[1:] - 1][sessions.genuine].sum()
    return pd.DataFrame(rows).assign(keys_after_change=keys, genuine_hours=genuine), choices


def _names(name: str, fold: int) -> tuple[str, str]:
    stem = f"{name}-watching-{fold}"
    return f"{stem}-sessions", f"{stem}-levels"


def _watched(row: Row, fold: int, seed: int) -> tuple[pa.Table, pa.Table]:
    background = background_of(row, seed, (fold,))
    people, folds = folds_of(row, seed)
    pattern = background.pattern
    if not isinstance(pattern, PopulationDetector):
        raise TypeError(f"sessions are watched with a population, not with {pattern.name}")
    beside = background.watched.others
    cohort = [one.template_ for one in beside if isinstance(one, PopulationDetector)]
    typed = keystrokes_of(row.samples[folds[people] == fold])
    sessions, terms = watched_people(typed, pattern.people, cohort, fold)
    ways = ways_to_watch(terms, sessions.offsets, partial(faded_ratios, background.calibrations.typical))
    levels = {
        f"{way} {number}": highest_so_far(variant, sessions.offsets).astype(np.float32)
        for way, variants in ways.items()
        for number, variant in enumerate(variants)
    }
    about = {"length": sessions.lengths, "claimed": sessions.claimed.astype(str), "changed": sessions.changed}
    return pa.table(about), pa.table({"hours": sessions.hours, **levels})


def keystrokes_of(samples: Samples) -> pd.DataFrame:
    """Samples as keystrokes in the schema, each starting at 0 ms."""
    lengths, press = samples.sequences.lengths, hours_of(samples) * MS_PER_HOUR
    columns = {name: np.repeat(samples.index.get_level_values(name), lengths) for name in SAMPLE}
    return pd.DataFrame(
        columns
        | {
            "keyname": samples.sequences.labels(),
            "timepress": press,
            "timerelease": press + times_of(samples)[:, 1],
        }
    )


def highest_so_far(levels: Floats, offsets: Integers) -> Floats:
    """The running maximum (N,) of the levels (N,) within each session."""
    highest = np.array(levels)
    for begin, end in pairwise(offsets.tolist()):
        np.maximum.accumulate(highest[begin:end], out=highest[begin:end])
    return highest


def _joined(tables: Mapping[str, pa.Table], name: str) -> tuple[TriedSessions, dict[str, list[Floats]]]:
    """The sessions of all folds, and the levels of the ways as stored."""
    parts, columns = [], []
    for fold in range(FOLDS):
        about, levels = (tables[part] for part in _names(name, fold))
        length, claimed, changed = (about[column].to_numpy() for column in ("length", "claimed", "changed"))
        offsets = np.concatenate([[0], np.cumsum(length)])
        folds = np.full(len(length), fold, dtype=np.int64)
        columns = levels.column_names[1:]
        values = np.column_stack([levels[column].to_numpy() for column in columns])
        parts.append((TriedSessions(offsets, levels["hours"].to_numpy(), claimed, changed, folds), values))
    sessions, values = together(parts)
    ways: dict[str, list[Floats]] = {}
    for place, column in enumerate(columns):
        ways.setdefault(column.rpartition(" ")[0], []).append(values[:, place].astype(np.float64))
    return sessions, ways


def _figures(one: Compared) -> dict[str, float | None]:
    """All figures of a way, with the bounds of their intervals."""
    estimates = [one.per_hour, one.locked]
    for times in (one.from_start, one.after_change):
        estimates += [times.median, times.mean, times.unnoticed]
    named = zip(FIGURES, estimates, strict=True)
    return {column: value for name, found in named for column, value in found.columns(name).items()}


WINDOWS = (10, 25, 50)
TURNING = (0.5, 0.6, 0.7)
RATIO_KEEPS = (0.9, 0.95, 0.98)
KEEPS, LEASTS = (0.8, 0.9, 0.95), (-2.0, -3.0)
# Wald's test restarts at the bound at which strangers would be accepted this often; its other bound is the
# limit to be found.
FALSE_ACCEPTS = (0.1, 0.01)
_STEPS = [f"keep {keep:g}, least {least:g}" for keep in KEEPS for least in LEASTS]
# Descriptions of the variants of each way, in their order.
SETTINGS = {
    "rank penalty": [f"window {window}" for window in WINDOWS],
    "trust": [f"turning {turning:g}" for turning in TURNING],
    "ratio with forgetting": [f"keep {keep:g}" for keep in RATIO_KEEPS],
    "Wald's test": [f"{steps}, false accept {rate:g}" for steps in _STEPS for rate in FALSE_ACCEPTS],
    "Page's sum": _STEPS,
}


def ways_to_watch(
    terms: Floats, offsets: Integers, evidence: Callable[[Floats, Floats], Floats]
) -> dict[str, list[Floats]]:
    """All ways by name, from the terms (N, 1 + C) of all sessions, the claimed person's first."""
    ranked = ranks(terms)
    return {
        "rank penalty": [window_penalty(ranked, offsets, window)[:, 0] for window in WINDOWS],
        "trust": [
            HIGHEST - trust(ranked, offsets, TrustSettings(turning=turning))[:, 0] for turning in TURNING
        ],
        "ratio with forgetting": [-evidence(*faded(terms, offsets, keep)) for keep in RATIO_KEEPS],
        "Wald's test": [
            suspicion(steps, offsets, wald_bounds(rate, 1e-6).accept, allowed=ALLOWED)
            for steps in _steps(terms, offsets)
            for rate in FALSE_ACCEPTS
        ],
        "Page's sum": [suspicion(steps, offsets, allowed=ALLOWED) for steps in _steps(terms, offsets)],
    }


def _steps(terms: Floats, offsets: Integers) -> Iterator[Floats]:
    for keep in KEEPS:
        for least in LEASTS:
            yield increments(terms, offsets, keep, least)
