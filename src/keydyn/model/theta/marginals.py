"""Marginal distributions (Section 3.6): the parameters with event types integrated out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.sparse.csgraph import connected_components

from keydyn.arrays import Floats, Integers
from keydyn.model.engine.layout import LEAVING, OF_PAIRS, OF_TYPES, PAIR_PROB, Rules, TypeChain, variant_of
from keydyn.model.engine.maximisation import marginals_of_transitions
from keydyn.model.families.family import Emission
from keydyn.model.theta.parameters import EventChain, Marginal

# Rules with which the maximisation step computes nothing but marginals.
AS_PRINTED = Rules(
    np.empty((0, 4), dtype=np.int64),
    -math.inf,
    0.0,
    fixed_start=True,
    fixed_transitions=True,
    fixed_emission=True,
    exact=False,
    first_occurrence=False,
    smooth_start=False,
    smooth_transitions=False,
    smooth_emission=False,
    tol=0.0,
    max_iter=1,
)


def normalised(rows: Floats) -> Floats:
    """Rows (along the last axis) scaled to sum to one; a row of zeros becomes uniform."""
    total = rows.sum(axis=-1, keepdims=True)
    uniform = np.full_like(rows, 1.0 / rows.shape[-1])
    np.divide(rows, total, out=uniform, where=total > 0)
    return uniform


def printed_marginal(
    startprob: Floats, pairs: Integers, transmat: Floats, emission: Sequence[Emission], chain: EventChain
) -> Marginal:
    """The marginals of Eqs. 26–31 as printed: all earlier types count alike, whatever their frequency.

    `startprob` is the marginal π[j] itself. A type without successor counts as followed by any type, with
    uniform transitions.
    """
    _, pair_prob = chain.known()
    shares = np.repeat(chain.prob[:, None], len(startprob), axis=1)
    return Marginal(
        startprob,
        *_marginal_transitions(pairs, transmat, pair_prob, chain.leaving),
        [e.replace(e.distribution.marginal(e.params, shares)) for e in emission],
    )


def exact_marginal(
    startprob: Floats, pairs: Integers, joint: Floats, emission: Sequence[Emission], masses: list[Floats]
) -> Marginal:
    """The marginals of the joint process: in each state, types are weighted by how often they occur.

    `joint` (P, M, M) has the frequency or probability of each pair of types together with each pair of
    states; `masses` has for each feature the same for types and states, (m, M). With counts from an
    expectation step under equal parameters for all types, the marginals are exactly the HMM's updates.
    """
    shares = [np.ascontiguousarray(normalised(mass.T).T) for mass in masses]
    marginal = [
        e.replace(e.distribution.marginal(e.params, share)) for e, share in zip(emission, shares, strict=True)
    ]
    always = np.ones(len(masses[0]))
    return Marginal(startprob, *_marginal_transitions(pairs, joint, np.ones(len(joint)), always), marginal)


def _marginal_transitions(
    pairs: Integers, matrices: Floats, weights: Floats, leaving: Floats
) -> tuple[Floats, Floats, Floats]:
    """a[i, j], a[i, j | ψ] and a[i, j | ω] from weighted matrices of pairs; `leaving` is 0 at dead ends."""
    m, n_states, n_pairs = len(leaving), matrices.shape[1], len(pairs)
    table = np.empty((n_pairs + 2 * m + 1, n_states, n_states, 1))
    table[:n_pairs, :, :, 0] = matrices
    of_pairs, of_types = np.zeros((n_pairs, OF_PAIRS)), np.zeros((m + 1, OF_TYPES))
    of_pairs[:, PAIR_PROB], of_types[:m, LEAVING] = weights, leaving
    chain = TypeChain(np.ascontiguousarray(pairs), of_pairs, of_types)
    chain.check(m + 1)
    span = np.array([0, 0, 0, m + 1, 0, n_pairs, 0])
    marginals_of_transitions(variant_of(n_states), span, AS_PRINTED, chain, table)
    of_types_alone = table[n_pairs:, :, :, 0]
    return of_types_alone[-1], of_types_alone[:m], of_types_alone[m:-1]


def stationary_distribution(transmat: Floats) -> Floats | None:
    """The stationary distribution of a chain; None if there is more than one."""
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
    """The stationary distribution of an irreducible chain, without cancellation (Grassmann et al.)."""
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
