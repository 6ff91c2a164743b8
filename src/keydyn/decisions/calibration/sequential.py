"""Evidence that arrives key by key, and tests that may stop at any key.

Sequences are concatenated, with offsets, as everywhere in the project. Each function carries a state with one
row per sequence and updates it in place, so that a stream calls the same function with the keys that have
just arrived; the result does not depend on how the keys are split into calls. A key whose terms are NaN, as
at the start of a stream, contributes nothing.

- `faded`: log-likelihoods with forgetting. After a change of person the old keys lose their weight.
- `increments`: the contribution of each key to the log-likelihood ratio of the claimed person to the cohort.
  If the claim is true, the probability that their sum ever falls below −ln t is at most 1/t, whatever the
  cohort (Ville's inequality); therefore a test may look after every key. This remains true if the evidence of
  a single key against the claim is limited, as it has to be for templates that are only nearly right.
- `suspicion`: a sum of increments against the claim that restarts at 0 when it has fallen to −`accept`.
  With `accept` 0 it is the cumulative sum of E. S. Page, Continuous inspection schemes, *Biometrika* 41
  (1954): on average at least e^h keys pass before it falsely reaches h. With the bounds of `wald_bounds` it
  is the sequential probability ratio test of A. Wald, Sequential tests of statistical hypotheses, *Annals of
  Mathematical Statistics* 16 (1945), begun again after each acceptance, so that it goes on watching.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, compiled, plain

# The forgetting factor of the cohort's weights, and the least log-likelihood ratio that a key can have.
KEEP, LEAST = 0.9, -2.0
# Nats credited to the claim with every key. A template is only nearly right: without them, the sum of a
# person who types a little unlike it would rise for ever, and levels that spare such people would notice no
# one.
ALLOWED = 0.1


class Bounds(NamedTuple):
    """Wald's bounds of suspicion: a session is locked at `reject`; at −`accept` the test begins again."""

    reject: float
    accept: float


def wald_bounds(false_accept: float, false_reject: float) -> Bounds:
    """ln((1 − α)/β) and ln((1 − β)/α) for error rates α, of strangers, and β, of the claimed person."""
    for name, rate in (("false_accept", false_accept), ("false_reject", false_reject)):
        if not 0.0 < rate < 0.5:
            raise ValueError(f"{name} must lie between 0 and 0.5, not {rate}")
    return Bounds(
        math.log((1.0 - false_accept) / false_reject), math.log((1.0 - false_reject) / false_accept)
    )


def faded(
    terms: Floats, offsets: Integers, keep: float, state: Floats | None = None
) -> tuple[Floats, Floats]:
    """(N, U) sums of terms with forgetting, and (N,) the effective numbers of keys in them.

    Each key counts `keep` times as much as the next. `state` is (n, U + 1): the sums so far, and the keys.
    """
    terms, offsets = _checked(terms, offsets, keep)
    state = _state(state, (len(offsets) - 1, terms.shape[1] + 1))
    sums, keys = np.empty(terms.shape), np.empty(len(terms))
    fade(terms, offsets, keep, state, sums, keys)
    return sums, keys


def increments(
    terms: Floats, offsets: Integers, keep: float = KEEP, least: float = LEAST, state: Floats | None = None
) -> Floats:
    """(N,) log-likelihood ratio of each key: the claimed person (first column) to the cohort (the others).

    The cohort predicts a key as a mixture, with each template weighted by how well it predicted earlier keys.
    With `keep` below 1 the weights forget, so that the mixture follows the present typist. No ratio is below
    `least`. `state` is (n, C): the logarithms of the weights.
    """
    terms, offsets = _checked(terms, offsets, keep)
    if terms.shape[1] < 2:
        raise ValueError("there is no cohort: terms need two columns or more")
    if not least < 0.0:
        raise ValueError(f"least must be below 0, not {least}")
    state = _state(state, (len(offsets) - 1, terms.shape[1] - 1))
    ratio = np.empty(len(terms))
    predict(terms, offsets, keep, state, ratio)
    return np.maximum(ratio, least)


