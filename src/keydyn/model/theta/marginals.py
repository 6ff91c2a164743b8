"""Marginal distributions (Section 3.6): the parameters with event types integrated out."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components

from keydyn.arrays import Floats, Integers
from keydyn.model.data.smoothing_rules import normalised
from keydyn.model.estimation.indexing import chain_of_counts
from keydyn.model.estimation.marginals import any_after_dead_ends, normalise_marginals, sum_by_type
from keydyn.model.families.family import Emission
from keydyn.model.fit.statistics import Counts
from keydyn.model.theta.parameters import EventChain, Marginal


def event_chain(counts: Counts) -> EventChain:
    """π[ω], a[ψ, ω] and Π[ω] (Eq. 30) as observed."""
    before, after = np.ascontiguousarray(counts.pairs.T)
    return EventChain(*chain_of_counts(before, after, counts.types, counts.starts, counts.pair))


def printed_marginal(
    startprob: Floats, pairs: Integers, transmat: Floats, emission: list[Emission], chain: EventChain
) -> Marginal:
    """Eqs. 26–31 as printed: every earlier type counts alike, whatever its share of the events.

    `startprob` is the marginal π[j] itself. A type without successor is followed by any type, each step
    uniform.
    """
    m, n_states = len(chain.prob), len(startprob)
    _, pair_prob = chain.known()
    return Marginal(
        startprob,
        *_marginal_transitions(m, pairs, transmat, pair_prob, chain.leaving),
        _marginal_emission(emission, np.repeat(chain.prob[:, None], n_states, axis=1)),
    )


def exact_marginal(
    startprob: Floats, pairs: Integers, joint: Floats, emission: list[Emission], masses: list[Floats]
) -> Marginal:
    """The marginals of the joint process: types weigh as often as they occur, in each state.

    `joint` (P, M, M) is how often, or with what probability, a pair of types occurs together with a pair of
    states; `masses` holds for each feature the same for type and state, (m, M). With counts from an
    expectation step under equal parameters for all types, these are exactly the HMM's updates.
    """
    shares = [np.ascontiguousarray(normalised(mass.T).T) for mass in masses]
    marginal = [_marginal_emission([e], share)[0] for e, share in zip(emission, shares, strict=True)]
    return Marginal(
        startprob, *_marginal_transitions(len(masses[0]), pairs, joint, np.ones(len(joint)), None), marginal
    )


def stationary_distribution(transmat: Floats) -> Floats | None:
    """The distribution that a chain leaves unchanged; None if there is more than one."""
    n = len(transmat)
    n_classes, label = connected_components(transmat > 0, connection="strong")
    leaves = np.zeros(n_classes, dtype=bool)
    source, target = np.nonzero(transmat)
    leaves[label[source[label[source] != label[target]]]] = True
    if np.count_nonzero(~leaves) != 1:
        return None
    closed = np.flatnonzero(label == np.flatnonzero(~leaves)[0])
    distribution = np.zeros(n)
    distribution[closed] = _balanced(transmat[np.ix_(closed, closed)])
    return distribution


def _balanced(rates: Floats) -> Floats:
    """Of an irreducible chain, by Grassmann, Taksar and Heyman: nothing is subtracted, so nothing cancels."""
    n = len(rates)
    for k in range(n - 1, 0, -1):
        rates[:k, k] /= rates[k, :k].sum()
        rates[:k, :k] += np.outer(rates[:k, k], rates[k, :k])
    shares = np.ones(n)
    for k in range(1, n):
        shares[k] = shares[:k] @ rates[:k, k]
    return np.asarray(shares / shares.sum(), dtype=np.float64)


def joint_transmat(transmat: Floats, event_transmat: Floats) -> Floats:
    """P(ω, j | ψ, i) of the m·M chain of types and states, (mM, mM)."""
    m, _, n_states, _ = transmat.shape
    joint = transmat * event_transmat[:, :, None, None]
    return joint.transpose(0, 2, 1, 3).reshape(m * n_states, m * n_states)


def _marginal_emission(emission: list[Emission], weights: Floats) -> list[Emission]:
    return [e.replace(e.distribution.marginal(e.params, weights)) for e in emission]


def _marginal_transitions(
    m: int, pairs: Integers, matrices: Floats, weights: Floats, leaving: Floats | None
) -> tuple[Floats, Floats, Floats]:
    """a[i, j], a[i, j | ψ] and a[i, j | ω] from the pairs' weighted matrices; `leaving` tells dead ends."""
    n_states = matrices.shape[1]
    from_type, to_type = np.empty((m, n_states, n_states)), np.empty((m, n_states, n_states))
    of_all = np.empty((n_states, n_states))
    before, after = np.ascontiguousarray(pairs.T)
    sum_by_type(before, after, matrices, weights, from_type, to_type)
    if leaving is not None:
        any_after_dead_ends(leaving, from_type, to_type)
    normalise_marginals(from_type, to_type, of_all)
    return of_all, from_type, to_type
