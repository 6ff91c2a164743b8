"""The simulation study (Section 4): are the parameters and hidden states of known models recovered?

1. a POHMM without smoothing on data from a POHMM
2. a POHMM with smoothing on the same data
3. a POHMM without smoothing on data from an HMM, with random event types; its marginals are judged
4. an HMM on the data of 1 and 2, ignoring event types, compared with the marginal model of θ₀

Fitted states are matched with true ones type by type, by how often they agree with the states drawn
(`keydyn.model.check.surrogates`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from keydyn.arrays import Floats, Integers
from keydyn.model import HMM, POHMM, Sequences
from keydyn.model.check import surrogates

EVENT_TYPES = ("a", "b", "c")

# Locations and scales of the active and the passive state by event type. The slow type's active state is
# slower than the fast type's passive one: a model that ignores types cannot tell them apart.
LOCATIONS = np.array([[100.0, 220.0], [160.0, 360.0], [240.0, 520.0]])
SCALES = np.array([[25.0, 45.0], [35.0, 70.0], [50.0, 100.0]])
UNIFORM = np.full((3, 3, 2, 2), 0.5)
PERSISTENT = np.tile(np.array([[0.8, 0.2], [0.4, 0.6]]), (3, 3, 1, 1))

TRUTHS = ("keystrokes", "persistent", "overlapping")


def true_model(name: str = "keystrokes") -> POHMM:
    """The true model θ₀ by its name; "random-7" is drawn with the seed 7.

    "keystrokes" has uniform transition probabilities, as in the paper; the states of "persistent" last; those
    of "overlapping" last and are also closer together.
    """
    if name == "keystrokes":
        return _model(UNIFORM, LOCATIONS, SCALES)
    if name == "persistent":
        return _model(PERSISTENT, LOCATIONS, SCALES)
    if name == "overlapping":
        return _model(PERSISTENT, LOCATIONS, 1.5 * SCALES)
    kind, _, seed = name.partition("-")
    if kind == "random" and seed.isdecimal():
        return _random(np.random.default_rng(int(seed)))
    raise ValueError(f"there is no true model {name!r}; there are {', '.join(TRUTHS)} and random-SEED")


def true_hmm(name: str = "keystrokes") -> HMM:
    """The HMM of the same name: each state has the average location, scale and transitions over types.

    Its states are as far apart as those of one type; those of `to_hmm()` also include the spread between
    types.
    """
    model = true_model(name)
    emission = model.emission_[0]
    return HMM.from_parameters(
        model.startprob_.mean(axis=0),
        model.transmat_.mean(axis=(0, 1)),
        [("normal", emission.loc.mean(axis=0), emission.scale.mean(axis=0))],
    )


def _random(generator: np.random.Generator) -> POHMM:
    active = generator.uniform(80.0, 250.0, 3)
    loc = np.stack([active, active + generator.uniform(120.0, 300.0, 3)], axis=1)
    to_passive = generator.uniform(0.2, 0.8, (3, 3, 2))
    return _model(
        np.stack([1.0 - to_passive, to_passive], axis=3), loc, loc * generator.uniform(0.12, 0.25, (3, 2))
    )


def _model(transmat: Floats, loc: Floats, scale: Floats) -> POHMM:
    return POHMM.from_parameters(EVENT_TYPES, np.full((3, 2), 0.5), transmat, [("normal", loc, scale)])


N_VALUES = (100, 316, 1000, 3162, 10_000, 31_623, 100_000)
# When the log-likelihood gains a thousandth, parameters move by a small share of their standard errors.
TOLERANCE = 1e-3
MAX_ITERATIONS = 2000
# The number of events drawn and fitted at once; their intervals take 51 MB.
BATCH = 6_400_000
# The number of models per call of `fit_many`, which fits several side by side: a multiple of 64 leaves none
# of its slots empty, however many it has.
MODELS_PER_CALL = 64
# The largest number of events per sample on which hidden states are compared.
COMPARED = 10_000


class Scenario(NamedTuple):
    """A model fitted to data from a source; `source` is the model that generates the data."""

    number: int
    title: str
    source: str
    marginal: bool


SCENARIOS = (
    Scenario(1, "POHMM on POHMM", "pohmm", False),
    Scenario(2, "smoothed POHMM on POHMM", "pohmm", False),
    Scenario(3, "POHMM on HMM", "hmm", True),
    Scenario(4, "HMM on POHMM", "pohmm", True),
)


class DrawnSample(NamedTuple):
    """A generated sequence with its hidden states (N,)."""

    sequences: Sequences
    states: Integers

    def first(self, n: int) -> Sequences:
        """The sequence's first n events."""
        drawn = self.sequences
        return replace(drawn, X=drawn.X[:n], codes=drawn.codes[:n], offsets=np.array([0, n], dtype=np.int64))


