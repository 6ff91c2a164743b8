"""Events as they arrive: one at a time, many sessions at once, many sessions under many models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import workloads
from measuring import measured

from keydyn import Sequences
from keydyn.model import OnlineBatch

SESSIONS, EVENTS = 5_000, 50_000


def one_event() -> dict[str, float]:
    """20,000 calls of `update`, values as a row of an array, types as whole numbers."""
    data = workloads.simulated([20_000])
    model = workloads.run_a(data)
    rows, codes = list(data.X), data.codes.tolist()
    stream = model.online()

    def run() -> None:
        for x, event in zip(rows, codes, strict=True):
            stream.update(x, event)

    return measured(run, len(rows))


def sessions(form: str) -> dict[str, float]:
    """Ten events in each of 5,000 sessions of a model of text labels.

    `form` says what the labels are: "codes" encoded beforehand, "texts" an array of strings, "list" a list
    of strings, "objects" an array of Python strings.
    """
    data = workloads.simulated([EVENTS])
    texts = np.array([f"key{n}" for n in range(workloads.N_TYPES)])[data.codes]
    streams = OnlineBatch([workloads.run_a(Sequences.from_arrays(data.X, texts))], SESSIONS)
    forms: dict[str, Callable[[], Any]] = {
        "codes": lambda: streams.encode(texts),
        "texts": lambda: texts,
        "list": texts.tolist,
        "objects": lambda: np.array(texts.tolist(), dtype=object),
    }
    labels = forms[form]()
    parts = [slice(first, first + SESSIONS) for first in range(0, EVENTS, SESSIONS)]
    calls = [(data.X[part], {"codes" if form == "codes" else "events": labels[part]}) for part in parts]

    def run() -> None:
        for x, types in calls:
            streams.update(x, **types)

    return measured(run, EVENTS)


def many_models() -> dict[str, float]:
    """Four events in each of 200 sessions, each under 200 models: ns per event and model."""
    models = workloads.run_c([workloads.simulated([11] * 20, seed=k) for k in range(200)])
    batch = OnlineBatch(models, 200)
    data = workloads.simulated([800], seed=999)
    codes = batch.encode(data.codes)

    def run() -> None:
        for first in range(0, 800, 200):
            batch.update(data.X[first : first + 200], codes=codes[first : first + 200])

    return measured(run, 800 * len(models))


def online(form: str = "one") -> dict[str, float]:
    """One event at a time, under a population, or many sessions with labels in some form."""
    if form == "one":
        return one_event()
    return many_models() if form == "population" else sessions(form)
