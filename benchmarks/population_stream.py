"""A population streams through: simulated, fitted and scored a chunk at a time, in bounded memory."""

from __future__ import annotations

import time

import numpy as np
import workloads
from measuring import memory

from keydyn import fit_many
from keydyn.datasets import stream_typists
from keydyn.keystrokes.timing import sequences_of

SAMPLES, KEYS, CHUNK = 8, 11, 500


def population_stream(n_users: str) -> dict[str, float]:
    """8 samples of 11 keys of each user: 20 iterations of a fit, then the score of each sample.

    Processor time of simulating, of preparing (features and encoding), of fitting and of scoring; memory at
    its largest after the first chunk and at the end.
    """
    spent = dict.fromkeys(("simulate", "prepare", "fit", "score"), 0.0)
    chunks = stream_typists(int(n_users), SAMPLES, "fixed", KEYS, chunk_users=CHUNK)
    after_first = users = 0.0
    worst = np.inf
    clock = time.process_time()

    def lap(what: str) -> None:
        nonlocal clock
        now = time.process_time()
        spent[what] += now - clock
        clock = now

    for keystrokes in chunks:
        lap("simulate")
        sequences = sequences_of(keystrokes)
        data = [sequences[first : first + SAMPLES] for first in range(0, len(sequences), SAMPLES)]
        lap("prepare")
        models = workloads.quietly(lambda data=data: fit_many(workloads.smoothed(), data))
        lap("fit")
        scores = [model.score_sequences(own) for model, own in zip(models, data, strict=True)]
        lap("score")
        users += len(models)
        worst = min(worst, float(np.min(scores)))
        after_first = after_first or memory("VmHWM")
    if not np.isfinite(worst):
        raise SystemExit("a sample has no finite score under its own model")
    return {
        "users": users,
        **{f"{what}_us": 1e6 * seconds / users for what, seconds in spent.items()},
        "models_a_second": users / (spent["fit"] + spent["score"]),
        "memory_first_chunk_mb": after_first,
        "memory_end_mb": memory("VmHWM"),
    }
