"""Recursions over unknown event types whose probabilities depend on several types before them.

The sums run over pairs of a context of an n-gram model and a hidden state. A context and the next type
determine the next context, so the table of steps is sparse: each step visits C·m of C² pairs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers, compiled
from keydyn.model.engine.log_domain import safe_log


class TextWalk(NamedTuple):
    """The sequences, contexts and model parameters that the recursions use.

    Attributes
    ----------
    offsets : (S + 1,) bounds of the sequences
    prob, following : (C, m) for each context and next type, its probability and the context that results
    last : (C,) the last type of each context. Sequences begin in the first context
    start : (m, M); transitions : (m, m, M, M)
    """

    offsets: Integers
    prob: Floats
    following: Integers
    last: Integers
    start: Floats
    transitions: Floats


@compiled
def smooth_types(
    walk: TextWalk, density: Floats, log_scale: Floats, posterior: Floats, scores: Floats
) -> None:
    """Write P(ω_n | x) to `posterior` (N, m) and ln P(x) to `scores` (S,), by forward and backward recursion.

    `density` (N, m, M) is relative to the largest of each event, whose logarithm is in `log_scale` (N,).
    An impossible sequence has a score of −∞ and a posterior of zeros.
    """
    offsets, prob, following, last, start, transitions = walk
    n_contexts, m = prob.shape
    n_states = start.shape[1]
    longest = 0
    for s in range(len(offsets) - 1):
        longest = max(longest, offsets[s + 1] - offsets[s])
    alpha, totals = np.empty((longest, n_contexts, n_states)), np.empty(longest)
    beta, later = np.empty((n_contexts, n_states)), np.empty((n_contexts, n_states))
    predicted = np.empty(n_states)
    posterior[:] = 0.0
    for s in range(len(offsets) - 1):
        first, n_events = offsets[s], offsets[s + 1] - offsets[s]
        scores[s] = 0.0
        for n in range(n_events):
            alpha[n] = 0.0
            for c in range(n_contexts if n > 0 else 1):
                if n > 0 and not alpha[n - 1, c].any():
                    continue
                for w in range(m):
                    to = following[c, w]
                    for j in range(n_states):
                        predicted[j] = start[w, j] if n == 0 else 0.0
                        for i in range(n_states if n > 0 else 0):
                            predicted[j] += alpha[n - 1, c, i] * transitions[last[c], w, i, j]
                        alpha[n, to, j] += prob[c, w] * predicted[j] * density[first + n, w, j]
            totals[n] = alpha[n].sum()
            if totals[n] > 0.0:
                alpha[n] /= totals[n]
            scores[s] += safe_log(totals[n]) + log_scale[first + n]
        if not scores[s] > -math.inf:
            continue
        beta[:] = 1.0
        for n in range(n_events - 1, -1, -1):
            for c in range(n_contexts):
                for j in range(n_states):
                    posterior[first + n, last[c]] += alpha[n, c, j] * beta[c, j]
            if n == 0:
                break
            for c in range(n_contexts):
                later[c] = 0.0
                if not alpha[n - 1, c].any():
                    continue
                for w in range(m):
                    to = following[c, w]
                    for j in range(n_states):
                        ahead = prob[c, w] * density[first + n, w, j] * beta[to, j] / totals[n]
                        for i in range(n_states):
                            later[c, i] += transitions[last[c], w, i, j] * ahead
            beta, later = later, beta
