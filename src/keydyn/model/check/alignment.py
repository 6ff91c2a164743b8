"""Which state of one model is which of another.

The states of a POHMM can be renumbered for each event type apart, and without smoothing its likelihood stays
the same: nothing but the number says that state 0 of one type and state 0 of another are one. Labels are
therefore matched type by type, so that the states a fitted model finds agree as often as they can with those
that the data were drawn with.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from keydyn.arrays import Floats, Integers
from keydyn.model.engine.sums import weighted_sums
from keydyn.model.theta.marginals import printed_marginal
from keydyn.model.theta.parameters import Parameters


def match_states(codes: Integers, n_types: int, states: Integers, posterior: Floats) -> Integers:
    """The order (m, M) of the fitted states, type by type: order[ω, i] is the one that is state i.

    `states` (N,) are those behind the data, `posterior` (N, M) is γ under the fitted model. Events of
    unknown type (code m) count for none.
    """
    n_states = posterior.shape[1]
    known = codes < n_types
    rows = codes[known] * n_states + states[known]
    agreement = weighted_sums(rows, n_types * n_states, np.ascontiguousarray(posterior[known]))
    return np.stack(
        [
            linear_sum_assignment(table, maximize=True)[1]
            for table in agreement.reshape(n_types, n_states, n_states)
        ]
    )


def relabelled(parameters: Parameters, order: Integers) -> Parameters:
    """A model with its states renumbered type by type, and its marginals (as printed) computed from them."""
    rows = np.arange(parameters.n_types)[:, None]
    before, after = order[parameters.pairs[:, 0]], order[parameters.pairs[:, 1]]
    pair = np.arange(len(parameters.pairs))[:, None, None]
    startprob = parameters.startprob[rows, order]
    transmat = parameters.transmat[pair, before[:, :, None], after[:, None, :]]
    emission = [e.replace(e.at((rows, order))) for e in parameters.emission]
    marginal = None
    if parameters.has_marginal:
        # π[j] is of all sequences' first events; their types' shares are the chain's.
        start_shares, _ = parameters.chain.known()
        marginal = printed_marginal(
            start_shares @ startprob, parameters.pairs, transmat, emission, parameters.chain
        )
    return Parameters.of(
        parameters.event_types,
        startprob,
        parameters.pairs,
        transmat,
        emission,
        parameters.chain,
        marginal,
        parameters.smoothing,
    )
