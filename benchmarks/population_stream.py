"""A population processed as a stream: simulated, fitted and scored one chunk at a time, in bounded memory."""

from __future__ import annotations

import sys
import time

import numpy as np
import pandas as pd
import workloads
from measuring import forget_peak, memory
from numpy.typing import NDArray

from keydyn import fit_many
from keydyn.datasets import make_typists
from keydyn.keystrokes.timing import sequences_of

SAMPLES, KEYS, CHUNK = 8, 11, 500
PARTS = ("simulate", "prepare", "fit", "score")
# Seconds between two lines of progress.
REPORT_EVERY = 10.0


def population_stream(n_users: str) -> dict[str, float]:
    """8 samples of 11 keys of each user: 20 iterations of a fit, then the score of each sample.

    Processor time of simulating, of preparing (features and encoding), of fitting and of scoring; peak
    memory after the first chunk and at the end. All loops are compiled beforehand.
    """
    total = int(n_users)
    # These people are not part of the population.
    fit_and_score(make_typists(CHUNK, SAMPLES, "fixed", KEYS, first_user=total), Laps())
    forget_peak()
    laps, progress = Laps(), Progress(total)
    after_first, users, worst = 0.0, 0, np.inf
    for first in range(0, total, CHUNK):
        keystrokes = make_typists(min(CHUNK, total - first), SAMPLES, "fixed", KEYS, first_user=first)
        laps.end("simulate")
        scores = fit_and_score(keystrokes, laps)
        users += len(scores)
        worst = min(worst, float(np.min(scores)))
        after_first = after_first or memory("VmHWM")
        progress.report(users)
    if users != total or not np.isfinite(worst):
        raise SystemExit("a user is missing, or a sample has no finite score under its own model")
    return {
        "users": users,
        **{f"{what}_us": 1e6 * laps.spent[what] / users for what in PARTS},
        "models_a_second": users / (laps.spent["fit"] + laps.spent["score"]),
        "memory_first_chunk_mb": after_first,
        "memory_end_mb": memory("VmHWM"),
    }


def fit_and_score(keystrokes: pd.DataFrame, laps: Laps) -> list[NDArray[np.float64]]:
    """The scores of each user's samples under a model fitted to them."""
    sequences = sequences_of(keystrokes)
    data = [sequences[first : first + SAMPLES] for first in range(0, len(sequences), SAMPLES)]
    laps.end("prepare")
    models = workloads.quietly(lambda: fit_many(workloads.smoothed(), data))
    laps.end("fit")
    scores = [model.score_sequences(own) for model, own in zip(models, data, strict=True)]
    laps.end("score")
    return scores


class Laps:
    """Processor time by what it was spent on."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys(PARTS, 0.0)
        self._clock = time.process_time()

    def end(self, what: str) -> None:
        """Record that the time since the last call was spent on this."""
        now = time.process_time()
        self.spent[what] += now - self._clock
        self._clock = now


class Progress:
    """Prints a line now and then: how many users are done, and how long the rest will take."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._began = self._reported = time.monotonic()

    def report(self, done: int) -> None:
        """Print the line, unless one was printed a moment ago."""
        now = time.monotonic()
        if now - self._reported < REPORT_EVERY:
            return
        self._reported = now
        left = (now - self._began) * (self._total - done) / done
        print(
            f"       {done:,} of {self._total:,} users, {done / (now - self._began):,.0f} per second, "
            f"{memory('VmRSS'):,.0f} MB, {left / 60.0:,.0f} min left",
            file=sys.stderr,
            flush=True,
        )
