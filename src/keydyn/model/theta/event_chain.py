"""How often event types, their pairs and first types occur, and the event chain that follows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.model.data.settings import Rule, Settings
from keydyn.model.data.vocabulary import Types
from keydyn.model.engine.layout import (
    KEEP_EMISSION,
    KEEP_START,
    LEAVING,
    OF_PAIRS,
    OF_TYPES,
    PAIR_PROB,
    PROB,
    WEIGHT_AFTER,
    WEIGHT_BEFORE,
    Chain,
)


@dataclass(frozen=True)
class EventChain:
    """The Markov chain of event types, over observed pairs.

    Attributes
    ----------
    prob : (m,) Π[ω], the share of each type among all events (Eq. 30)
    leaving, entering : (m,) f(ψ,·) and f(·,ω), transitions from and to each type; inf if not from data
    startprob : (m,) π[ω]; None if the chain was left out of the file
    pair_prob : (P,) a[ψ, ω] of the observed pairs; None likewise
    """

    prob: Floats
    leaving: Floats
    entering: Floats
    startprob: Floats | None
    pair_prob: Floats | None

    @property
    def dead_ends(self) -> Integers:
        """Types never followed by another: any type may follow, with equal probability."""
        return np.flatnonzero(self.leaving == 0)

    def known(self) -> tuple[Floats, Floats]:
        """Start and pair probabilities, or a `ValueError` that says why there are none."""
        if self.startprob is None or self.pair_prob is None:
            raise ValueError("this model was saved without its event chain (event_chain=False)")
        return self.startprob, self.pair_prob


@dataclass(frozen=True)
class Counts:
    """Weighted frequencies of event types.

    Attributes
    ----------
    event_types : (m,); pairs : (P, 2)
    sequences : number of sequences
    types : (m,) f(ω); starts : (m,) sequences that begin with ω; pair : (P,) f(ψ, ω)
    """

    event_types: Types
    pairs: Integers
    sequences: float
    types: Floats
    starts: Floats
    pair: Floats

    @property
    def leaving(self) -> Floats:
        """f(ψ,·)."""
        return np.bincount(self.pairs[:, 0], self.pair, minlength=len(self.types)).astype(np.float64)

    @property
    def entering(self) -> Floats:
        """f(·,ω)."""
        return np.bincount(self.pairs[:, 1], self.pair, minlength=len(self.types)).astype(np.float64)

    def chain(self) -> EventChain:
        """π[ω], a[ψ, ω] and Π[ω] (Eq. 30) as observed."""
        leaving = self.leaving
        of_pairs = leaving[self.pairs[:, 0]]
        pair_prob = np.divide(self.pair, of_pairs, out=np.zeros(len(self.pair)), where=self.pair > 0.0)
        return EventChain(shares(self.types), leaving, self.entering, shares(self.starts), pair_prob)

    def weighted(self, chain: EventChain, settings: Settings) -> Chain:
        """Their event chain, and what estimates weigh in smoothing, as the engine takes both."""
        smoothing, (before, after) = settings.smoothing, self.pairs.T
        starts = self.starts if settings.start_estimate == "sequence_start" else self.types
        of_pairs, of_types = np.empty((len(self.pairs), OF_PAIRS)), np.empty((len(self.types), OF_TYPES))
        of_pairs[:, PAIR_PROB] = chain.pair_prob
        of_pairs[:, WEIGHT_BEFORE], of_pairs[:, WEIGHT_AFTER] = transition_weights(
            smoothing.transitions,
            smoothing.published,
            self.pair,
            chain.leaving[before],
            chain.entering[after],
        )
        of_types[:, PROB], of_types[:, LEAVING] = chain.prob, chain.leaving
        of_types[:, KEEP_START] = kept_shares(smoothing.start, starts)
        of_types[:, KEEP_EMISSION] = kept_shares(smoothing.emission, self.types)
        return Chain(np.ascontiguousarray(self.pairs), of_pairs, of_types)

    def aligned(self, event_types: Types, pairs: Integers) -> tuple[Counts, Integers]:
        """These counts in a larger vocabulary, and where the old pairs stand in the new list."""
        m = len(event_types)
        rows = np.searchsorted(pairs[:, 0] * m + pairs[:, 1], self.pairs[:, 0] * m + self.pairs[:, 1])
        pair = np.zeros(len(pairs))
        pair[rows] = self.pair
        more = np.zeros(m - len(self.types))
        types, starts = np.concatenate([self.types, more]), np.concatenate([self.starts, more])
        return Counts(event_types, pairs, self.sequences, types, starts, pair), rows

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.event_types,
            self.pairs,
            self.sequences + other.sequences,
            self.types + other.types,
            self.starts + other.starts,
            self.pair + other.pair,
        )


def shares(counts: Floats) -> Floats:
    """Counts divided by their sum; equal shares if there is nothing to divide."""
    total = counts.sum()
    return counts / total if total > 0.0 else np.full(len(counts), 1.0 / len(counts))


def kept_shares(rule: Rule, counts: Floats) -> Floats:
    """w_ω (Eq. 32), the weight of an estimate that rests on this many events."""
    if isinstance(rule, str):
        return 1.0 - 1.0 / (1.0 + counts)
    return np.full(len(counts), 1.0 - (rule or 0.0))


def transition_weights(
    rule: Rule, published: bool, pair_count: Floats, leaving: Floats, entering: Floats
) -> tuple[Floats, Floats]:
    """What a[i, j | ψ] and a[i, j | ω] weigh in ã[i, j | ψ, ω] (Eq. 35, corrected), by pair.

    `leaving` is f(ψ,·) and `entering` f(·,ω) of each pair. Weights above one together are scaled to one, or,
    `published`, left as they are.
    """
    if isinstance(rule, str):
        before, after = 1.0 / (1.0 + pair_count + entering), 1.0 / (1.0 + pair_count + leaving)
    else:
        before = after = np.full(len(pair_count), 0.5 * (rule or 0.0))
    if not published:
        excess = np.maximum(before + after, 1.0)
        before, after = before / excess, after / excess
    return before, after