class Simulation(NamedTuple):
    """The results of the study.

    Attributes
    ----------
    estimates : truth, scenario, n, sample, part, parameter, estimate, true
    accuracies : truth, scenario, n, sample, accuracy, best: shares of hidden states found, by the fitted and
        by the true model
    """

    estimates: pd.DataFrame
    accuracies: pd.DataFrame


@dataclass(frozen=True)
class SampleBatch:
    """Several samples of one length from one source, to be fitted in the scenarios that use it."""

    truth: str
    source: str
    n: int
    first_sample: int
    n_samples: int
    scenarios: tuple[int, ...]
    seed: int

    @property
    def work(self) -> int:
        """The number of events to fit."""
        return self.n * self.n_samples * len(self.scenarios)


def batches(
    truth: str,
    n_values: Sequence[int],
    n_samples: int,
    scenarios: Sequence[int],
    seed: int,
    events: int = BATCH,
) -> Iterator[SampleBatch]:
    """Divide the study into batches of at most `events` events, to be done and kept in any order."""
    for n in n_values:
        size = max(1, min(n_samples, events // n))
        size -= size % MODELS_PER_CALL if MODELS_PER_CALL < size < n_samples else 0
        for source in ("pohmm", "hmm"):
            used = tuple(s.number for s in SCENARIOS if s.source == source and s.number in scenarios)
            for first in range(0, n_samples if used else 0, size):
                yield SampleBatch(truth, source, n, first, min(size, n_samples - first), used, seed)


def fit_batch(batch: SampleBatch, n_jobs: int | None = None) -> Simulation:
    """Draw the samples of a batch, fit them in every scenario, and match the states."""
    pohmm = true_model(batch.truth)
    source = pohmm if batch.source == "pohmm" else true_hmm(batch.truth)
    drawn = _draw(pohmm, source, batch)
    data = [sample.sequences for sample in drawn]
    compared = min(batch.n, COMPARED)
    best = [
        float(np.mean(source.predict(sample.first(compared)) == sample.states[:compared])) for sample in drawn
    ]
    samples = np.arange(batch.first_sample, batch.first_sample + batch.n_samples)
    estimates, accuracies = [], []
    for number in batch.scenarios:
        scenario = SCENARIOS[number - 1]
        right = _true_values(scenario, source)
        names = _names(scenario.marginal)
        rows = []
        for fitted, sample, most in zip(
            surrogates.refit(_pattern(number), data, n_jobs), drawn, best, strict=True
        ):
            order, share = _matched(fitted, sample, compared)
            rows.append(_estimated_values(fitted, order, scenario.marginal))
            accuracies.append((share, most))
        keys: dict[str, Any] = {"truth": batch.truth, "scenario": number, "n": batch.n}
        table = pd.concat([names] * len(rows), ignore_index=True)
        estimates.append(
            table.assign(
                **keys,
                sample=np.repeat(samples, len(right)),
                estimate=np.concatenate(rows),
                true=np.tile(right, len(rows)),
            )
        )
    shares = np.array(accuracies)
    table = pd.DataFrame(
        {
            "truth": batch.truth,
            "scenario": np.repeat(batch.scenarios, batch.n_samples),
            "n": batch.n,
            "sample": np.tile(samples, len(batch.scenarios)),
            "accuracy": shares[:, 0],
            "best": shares[:, 1],
        }
    )
    columns = ["truth", "scenario", "n", "sample", "part", "parameter", "estimate", "true"]
    return Simulation(pd.concat(estimates, ignore_index=True)[columns], table)


def _pattern(number: int) -> POHMM:
    settings: dict[str, Any] = {"emission": "normal", "tol": TOLERANCE, "max_iter": MAX_ITERATIONS}
    if number == 4:
        return HMM(**settings)
    return POHMM(smoothing="frequency" if number == 2 else None, **settings)


def _draw(pohmm: POHMM, source: POHMM, batch: SampleBatch) -> list[DrawnSample]:
    """Draw the samples: one event sequence for all samples of a length, and a random stream for each."""
    kind = 0 if batch.source == "pohmm" else 1
    # Also for the HMM's data: the event chain of θ₀ is uniform, so its types are random.
    X, events, _ = pohmm.sample(batch.n, random_state=np.random.default_rng([batch.seed, batch.n, kind]))
    shared = Sequences.from_arrays(X, events)
    samples = []
    for k in range(batch.first_sample, batch.first_sample + batch.n_samples):
        generator = np.random.default_rng([batch.seed, batch.n, kind, 1 + k])
        X, _, states = source.sample(events=events, random_state=generator)
        samples.append(DrawnSample(shared.with_values(X), states))
    return samples


def _matched(fitted: POHMM, sample: DrawnSample, n: int) -> tuple[Integers, float]:
    """Match fitted states with true ones, type by type; also the share of true states found.

    The order (m, M) holds at [ω, i] the fitted state that matches the true state i of type ω.
    """
    part = sample.first(n)
    posterior, codes = fitted.predict_proba(part), _codes(fitted, part)
    order = surrogates.match_states(codes, len(fitted.event_types_), sample.states[:n], posterior)
    number: Integers = np.argsort(order, axis=1)[codes, posterior.argmax(axis=1)]
    return order, float(np.mean(number == sample.states[:n]))


def _codes(fitted: POHMM, sequences: Sequences) -> Integers:
    """The index of each event's type in the model; an HMM has a single type."""
    if len(fitted.event_types_) == 1:
        return np.zeros(sequences.n_events, dtype=np.int64)
    place = {label: number for number, label in enumerate(fitted.event_types_)}
    return np.array([place[label] for label in sequences.event_types])[sequences.codes]


def _true_values(scenario: Scenario, source: POHMM) -> Floats:
    """The true values of the estimates: the parameters that generated the data, or their marginals."""
    if scenario.marginal:
        marginal = source.marginal_
        return _values(marginal.emission[0].loc, marginal.emission[0].scale, marginal.transmat)
    return _values(source.emission_[0].loc, source.emission_[0].scale, source.transmat_)


def _estimated_values(fitted: POHMM, order: Integers, marginal: bool) -> Floats:
    """The fitted parameters, or their marginals, with states numbered as in the true model."""
    types = np.arange(len(order))[:, None]
    loc, scale = fitted.emission_[0].loc[types, order], fitted.emission_[0].scale[types, order]
    before, after = types[:, :, None, None], types[None, :, :, None]
    transmat = fitted.transmat_[before, after, order[:, None, :, None], order[None, :, None, :]]
    if not marginal:
        return _values(loc, scale, transmat)
    # States were renumbered type by type, which changes the marginals, so they are recomputed (Eqs. 26–31).
    share = fitted.event_prob_[:, None]
    mean = np.sum(share * loc, axis=0)
    deviation = np.sqrt(np.sum(share * (scale**2 + (loc - mean) ** 2), axis=0))
    steps = np.einsum("pw,pwij->ij", fitted.event_transmat_, transmat)
    return _values(mean, deviation, steps / steps.sum(axis=1, keepdims=True))


def _values(loc: Floats, scale: Floats, transmat: Floats) -> Floats:
    """Emission parameters, then probabilities of moving to the passive state, in the order of `_names`."""
    return np.concatenate([loc.ravel(), scale.ravel(), transmat[..., 1].ravel()])


def _names(marginal: bool) -> pd.DataFrame:
    types = [""] if marginal else [f"|{label}" for label in "abc"]
    pairs = [""] if marginal else [f"|{before}{after}" for before in "abc" for after in "abc"]
    emission = [f"{name}[{j}{w}]" for name in ("mean", "deviation") for w in types for j in (0, 1)]
    steps = [f"step[{i},1{pair}]" for pair in pairs for i in (0, 1)]
    parts = ["emission"] * len(emission) + ["transition"] * len(steps)
    return pd.DataFrame({"part": parts, "parameter": emission + steps})
