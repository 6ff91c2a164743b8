"""The workloads on which speed is measured: `build_x()` makes data from a seed, `run_x(data)` processes them.

Two states and two log-normal features throughout. A to D and F are fits and scores of models on events of
their own, E is many models over the same event sequences. `OBSERVATIONS["x"](data, result)` is what the time
of a run is divided by: observations times iterations.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from keydyn import POHMM, Sequences, fit_many

ITERATIONS = 20
N_TYPES = 12


def simulated(lengths: list[int], n_types: int = N_TYPES, seed: int = 1) -> Sequences:
    """Two log-normal features; three in ten events are slow."""
    rng = np.random.default_rng(seed)
    n = sum(lengths)
    slow = rng.random(n) < 0.3
    logs = [5.0 + slow + 0.3 * rng.standard_normal(n), 4.5 + 0.2 * rng.standard_normal(n)]
    return Sequences.from_arrays(np.exp(np.stack(logs, axis=1)), rng.integers(0, n_types, n), lengths)


def unsmoothed(emission: str = "lognormal") -> POHMM:
    """Plain EM that runs through all its iterations: what other libraries do."""
    model = POHMM(smoothing=None, max_iter=ITERATIONS, tol=0.0, order_states=False, spread=1.0)
    return model.set_params(emission=emission)


def smoothed() -> POHMM:
    """The default model with a fixed number of iterations."""
    return POHMM(max_iter=ITERATIONS, tol=0.0)


def build_a() -> Sequences:
    return simulated([100_000])


def run_a(data: Sequences, emission: str = "lognormal") -> POHMM:
    """One sequence of 100,000."""
    return quietly(lambda: unsmoothed(emission).fit(data))


def build_b() -> Sequences:
    return simulated([11] * 5_000)


run_b = run_a


def build_c() -> list[Sequences]:
    return [simulated([11] * 20, seed=k) for k in range(200)]


def run_c(data: list[Sequences], n_jobs: int | None = None) -> list[POHMM]:
    """200 models of 20 sequences of 11, smoothing included."""
    return quietly(lambda: fit_many(smoothed(), data, n_jobs))


def build_d() -> tuple[POHMM, Sequences]:
    return run_b(simulated([11] * 500)), simulated([11] * 20_000, seed=2)


def run_d(data: tuple[POHMM, Sequences]) -> NDArray[np.float64]:
    """The log-likelihood of each of 20,000 sequences of 11."""
    model, sequences = data
    return model.score_sequences(sequences)


def build_e() -> list[Sequences]:
    """A fixed text of eleven different keys, typed fifty times."""
    text = np.tile(np.arange(11), 50)
    return [Sequences.from_arrays(simulated([550], seed=k).X, text, [11] * 50) for k in range(4_096)]


run_e = run_c


def build_f() -> Sequences:
    """Free text: 70 event types whose frequencies fall off as 1 / rank."""
    rng = np.random.default_rng(4)
    share = 1.0 / np.arange(1, 71)
    events = rng.choice(70, 3_000, p=share / share.sum())
    return Sequences.from_arrays(simulated([3_000], seed=5).X, events)


def run_f(data: Sequences) -> POHMM:
    """3,000 events of 70 types, the published settings."""
    return quietly(lambda: POHMM.published(max_iter=ITERATIONS, tol=0.0).fit(data))


def zipf_events(n_types: int, n_events: int = 1_000_000, seed: int = 6) -> Sequences:
    """Sequences of 1,000 events whose types' frequencies fall off as 1 / rank: how cost grows with types."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, n_types + 1)
    events = rng.choice(n_types, n_events, p=share / share.sum())
    lengths = [1_000] * (n_events // 1_000)
    return Sequences.from_arrays(simulated(lengths, seed=seed).X, events, lengths)


def iterations_of(model: POHMM) -> int:
    """Expectation steps that a fit made, the likelihood of its result included if it took one more."""
    return int(model.n_iter_)


def quietly(run: Callable[[], Any]) -> Any:
    """Run without the warning that a fit of so few iterations has not converged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return run()


# Observations times iterations of a run, given its data and what it returned.
OBSERVATIONS: dict[str, Callable[[Any, Any], int]] = {
    "a": lambda data, model: data.n_events * iterations_of(model),
    "b": lambda data, model: data.n_events * iterations_of(model),
    "c": lambda data, models: sum(d.n_events * iterations_of(m) for d, m in zip(data, models, strict=True)),
    "d": lambda data, scores: data[1].n_events,
    "e": lambda data, models: sum(d.n_events * iterations_of(m) for d, m in zip(data, models, strict=True)),
    "f": lambda data, model: data.n_events * iterations_of(model),
}
