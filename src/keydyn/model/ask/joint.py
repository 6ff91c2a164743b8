"""Event types and emissions together: ln P(x, Ω), and keys from timings.

Where an event type is not given it is summed over exactly, in the lattice of all m·M pairs of type and
state. That lattice is an HMM with m·M states and one transition table, so the same kernels serve. Time
grows with N·(mM)², memory with N·mM.
"""

from __future__ import annotations

import math

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.model.engine.scores_and_states import Lattice
from keydyn.model.theta.lattice import per_sequence
from keydyn.model.theta.marginals import joint_transmat
from keydyn.model.theta.parameters import Parameters

# (mM)² entries of eight bytes: half a gigabyte.
LARGEST_JOINT_TABLE = 2**26


def interpolated_chain(parameters: Parameters) -> Floats:
    """a[ψ, ω] with a share 1/(1 + f(ψ,·)) of Π[ω], so that an unseen pair is improbable, not impossible."""
    share = (1.0 / (1.0 + parameters.chain.leaving))[:, None]
    observed = parameters.dense_event_transmat()
    if not share.any():
        return observed
    return (1.0 - share) * observed + share * parameters.chain.prob


def log_event_probability(parameters: Parameters, codes: Integers, offsets: Integers) -> Floats:
    """ln P(Ω) of sequences whose types are all known, one per sequence, over observed pairs only."""
    chain, (before, after) = parameters.chain, (codes[:-1], codes[1:])
    startprob, _ = chain.known()
    observed = parameters.event_prob_of(before, after)
    share = 1.0 / (1.0 + chain.leaving[before])
    steps = observed if not share.any() else (1.0 - share) * observed + share * chain.prob[after]
    factors = np.append(1.0, steps)
    factors[offsets[:-1]] = startprob[codes[offsets[:-1]]]
    with np.errstate(divide="ignore"):
        return per_sequence(np.log(factors), offsets)


def joint_lattice(
    parameters: Parameters, X: Floats, codes: Integers, offsets: Integers, floor: float | None
) -> Lattice:
    """The lattice over (ω, j), state number ω·M + j; a known type (code < m) rules out all others."""
    m, n_states = parameters.n_types, parameters.n_states
    if (m * n_states) ** 2 > LARGEST_JOINT_TABLE:
        raise ValueError(
            f"{m} event types × {n_states} states are too many: the joint lattice would need "
            f"{(m * n_states) ** 2 * 8 / 2**30:.1f} GiB"
        )
    event_startprob, _ = parameters.chain.known()
    log_density = np.zeros((len(X), m, n_states))
    for k, emission in enumerate(parameters.emission):
        present = ~np.isnan(X[:, k])
        density = emission.distribution.log_density(X[present, k][:, None, None], emission.params)
        log_density[present] += density if floor is None else np.maximum(density, math.log(floor))
    given = codes < m
    excluded = given[:, None] & (np.arange(m) != codes[:, None])
    log_density[excluded] = -np.inf
    startprob = (event_startprob[:, None] * parameters.startprob).reshape(1, -1)
    transmat = joint_transmat(parameters.dense_transmat(), interpolated_chain(parameters))
    return Lattice.of(
        log_density.reshape(len(X), m * n_states),
        offsets,
        np.zeros(len(offsets) - 1, dtype=np.int64),
        startprob,
        np.zeros(len(X), dtype=np.int64),
        transmat[None],
    )