def suspicion(
    increments: Floats,
    offsets: Integers,
    accept: float = 0.0,
    state: Floats | None = None,
    allowed: float = 0.0,
) -> Floats:
    """(N,) evidence against the claim since the last restart; `state` is (n,), the evidence so far.

    `allowed`, nats, is added to the evidence for the claim at every key (see `ALLOWED`).
    """
    steps, offsets = _checked(increments[:, None] + allowed, offsets, 1.0)
    if not accept >= 0.0:
        raise ValueError(f"accept must be 0 or more, not {accept}")
    state = _state(state, (len(offsets) - 1,))
    level = np.empty(len(steps))
    accumulate(steps, offsets, accept, state, level)
    return level


def _checked(terms: Floats, offsets: Integers, keep: float) -> tuple[Floats, Integers]:
    if terms.ndim != 2 or terms.shape[1] == 0:
        raise ValueError(f"terms must be (N, U), not of shape {terms.shape}")
    if offsets.ndim != 1 or len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(terms):
        raise ValueError("offsets must begin with 0 and end with the number of keys")
    if (np.diff(offsets) < 0).any():
        raise ValueError("offsets must not fall")
    if np.isinf(terms).any():
        raise ValueError("a term is infinite")
    if not 0.0 < keep <= 1.0:
        raise ValueError(f"keep must be above 0 and at most 1, not {keep}")
    return plain(terms.astype(np.float64, copy=False)), plain(offsets.astype(np.int64, copy=False))


def _state(state: Floats | None, shape: tuple[int, ...]) -> Floats:
    if state is None:
        return np.zeros(shape)
    good = state.shape == shape and state.dtype == np.float64 and state.flags.c_contiguous
    if not good or not np.isfinite(state).all():
        raise ValueError(f"the state must be an array of finite floats of shape {shape}")
    return state


@compiled
def fade(terms: Floats, offsets: Integers, keep: float, state: Floats, sums: Floats, keys: Floats) -> None:
    U = terms.shape[1]
    for q in range(len(offsets) - 1):
        for n in range(offsets[q], offsets[q + 1]):
            if not np.isnan(terms[n, 0]):
                for u in range(U):
                    state[q, u] = keep * state[q, u] + terms[n, u]
                state[q, U] = keep * state[q, U] + 1.0
            for u in range(U):
                sums[n, u] = state[q, u]
            keys[n] = state[q, U]


@compiled
def predict(terms: Floats, offsets: Integers, keep: float, state: Floats, ratio: Floats) -> None:
    C = terms.shape[1] - 1
    for q in range(len(offsets) - 1):
        for n in range(offsets[q], offsets[q + 1]):
            ratio[n] = np.nan
            if np.isnan(terms[n, 0]):
                continue
            # ln Σ w p − ln Σ w, each sum with its largest logarithm taken out.
            before, after = -np.inf, -np.inf
            for u in range(C):
                before, after = max(before, state[q, u]), max(after, state[q, u] + terms[n, 1 + u])
            weights, weighted = 0.0, 0.0
            for u in range(C):
                weights += math.exp(state[q, u] - before)
                weighted += math.exp(state[q, u] + terms[n, 1 + u] - after)
            ratio[n] = terms[n, 0] - (after + math.log(weighted) - before - math.log(weights))
            # Only differences matter; subtracting what all have in common keeps the numbers small.
            for u in range(C):
                state[q, u] = keep * (state[q, u] + terms[n, 1 + u] - after)


@compiled
def accumulate(steps: Floats, offsets: Integers, accept: float, state: Floats, level: Floats) -> None:
    for q in range(len(offsets) - 1):
        for n in range(offsets[q], offsets[q + 1]):
            if not np.isnan(steps[n, 0]):
                state[q] -= steps[n, 0]
                if state[q] <= -accept:
                    state[q] = 0.0
            level[n] = state[q]
