"""Smoothing (Eqs. 32–36, corrected): estimates that rest on few events lean on the marginals."""

from __future__ import annotations

import math

from keydyn.arrays import Floats, Integers, inner, merged
from keydyn.model.engine.densities import CUSTOM, END, FIRST, GAMMA, KIND, STUDENT
from keydyn.model.engine.layout import (
    KEEP_EMISSION,
    KEEP_START,
    PAIR,
    ROW,
    STEP,
    WEIGHT_AFTER,
    WEIGHT_BEFORE,
    Chain,
    Rules,
    Tables,
    Variant,
    fits,
    lanes_of,
    states_of,
)


@merged
def smooth(variant: Variant, span: Integers, rules: Rules, chain: Chain, tables: Tables) -> None:
    """All parameters towards the same, unsmoothed marginals, in one pass. A single type is its marginal."""
    m, start, n_lanes = span[ROW + 1] - 1, tables.start, lanes_of(variant)
    if m - span[ROW] == 1:
        return
    for row in range(span[ROW], m if rules.smooth_start and not rules.fixed_start else span[ROW]):
        # π̃[j | ω] (Eq. 33)
        keep = chain.of_types[row, KEEP_START]
        for j in range(states_of(variant, start.shape[1])):
            for lane in range(n_lanes):
                start[row, j, lane] = keep * start[row, j, lane] + (1.0 - keep) * start[m, j, lane]
    if rules.smooth_transitions and not rules.fixed_transitions:
        smooth_transitions(variant, span, chain, tables.transitions)
    if rules.smooth_emission and not rules.fixed_emission:
        smooth_emission(variant, span, rules, chain, tables.emission)


@inner
def smooth_transitions(variant: Variant, span: Integers, chain: Chain, transitions: Floats) -> None:
    """ã[i, j | ψ, ω] (Eqs. 35–36, corrected) of the pairs; what is left below zero becomes zero."""
    n_states, n_lanes = states_of(variant, transitions.shape[1]), lanes_of(variant)
    m = span[ROW + 1] - span[ROW] - 1
    if not fits(n_states, n_lanes, transitions.shape[1:]):
        return
    first = span[STEP] + span[PAIR + 1] - span[PAIR] - span[ROW]
    for pair in range(span[PAIR], span[PAIR + 1]):
        step = span[STEP] + pair - span[PAIR]
        earlier, later = first + chain.pairs[pair, 0], first + m + chain.pairs[pair, 1]
        of_earlier, of_later = chain.of_pairs[pair, WEIGHT_BEFORE], chain.of_pairs[pair, WEIGHT_AFTER]
        own = 1.0 - of_earlier - of_later
        for i in range(n_states):
            for lane in range(n_lanes):
                total = 0.0
                for j in range(n_states):
                    mixed = (
                        own * transitions[step, i, j, lane] + of_earlier * transitions[earlier, i, j, lane]
                    )
                    mixed = max(mixed + of_later * transitions[later, i, j, lane], 0.0)
                    transitions[step, i, j, lane] = mixed
                    total += mixed
                scale = 1.0 / total
                for j in range(n_states):
                    share = transitions[step, i, j, lane] * scale
                    transitions[step, i, j, lane] = share if total > 0.0 else 1.0 / n_states


@inner
def smooth_emission(variant: Variant, span: Integers, rules: Rules, chain: Chain, emission: Floats) -> None:
    """b̃[j | ω] (Eq. 34): parameters interpolated, variances for the t families, moments for the gamma."""
    features, of_types = rules.features, chain.of_types
    n_states, n_lanes = states_of(variant, emission.shape[2]), lanes_of(variant)
    m = span[ROW + 1] - 1
    if not fits(n_states, n_lanes, emission.shape[2:]):
        return
    for row in range(span[ROW], m):
        share, rest = of_types[row, KEEP_EMISSION], 1.0 - of_types[row, KEEP_EMISSION]
        for k in range(len(features)):
            kind, at = features[k, KIND], features[k, FIRST]
            if kind == CUSTOM:
                continue
            for j in range(n_states):
                for lane in range(n_lanes):
                    if kind == GAMMA:
                        shape, scale = emission[row, at, j, lane], emission[row, at + 1, j, lane]
                        of_all, scale_of_all = emission[m, at, j, lane], emission[m, at + 1, j, lane]
                        mean = share * shape * scale + rest * of_all * scale_of_all
                        variance = share * shape * scale * scale + rest * of_all * scale_of_all * scale_of_all
                        emission[row, at, j, lane] = mean * mean / variance
                        emission[row, at + 1, j, lane] = variance / mean
                        continue
                    for p in range(at, features[k, END]):
                        own, marginal = emission[row, p, j, lane], emission[m, p, j, lane]
                        mixed = share * own + rest * marginal
                        if kind == STUDENT and p > at:
                            # The scale by its square; the degrees of freedom are the same everywhere.
                            square = share * (own * own) + rest * (marginal * marginal)
                            mixed = math.sqrt(square) if p == at + 1 else own
                        emission[row, p, j, lane] = mixed
