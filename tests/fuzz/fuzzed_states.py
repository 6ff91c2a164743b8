"""States of watched sessions with any values under a right digest."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from keydyn.decisions.calibration import Calibration
from keydyn.decisions.watching import WatchedSessions, Watching
from tests.fuzz.fuzzed_models import changed_file, unpacked
from tests.fuzz.fuzzed_populations import everybody, model
from tests.fuzz.questions import refuse_nan
from tests.fuzz.targets import Generator, Target

KEYS = list("abcabdab")
VALUES = np.array([[120.0 + n, 80.0 - n] for n in range(len(KEYS))])
SESSIONS = np.arange(len(KEYS)) % 2


@cache
def sessions() -> WatchedSessions:
    """Two sessions beside a cohort of two."""
    rates = np.zeros((1, 41))
    calibration = Calibration(
        np.array([10]),
        np.zeros(1),
        np.ones(1),
        np.full(1, 1e-3),
        rates,
        rates,
        rates,
        rates,
        np.full(41, 9.0),
        10,
        30.0,
    )
    mine, anyone = model().enrol(everybody()[:2]), model().anyone()
    return WatchedSessions(model(), [mine, anyone], [mine, anyone], calibration, Watching(level=9.0))


def values() -> Target:
    """What is taken goes on, without NaN."""
    parts = []
    for n_keys in (0, 1, 8):
        sessions().restart()
        sessions().update(VALUES[:n_keys], KEYS[:n_keys], SESSIONS[:n_keys])
        parts.append(unpacked(sessions().state()))

    def is_free(name: str) -> bool:
        return name in ("residuals", "tempo", "variance", "values", "sums", "weights", "suspicion", "count")

    def case(generator: Generator) -> bytes:
        return changed_file(generator, parts, is_free)

    return Target("states of watched sessions, values", case, _judged)


def _judged(contents: bytes, folder: Path) -> str:
    try:
        sessions().resume(contents)
    except ValueError:
        return "refused"
    with np.errstate(all="ignore"):
        found = sessions().update(VALUES, KEYS, SESSIONS)
    refuse_nan("suspicion", found.suspicion)
    refuse_nan("ratio", found.ratio[2:])
    return "resumed"
