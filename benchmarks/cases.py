"""What is measured: each case is a function that returns numbers, run by `measuring.py`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import workloads
from measuring import measured, speed_up
from online_cases import online
from peers import PEERS, our_hmm
from population_stream import population_stream

from keydyn import Sequences
from keydyn.model.fit.many import score_many

# Slow libraries do fewer iterations: time is per iteration anyway.
PEER_ITERATIONS = {"hmmlearn": 2, "hmmlearn scaling": 4, "dynamax": workloads.ITERATIONS}
Numbers = dict[str, Any]


def ours(name: str) -> Numbers:
    """A workload of `workloads.py`."""
    data = getattr(workloads, f"build_{name}")()
    run = getattr(workloads, f"run_{name}")
    repeats = 3 if name == "e" else 5
    numbers: Numbers = measured(lambda: run(data), partial(workloads.OBSERVATIONS[name], data), repeats)
    if name in ("c", "e"):
        numbers["two_threads"] = speed_up(partial(run, data), repeats=2 if name == "e" else 3)
    return numbers


def peer(name: str, library: str) -> Numbers:
    """The same data in another library."""
    other = PEERS[library]()
    data = getattr(workloads, f"build_{name}")()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "d":
            sequences = data[1]
            part = sequences if library == "dynamax" else sequences[:2_000]
            return {"library": other.name, **measured(other.score_each(part), part.n_events, repeats=3)}
        items = data if isinstance(data, list) else [data]
        iterations = PEER_ITERATIONS[library]
        count = sum(item.n_events for item in items) * iterations
        return {"library": other.name, **measured(other.fit(items, iterations), count, repeats=3)}


def agreement(*libraries: str) -> Numbers:
    """The log-likelihood that each library reaches after 20 iterations from the same start."""
    lists: dict[str, list[Sequences]] = {
        "one sequence": [workloads.simulated([5_000])],
        "short sequences": [workloads.simulated([11] * 200)],
        "several models": [workloads.simulated([11] * 20, seed=k) for k in range(3)],
    }
    reached = {}
    for kind, data in lists.items():
        reached[kind] = {"keydyn": our_hmm(data, workloads.ITERATIONS).tolist()}
        for library in libraries:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = PEERS[library]().fit(data, workloads.ITERATIONS)()
            reached[kind][library] = np.asarray(found).tolist()
    return reached


def growth(n_types: str) -> Numbers:
    """A million events of this many types, with frequencies proportional to 1 / rank; three iterations."""
    data = workloads.zipf_events(int(n_types))
    run = lambda: workloads.quietly(lambda: workloads.unsmoothed().set_params(max_iter=3).fit(data))  # noqa: E731
    return measured(run, data.n_events * 3, repeats=3)


def score_population() -> Numbers:
    """300 samples of 50 events under each of 200 models."""
    models = workloads.run_c([workloads.simulated([11] * 20, seed=k) for k in range(200)])
    samples = workloads.simulated([50] * 300, seed=999)
    score = lambda n_jobs: score_many(models, samples, n_jobs)  # noqa: E731
    numbers: Numbers = measured(lambda: score(1), samples.n_events * len(models), repeats=3)
    numbers["two_threads"] = speed_up(score, repeats=3)
    return numbers


def encoding() -> Numbers:
    """Encoding text labels and values as `Sequences`: done once, before everything else."""
    data = workloads.simulated([11] * 20_000, seed=2)
    labels = np.array([f"key{code}" for code in range(workloads.N_TYPES)], dtype=object)[data.codes]
    return measured(lambda: Sequences.from_arrays(data.X, labels, data.lengths), data.n_events)


CASES: dict[str, Callable[..., Numbers]] = {
    **{name: partial(ours, name) for name in "abcdef"},
    **{f"peer {name}": partial(peer, name) for name in "abcd"},
    "agreement": agreement,
    "growth": growth,
    "scoring": score_population,
    "encoding": encoding,
    "online": online,
    "stream": population_stream,
}
