"""The chain of hidden states, active and pause, that all people share.

The states emit residuals, from which tempo and slopes are removed; one state emits all features of an event.
Transitions depend on the classes of the previous key and of this one. A chain of one state is a plain
Student t.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, compiled, inner
from keydyn.keystrokes.timing import key_group
from keydyn.model.data.vocabulary import Types

CLASSES = ("letter", "space", "punctuation", "backspace", "other")
# Start values of the EM, for active and pause: location and scale, and degrees of freedom, which stay fixed.
INTERVAL_START = ((-0.10, 0.82), (1.34, 1.78))
HOLD_START = ((0.0, 0.95), (0.13, 1.28))
DEGREES = (6, 4)
PAUSE_SHARE, PAUSE_STAYS = 0.14, 0.42
TRANSITION_LEANS, EMISSION_LEANS = 20.0, 100.0
ITERATIONS = 15
# The least scale of a state; without it, a value that never varies would become a state of its own.
LEAST_SCALE = 0.05


class ChainTables(NamedTuple):
    """A chain in the form that compiled functions take; `constant` is as in `Chain`."""

    start: Floats
    transitions: Floats
    location: Floats
    scale: Floats
    degrees: Integers
    constant: Floats


@dataclass(frozen=True, eq=False)
class Chain:
    """A chain of S hidden states that emit F features."""

    start: Floats  # (S,)
    transitions: Floats  # (K, K, S, S) by class of the previous key and of this one
    # (S, F)
    location: Floats
    scale: Floats
    degrees: Integers  # (S,) even numbers

    @classmethod
    def single(cls, n_features: int, degrees: int) -> Chain:
        """A chain of one state, a Student t, for models without hidden states."""
        K, emission = len(CLASSES), (np.zeros((1, n_features)), np.ones((1, n_features)))
        return cls(np.ones(1), np.ones((K, K, 1, 1)), *emission, np.array([degrees], dtype=np.int64))

    @classmethod
    def initial(cls, n_features: int, degrees: int | None = None, n_states: int = 2) -> Chain:
        """The chain that the EM starts from and shrinks towards; `degrees`, if given, holds for all states.

        The first state is active and all others are pauses, of which the last is the longest; the locations
        of the states between, and the logarithms of their scales, are evenly spaced.
        """
        starts = np.array([INTERVAL_START, *[HOLD_START] * (n_features - 1)])
        active, longest = starts[:, 0], starts[:, 1]
        place = np.linspace(0.0, 1.0, n_states)[:, None]
        location = active[:, 0] + place * (longest[:, 0] - active[:, 0])
        scale = active[:, 1] ** (1.0 - place) * longest[:, 1] ** place
        pauses = n_states - 1
        share = np.array([1 - PAUSE_SHARE, *[PAUSE_SHARE / pauses] * pauses])
        leaves = PAUSE_SHARE * (1 - PAUSE_STAYS) / (1 - PAUSE_SHARE)
        table = np.empty((n_states, n_states))
        table[0] = [1 - leaves, *[leaves / pauses] * pauses]
        table[1:] = [1 - PAUSE_STAYS, *[PAUSE_STAYS / pauses] * pauses]
        transitions = np.tile(table, (len(CLASSES), len(CLASSES), 1, 1))
        active_degrees, pause_degrees = DEGREES if degrees is None else (degrees, degrees)
        each = np.array([active_degrees, *[pause_degrees] * pauses], dtype=np.int64)
        return cls(share, transitions, location, scale, each)

    @property
    def n_states(self) -> int:
        return len(self.start)

    @cached_property
    def constant(self) -> Floats:
        """(S,) the height of each standard Student t at 0."""
        nu = self.degrees
        gammas = [math.exp(math.lgamma((n + 1) / 2) - math.lgamma(n / 2)) for n in nu.tolist()]
        height: Floats = np.array(gammas) / np.sqrt(nu * np.pi)
        return height

    @property
    def tables(self) -> ChainTables:
        """The chain in the form that compiled functions take."""
        return ChainTables(
            self.start, self.transitions, self.location, self.scale, self.degrees, self.constant
        )


def classes_of(vocabulary: Types) -> Integers:
    """The class of each key of the vocabulary, then of the unknown key; numbers are of the last class."""
    found = [_class_of(name) if isinstance(name, str) else len(CLASSES) - 1 for name in vocabulary.tolist()]
    return np.array([*found, len(CLASSES) - 1], dtype=np.int64)


@lru_cache(maxsize=4096)
def _class_of(name: str) -> int:
    if name.lower() in ("backspace", "back_space", "delete"):
        return CLASSES.index("backspace")
    group = key_group(name)
    group = "letter" if group in ("left_letter", "right_letter") else group
    return CLASSES.index(group) if group in CLASSES else CLASSES.index("other")


def fit_chain(parts: Sequence[tuple[Floats, Integers, Integers]], initial: Chain) -> Chain:
    """Fit a chain by EM from the initial one, and shrink it towards that.

    Each part holds the residuals e, the classes of keys and the offsets of some samples.
    """
    e, classes = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    lengths = np.concatenate([np.diff(part[2]) for part in parts])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    F = e.shape[1]
    K, S = len(CLASSES), initial.n_states
    chain = initial
    posterior, counts = np.empty((len(e), S)), np.empty((K, K, S, S))
    there = np.isfinite(e)
    for _ in range(ITERATIONS):
        counts[:] = 0.0
        _expectation(e, classes, offsets, chain.tables, posterior, counts)
        location, scale = np.empty((S, F)), np.empty((S, F))
        for s in range(S):
            for f in range(F):
                x, gamma = e[there[:, f], f], posterior[there[:, f], s]
                nu = chain.degrees[s]
                z = (x - chain.location[s, f]) / chain.scale[s, f]
                w = gamma * (nu + 1) / (nu + z * z)
                leans = EMISSION_LEANS * initial.location[s, f]
                location[s, f] = (w @ x + leans) / (w.sum() + EMISSION_LEANS)
                squares = w @ (x - location[s, f]) ** 2 + EMISSION_LEANS * initial.scale[s, f] ** 2
                scale[s, f] = max(np.sqrt(squares / (gamma.sum() + EMISSION_LEANS)), LEAST_SCALE)
        # Each pair of classes is shrunk towards all pairs together, and these towards the start values.
        total = counts.sum(axis=(0, 1)) + TRANSITION_LEANS * initial.transitions[0, 0]
        shared = total / total.sum(axis=1, keepdims=True)
        table = counts + TRANSITION_LEANS * shared
        first = posterior[offsets[:-1]].sum(axis=0) + TRANSITION_LEANS * initial.start
        chain = Chain(
            first / first.sum(), table / table.sum(axis=3, keepdims=True), location, scale, chain.degrees
        )
    return chain


def posteriors(chain: Chain, e: Floats, classes: Integers, offsets: Integers) -> Floats:
    """(N, S) probability of each state at each event, given all residuals of its sample."""
    K, S = len(CLASSES), chain.n_states
    posterior = np.empty((len(e), S))
    _expectation(e, classes, offsets, chain.tables, posterior, np.zeros((K, K, S, S)))
    return posterior


@inner
def bell(squared: float, variance: float, degrees: int) -> float:
    """(1 + z²/(ν v)) to the power −(ν + 1)/2, divided by √v, for even ν, with a single division."""
    wider = variance + squared / degrees
    above, below = 1.0, math.sqrt(wider)
    for _ in range(degrees // 2):
        above *= variance
        below *= wider
    return above / below


@compiled
def _expectation(
    e: Floats, classes: Integers, offsets: Integers, chain: ChainTables, posterior: Floats, counts: Floats
) -> None:
    """Fill in the posterior of each state at each event, and add to the counts of expected transitions."""
    start, transitions, location, scale, degrees, constant = chain
    S, F = location.shape
    density = np.empty((len(e), S))
    total = np.empty(len(e))
    beta, earlier = np.empty(S), np.empty(S)
    for q in range(len(offsets) - 1):
        for n in range(offsets[q], offsets[q + 1]):
            total[n] = 0.0
            for s in range(S):
                density[n, s] = 1.0
                for f in range(F):
                    if not np.isnan(e[n, f]):
                        gap = e[n, f] - location[s, f]
                        density[n, s] *= constant[s] * bell(gap * gap, scale[s, f] ** 2, degrees[s])
                prior = start[s]
                if n > offsets[q]:
                    prior = 0.0
                    for i in range(S):
                        prior += posterior[n - 1, i] * transitions[classes[n - 1], classes[n], i, s]
                posterior[n, s] = max(prior * density[n, s], 1e-300)
                total[n] += posterior[n, s]
            for s in range(S):
                posterior[n, s] /= total[n]
        beta[:] = 1.0
        for n in range(offsets[q + 1] - 1, offsets[q], -1):
            before, now = classes[n - 1], classes[n]
            for i in range(S):
                earlier[i] = 0.0
                for s in range(S):
                    step = transitions[before, now, i, s] * density[n, s] * beta[s] / total[n]
                    counts[before, now, i, s] += posterior[n - 1, i] * step
                    earlier[i] += step
            for s in range(S):
                posterior[n, s] *= beta[s]
                beta[s] = earlier[s]
        for s in range(S):
            posterior[offsets[q], s] *= beta[s]
