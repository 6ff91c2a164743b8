"""States of watched sessions with any values under a right digest."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from keydyn.decisions.calibration.calibration import Calibration
from keydyn.decisions.watching.sessions import WatchedSessions
from keydyn.decisions.watching.watched import Watching
from keydyn.population.stream.session_state import packed, parsed
from tests.fuzz.changes import changed_bytes, changed_numbers, pick
from tests.fuzz.fuzzed_populations import everybody, model
from tests.fuzz.questions import refuse_nan
from tests.fuzz.targets import Generator, Target

KEYS = list("abcabdab")
VALUES = np.array([[120.0 + n, 80.0 - n] for n in range(len(KEYS))])
FREE = ["residuals", "tempo", "variance", "values", "sums", "weights", "suspicion", "count"]
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
        parts.append(parsed(sessions().state(), sessions()._record))

    def case(generator: Generator) -> bytes:
        state = dict(pick(generator, parts))
        for _ in range(int(generator.integers(1, 4))):
            name = pick(generator, FREE if generator.random() < 0.7 else sorted(state))
            # As many numbers as before: others have no place in a record.
            state[name] = np.resize(changed_numbers(generator, state[name]), state[name].shape)
        with np.errstate(all="ignore"):
            same = {name: values.astype(parts[0][name].dtype) for name, values in state.items()}
        contents = packed(same)
        return contents if generator.random() < 0.8 else changed_bytes(generator, contents, [contents])

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
