"""Events as they come: one at a time, many sessions at once, many sessions under many models."""

from __future__ import annotations

import workloads
from measuring import measured

from keydyn.model import OnlineBatch


def online() -> dict[str, float]:
    """20,000 calls of `update`, values as a row of an array, types as whole numbers."""
    data = workloads.simulated([20_000])
    model = workloads.run_a(data)
    rows, codes = list(data.X), data.codes.tolist()
    stream = model.online()

    def run() -> None:
        for x, event in zip(rows, codes, strict=True):
            stream.update(x, event)

    return measured(run, len(rows))


def online_batched() -> dict[str, float]:
    """Ten events in each of 5,000 sessions, types encoded before."""
    data = workloads.simulated([50_000])
    streams = workloads.run_a(data).online(n_streams=5_000)
    codes = streams.encode(data.codes)

    def run() -> None:
        for first in range(0, 50_000, 5_000):
            streams.update(data.X[first : first + 5_000], codes=codes[first : first + 5_000])

    return measured(run, 50_000)


def online_population() -> dict[str, float]:
    """Four events in each of 200 sessions, each under 200 models: ns an event and model."""
    models = workloads.run_c([workloads.simulated([11] * 20, seed=k) for k in range(200)])
    batch = OnlineBatch(models, 200)
    data = workloads.simulated([800], seed=999)
    codes = batch.encode(data.codes)

    def run() -> None:
        for first in range(0, 800, 200):
            batch.update(data.X[first : first + 200], codes=codes[first : first + 200])

    return measured(run, 800 * len(models))
