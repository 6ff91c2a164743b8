"""The parameters of a POHMM, θ = {π, a, b}, with the event chain and the marginals.

Transition matrices are kept for observed pairs of event types only: with m types there are m² pairs, of
which a text of N events shows at most N − 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from keydyn.arrays import Floats, Integers, plain
from keydyn.model.data import vocabulary
from keydyn.model.data.smoothing_rules import Smoothing, as_number
from keydyn.model.data.vocabulary import Types
from keydyn.model.estimation.scoring import Finished
from keydyn.model.estimation.smoothing import blend_transitions, transition_weights
from keydyn.model.estimation.tables import Tables
from keydyn.model.families import COMPILED
from keydyn.model.families.family import Emission


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
class Marginal:
    """The parameters with event types integrated out.

    Attributes
    ----------
    startprob : (M,) π[j]
    transmat : (M, M) a[i, j]
    transmat_from : (m, M, M) a[i, j | ψ], the later type integrated out
    transmat_to : (m, M, M) a[i, j | ω], the earlier type integrated out
    emission : list of `Emission` with parameters of shape (M,)
    """

    startprob: Floats
    transmat: Floats
    transmat_from: Floats
    transmat_to: Floats
    emission: list[Emission]


@dataclass(frozen=True)
class Parameters:
    """θ, and what is needed to score event types and pairs that it does not list.

    Attributes
    ----------
    event_types : (m,)
    startprob : (m, M) π[j | ω]
    pairs : (P, 2) observed (ψ, ω), sorted
    transmat : (P, M, M) a[i, j | ψ, ω]
    emission : one `Emission` a feature, parameters (m, M)
    chain : the event chain
    marginal : the marginals; None where the chain has no unique stationary distribution
    smoothing : how rows of unseen pairs are smoothed
    """

    event_types: Types
    startprob: Floats
    pairs: Integers
    transmat: Floats
    emission: list[Emission]
    chain: EventChain
    marginal: Marginal | None
    smoothing: Smoothing

    @property
    def n_types(self) -> int:
        return len(self.event_types)

    @property
    def n_states(self) -> int:
        return int(self.startprob.shape[1])

    @cached_property
    def pair_codes(self) -> Integers:
        """ψ·m + ω of each observed pair, ascending."""
        return self.pairs[:, 0] * self.n_types + self.pairs[:, 1]

    def find_pairs(self, codes: Integers) -> Integers:
        """The row of each pair code, −1 where the pair is not listed."""
        if len(self.pairs) == 0:
            return np.full(len(codes), -1)
        rows = np.minimum(np.searchsorted(self.pair_codes, codes), len(self.pairs) - 1)
        return np.where(self.pair_codes[rows] == codes, rows, -1)

    def known_marginal(self) -> Marginal:
        """The marginals, or a `ValueError` that says why there are none."""
        if self.marginal is None:
            raise ValueError(
                "the event chain has no unique stationary distribution, so there are no marginals: "
                "missing and unseen event types cannot be scored"
            )
        return self.marginal

    def unseen_pairs(self, before: Integers, after: Integers) -> Floats:
        """a[i, j | ψ, ω] of pairs that were never observed: a uniform estimate, smoothed."""
        uniform = np.full((len(before), self.n_states, self.n_states), 1.0 / self.n_states)
        if self.smoothing.transitions is None or self.marginal is None:
            return uniform
        weights = transition_weights(
            as_number(self.smoothing.transitions),
            self.smoothing.published,
            before,
            after,
            np.zeros(len(before)),
            self.chain.leaving,
            self.chain.entering,
        )
        blend_transitions(
            *weights, before, after, self.marginal.transmat_from, self.marginal.transmat_to, uniform
        )
        return uniform

    def transmat_of(self, before: Integers, after: Integers) -> Floats:
        """a[i, j | ψ, ω] for any pairs; len(event_types) stands for an unknown type."""
        m = self.n_types
        table = np.empty((len(before), self.n_states, self.n_states))
        known = (before < m) & (after < m)
        rows = self.find_pairs(before[known] * m + after[known])
        found = np.flatnonzero(known)[rows >= 0]
        unseen = np.flatnonzero(known)[rows < 0]
        table[found] = self.transmat[rows[rows >= 0]]
        table[unseen] = self.unseen_pairs(before[unseen], after[unseen])
        if not known.all():
            marginal = self.known_marginal()
            only_before, only_after = (before < m) & (after == m), (before == m) & (after < m)
            table[only_before] = marginal.transmat_from[before[only_before]]
            table[only_after] = marginal.transmat_to[after[only_after]]
            table[(before == m) & (after == m)] = marginal.transmat
        return table

    @cached_property
    def start_table(self) -> Floats:
        """π[j | ω] with one more row, the marginal, for unknown types."""
        if self.marginal is None:
            return self.startprob
        return np.concatenate([self.startprob, self.marginal.startprob[None]])

    @cached_property
    def emission_tables(self) -> list[Emission]:
        """The emission of each feature with one more row, the marginal, for unknown types."""
        if self.marginal is None:
            return self.emission
        return [
            emission.replace(
                {k: np.concatenate([v, marginal.params[k][None]]) for k, v in emission.params.items()}
            )
            for emission, marginal in zip(self.emission, self.marginal.emission, strict=True)
        ]

    @cached_property
    def type_places(self) -> dict[Any, int]:
        """The code of each event type."""
        return vocabulary.places_of(self.event_types)

    def tables(self) -> Tables:
        """Copies of the parameters for compiled functions, of location-scale families only."""
        marginal = self.known_marginal()
        m, n_states = self.startprob.shape
        n_features = len(self.emission)
        loc, scale = np.empty((2, n_features, m + 1, n_states))
        for k, (own, everywhere) in enumerate(zip(self.emission, marginal.emission, strict=True)):
            for table, name in ((loc[k], "loc"), (scale[k], "scale")):
                table[:m], table[m] = own.params[name], everywhere.params[name]
        return Tables(
            np.array(self.start_table, order="C"),
            np.array(self.transmat, order="C"),
            loc,
            scale,
            np.array(marginal.transmat_from, order="C"),
            np.array(marginal.transmat_to, order="C"),
            np.array(marginal.transmat, order="C"),
            np.zeros((n_features, m, n_states), dtype=np.bool_),
        )

    @cached_property
    def finished(self) -> Finished | None:
        """What compiled scoring needs; None where there are no marginals or a family is not compiled."""
        if self.marginal is None or not all(type(e.distribution) in COMPILED for e in self.emission):
            return None
        return Finished(
            self.tables(),
            self.pair_codes,
            plain(self.chain.leaving),
            plain(self.chain.entering),
            np.array([e.params["df"][0, 0] if "df" in e.params else np.inf for e in self.emission]),
            np.array([1.0 if e.distribution.on_log_scale else 0.0 for e in self.emission]),
            as_number(self.smoothing.transitions),
            self.smoothing.published,
        )

    def dense_transmat(self) -> Floats:
        """(m, m, M, M), unseen pairs included."""
        m, n_states = self.n_types, self.n_states
        before, after = np.divmod(np.arange(m * m), m)
        return self.transmat_of(before, after).reshape(m, m, n_states, n_states)

    def dense_event_transmat(self) -> Floats:
        """(m, m) a[ψ, ω]; the row of a type without successor is uniform."""
        _, pair_prob = self.chain.known()
        table = np.zeros((self.n_types, self.n_types))
        table[self.pairs[:, 0], self.pairs[:, 1]] = pair_prob
        table[self.chain.dead_ends] = 1.0 / self.n_types
        return table

    def reordered(self, order: Integers) -> Parameters:
        """The same model with its states renumbered."""
        marginal = self.marginal
        if marginal is not None:
            marginal = Marginal(
                marginal.startprob[order],
                _reorder_square(marginal.transmat, order),
                _reorder_square(marginal.transmat_from, order),
                _reorder_square(marginal.transmat_to, order),
                [_reorder_emission(emission, order) for emission in marginal.emission],
            )
        return replace(
            self,
            startprob=np.ascontiguousarray(self.startprob[:, order]),
            transmat=_reorder_square(self.transmat, order),
            emission=[_reorder_emission(emission, order) for emission in self.emission],
            marginal=marginal,
        )

    def extended(self, event_types: Types, pairs: Integers) -> Parameters:
        """Room for more event types and pairs: `event_types` begins with the known ones.

        A new type starts from the marginals, as an unknown type is scored; a new pair from what an unseen
        pair is scored with. `pairs` are added to those that are there.
        """
        m, new = self.n_types, len(event_types) - self.n_types
        all_pairs = np.unique(np.concatenate([self.pairs, pairs]), axis=0)
        if new == 0 and len(all_pairs) == len(self.pairs):
            return self
        # A type of which nothing was learnt yet, as after an `accumulate` that brought it, counts as unknown.
        learnt = (self.chain.prob != 0) | (self.chain.leaving > 0) | (self.chain.entering > 0)
        place = np.full(len(event_types), m)
        place[:m][learnt] = np.flatnonzero(learnt)
        transmat = self.transmat_of(place[all_pairs[:, 0]], place[all_pairs[:, 1]])
        transmat[_rows_of(self.pairs, all_pairs, len(event_types))] = self.transmat
        chain, marginal = self.chain, self.marginal
        if new:
            known = self.known_marginal()
            everywhere = np.repeat(known.transmat[None], new, axis=0)
            marginal = replace(
                known,
                transmat_from=np.concatenate([known.transmat_from, everywhere]),
                transmat_to=np.concatenate([known.transmat_to, everywhere]),
            )
            zero = np.zeros(new)
            chain = EventChain(
                np.concatenate([chain.prob, zero]),
                np.concatenate([chain.leaving, zero]),
                np.concatenate([chain.entering, zero]),
                None if chain.startprob is None else np.concatenate([chain.startprob, zero]),
                chain.pair_prob,
            )
        if chain.pair_prob is not None:
            pair_prob = np.zeros(len(all_pairs))
            pair_prob[_rows_of(self.pairs, all_pairs, len(event_types))] = chain.pair_prob
            chain = replace(chain, pair_prob=pair_prob)
        rows = np.minimum(np.arange(len(event_types)), m)
        return Parameters(
            event_types,
            self.start_table[rows],
            all_pairs,
            transmat,
            [e.replace(self.emission_tables[k].at(rows)) for k, e in enumerate(self.emission)],
            chain,
            marginal,
            self.smoothing,
        )


def _rows_of(pairs: Integers, among: Integers, n_types: int) -> Integers:
    return np.searchsorted(among[:, 0] * n_types + among[:, 1], pairs[:, 0] * n_types + pairs[:, 1])


def _reorder_square(matrices: Floats, order: Integers) -> Floats:
    return np.ascontiguousarray(matrices[..., order[:, None], order])


def _reorder_emission(emission: Emission, order: Integers) -> Emission:
    return emission.replace({k: np.ascontiguousarray(v[..., order]) for k, v in emission.params.items()})
