"""Choices seen through the package's own methods: many models, many sequences, many sessions."""

from __future__ import annotations

from typing import Any

import numpy as np
import workloads

from keydyn import Sequences
from keydyn.model.data.label_codes import LabelCodes
from keydyn.model.fit import many
from keydyn.model.watch import filter_bank

Parts = tuple[str, Any, Any, int]
N_MODELS, N_SESSIONS = 256, 5_000


def in_lanes(models: int = N_MODELS) -> Parts:
    text = np.tile(np.arange(11), 50)
    data = [
        Sequences.from_arrays(workloads.simulated([550], seed=k).X, text, [11] * 50) for k in range(models)
    ]

    def alone() -> Any:
        few, many.FEW = many.FEW, models + 1
        try:
            return together()
        finally:
            many.FEW = few

    def together() -> Any:
        return [model.log_likelihood_ for model in workloads.run_c(data)]

    return ("models as vector lanes (whole fits)", alone, together, models * 550 * workloads.ITERATIONS)


def all_sequences(number: int = 1_000) -> Parts:
    model, sequences = workloads.run_b(workloads.simulated([11] * 500)), workloads.simulated([11] * number)
    apart = list(sequences)
    return (
        "all sequences in one call (scores)",
        lambda: np.concatenate([model.score_sequences(one) for one in apart]),
        lambda: model.score_sequences(sequences),
        sequences.n_events,
    )


def sessions(model: Any, data: Sequences) -> Any:
    """One step of many sessions that have begun; each run starts from the same states."""
    streams = model.online(n_streams=data.n_events)
    streams.update(data.X, data.codes)
    begun = streams._bank.filters.copy()

    def run() -> Any:
        streams._bank.filters[:] = begun
        return streams.update(data.X, codes=data.codes)

    return run


def two_states(number: int = N_SESSIONS) -> Parts:
    data = workloads.simulated([number])
    step = sessions(workloads.run_a(data), data)

    def plain() -> Any:
        own, filter_bank.variant_for = filter_bank.variant_for, lambda n_states, families: ((), ())
        try:
            return step()
        finally:
            filter_bank.variant_for = own

    return ("online, many sessions: two states unrolled", plain, step, number)


def all_pairs(number: int = N_SESSIONS) -> Parts:
    data = workloads.simulated([number])
    model = workloads.run_a(data)
    small, filter_bank.SMALL_TABLE = filter_bank.SMALL_TABLE, 0
    searched = sessions(model, data)
    filter_bank.SMALL_TABLE = small
    return ("online, many sessions: all pairs laid out", searched, sessions(model, data), number)


def joined_labels(number: int = N_SESSIONS) -> Parts:
    types = np.array([f"key{n}" for n in range(workloads.N_TYPES)])
    texts = types[np.random.default_rng(0).integers(0, len(types), number)].tolist()
    places, labels = {text: n for n, text in enumerate(types.tolist())}, LabelCodes(types)
    return (
        "list of labels joined and looked up at once",
        lambda: np.fromiter(map(places.get, texts), np.int64, len(texts)),
        lambda: labels.many(texts),
        number,
    )


MODEL_CHOICES = (in_lanes, all_sequences, two_states, all_pairs, joined_labels)
