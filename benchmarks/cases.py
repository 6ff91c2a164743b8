"""What is measured: each case is a function that returns numbers, run by `measuring.py`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import workloads
from decision_cases import decide
from measuring import measured, speed_up
from online_cases import online
from peers import PEERS, our_hmm

from keydyn import POHMM, Sequences

try:
    from keydyn.model.fit.many import score_many
except ImportError:
    # Where revisions before 0.1.0 have it; see `against.py`.
    from keydyn.model.many import score_many

# Slow libraries do fewer iterations: time is per iteration anyway.
PEER_ITERATIONS = {"hmmlearn": 2, "hmmlearn scaling": 4, "dynamax": workloads.ITERATIONS}
Numbers = dict[str, Any]


def ours(name: str) -> Numbers:
    """A workload of `workloads.py`."""
    data = getattr(workloads, f"build_{name}")()
    run = getattr(workloads, f"run_{name}")
    repeats = 3 if name == "e" else 5
    return measured(lambda: run(data), partial(workloads.OBSERVATIONS[name], data), repeats)


def family(emission: str) -> Numbers:
    """Workload A with features of another family."""
    data = workloads.build_a()
    run = partial(workloads.run_a, data, emission)
    return measured(run, partial(workloads.OBSERVATIONS["a"], data))


def threads(name: str) -> Numbers:
    """How many times faster a row is with two threads than with one."""
    run: Callable[[int], Any]
    if name == "scoring":
        run = partial(score_many, *population())
    else:
        run = partial(getattr(workloads, f"run_{name}"), getattr(workloads, f"build_{name}")())
    return {"two_threads": speed_up(run, repeats=2 if name == "e" else 3)}


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


def population() -> tuple[list[POHMM], Sequences]:
    """200 models, and 300 samples of 50 events."""
    models = workloads.run_c([workloads.simulated([11] * 20, seed=k) for k in range(200)])
    return models, workloads.simulated([50] * 300, seed=999)


def score_population() -> Numbers:
    """Each sample under each model."""
    models, samples = population()
    return measured(lambda: score_many(models, samples), samples.n_events * len(models), repeats=3)


def encoding() -> Numbers:
    """Encoding text labels and values as `Sequences`: done once, before everything else."""
    data = workloads.simulated([11] * 20_000, seed=2)
    labels = np.array([f"key{code}" for code in range(workloads.N_TYPES)], dtype=object)[data.codes]
    return measured(lambda: Sequences.from_arrays(data.X, labels, data.lengths), data.n_events)


def stream(n_users: str) -> Numbers:
    """A population processed as a stream."""
    # Imported here: older revisions, whose other rows can be compared, have other names for what it needs.
    from population_stream import population_stream

    return population_stream(n_users)


def people(n_people: str) -> Numbers:
    """The population model."""
    from population_model import population_model

    return population_model(n_people)


def read(layout: str) -> Numbers:
    """A file of a million keystrokes."""
    from reading_cases import reading

    return reading(layout)


CASES: dict[str, Callable[..., Numbers]] = {
    **{name: partial(ours, name) for name in "abcdef"},
    **{f"peer {name}": partial(peer, name) for name in "abcd"},
    "agreement": agreement,
    "family": family,
    "threads": threads,
    "growth": growth,
    "scoring": score_population,
    "encoding": encoding,
    "online": online,
    "stream": stream,
    "people": people,
    "decide": decide,
    "read": read,
}
