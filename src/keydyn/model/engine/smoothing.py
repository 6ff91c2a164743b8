"""Smoothing (Eqs. 32–36, corrected): estimates that rest on few events lean on the marginals."""

from __future__ import annotations

import math

from keydyn.arrays import Floats, compiled, inner
from keydyn.model.engine.densities import CUSTOM, GAMMA, STUDENT, Features
from keydyn.model.engine.expectation import Tables
from keydyn.model.engine.maximisation import Chain, Rules
from keydyn.model.engine.variants import Variant, fits, lanes_of, states_of


@compiled
def smooth(variant: Variant, chain: Chain, rules: Rules, features: Features, tables: Tables) -> None:
    """All parameters towards the same, unsmoothed marginals, in one pass."""
    if len(chain.prob) == 1:
        return
    if rules.smooth_start and not rules.fixed_start:
        smooth_start(variant, chain.keep_start, tables.start)
    if rules.smooth_transitions and not rules.fixed_transitions:
        smooth_transitions(variant, chain, tables.transitions)
    if rules.smooth_emission and not rules.fixed_emission:
        smooth_emission(variant, chain.keep_emission, features, tables.emission)


@inner
def smooth_start(variant: Variant, keep: Floats, start: Floats) -> None:
    """π̃[j | ω] (Eq. 33); `keep` is the share that each type keeps of its own."""
    n_states, m = states_of(variant, start.shape[1]), len(keep)
    if not fits(variant, n_states, start.shape[1:]):
        return
    for row in range(m):
        for j in range(n_states):
            for lane in range(lanes_of(variant)):
                marginal = start[m, j, lane]
                start[row, j, lane] = keep[row] * start[row, j, lane] + (1.0 - keep[row]) * marginal


@inner
def smooth_transitions(variant: Variant, chain: Chain, transitions: Floats) -> None:
    """ã[i, j | ψ, ω] (Eqs. 35–36, corrected) of the pairs; what is left below zero becomes zero."""
    n_states, n_pairs, m = states_of(variant, transitions.shape[1]), len(chain.before), len(chain.prob)
    if not (fits(variant, n_states, transitions.shape[1:])):
        return
    for pair in range(n_pairs):
        earlier, later = n_pairs + chain.before[pair], n_pairs + m + chain.after[pair]
        of_earlier, of_later = chain.weight_before[pair], chain.weight_after[pair]
        own = 1.0 - of_earlier - of_later
        for i in range(n_states):
            for lane in range(lanes_of(variant)):
                total = 0.0
                for j in range(n_states):
                    mixed = (
                        own * transitions[pair, i, j, lane] + of_earlier * transitions[earlier, i, j, lane]
                    )
                    mixed = max(mixed + of_later * transitions[later, i, j, lane], 0.0)
                    transitions[pair, i, j, lane] = mixed
                    total += mixed
                scale = 1.0 / total
                for j in range(n_states):
                    share = transitions[pair, i, j, lane] * scale
                    transitions[pair, i, j, lane] = share if total > 0.0 else 1.0 / n_states


@inner
def smooth_emission(variant: Variant, keep: Floats, features: Features, emission: Floats) -> None:
    """b̃[j | ω] (Eq. 34): parameters interpolated, variances for the t families, moments for the gamma."""
    n_states, m = states_of(variant, emission.shape[2]), len(keep)
    if not fits(variant, n_states, emission.shape[2:]):
        return
    for row in range(m):
        share, rest = keep[row], 1.0 - keep[row]
        for k in range(len(features.kind)):
            kind, at = features.kind[k], features.first[k]
            if kind == CUSTOM:
                continue
            for j in range(n_states):
                for lane in range(lanes_of(variant)):
                    if kind == GAMMA:
                        shape, scale = emission[row, at, j, lane], emission[row, at + 1, j, lane]
                        of_all, scale_of_all = emission[m, at, j, lane], emission[m, at + 1, j, lane]
                        mean = share * shape * scale + rest * of_all * scale_of_all
                        variance = share * shape * scale * scale + rest * of_all * scale_of_all * scale_of_all
                        emission[row, at, j, lane] = mean * mean / variance
                        emission[row, at + 1, j, lane] = variance / mean
                    else:
                        for p in range(at, features.first[k + 1]):
                            own, marginal = emission[row, p, j, lane], emission[m, p, j, lane]
                            if kind == STUDENT and p == at + 1:
                                square = share * (own * own) + rest * (marginal * marginal)
                                emission[row, p, j, lane] = math.sqrt(square)
                            elif not (kind == STUDENT and p == at + 2):
                                emission[row, p, j, lane] = share * own + rest * marginal
