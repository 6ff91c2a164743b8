"""The parameters of a POHMM, θ = {π, a, b}, with the event chain and the marginals.

θ is one set of arrays that the estimator, the files, the engine and the filters all use. A table has a row
for each event type and then one for the marginal, which is used for unknown types. Transition matrices are
kept for observed pairs of event types only: of the m² pairs of m types, a text of N events has at most N − 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.model.data import vocabulary
from keydyn.model.data.fit_settings import Smoothing
from keydyn.model.data.vocabulary import Types
from keydyn.model.engine.densities import FIRST, cells_of
from keydyn.model.engine.pairs import Pairs, between
from keydyn.model.families.compiled import features_of, variant_for, width_of
from keydyn.model.families.family import Emission, Family, Params
from keydyn.short_repr import short_repr

# Number of pairs of types up to about which a table of all pairs is built.
SMALL_TABLE = 65_536


@dataclass(frozen=True)
class EventChain:
    """The Markov chain of event types, over observed pairs.

    Attributes
    ----------
    prob : (m,) Π[ω], the share of each type among all events (Eq. 30)
    leaving, entering : (m,) f(ψ,·) and f(·,ω), the counts of transitions from and to each type; inf if not
        from data
    startprob : (m,) π[ω]; None if the chain was left out of the file
    pair_prob : (P,) a[ψ, ω] of the observed pairs; None if the chain was left out of the file
    """

    prob: Floats
    leaving: Floats
    entering: Floats
    startprob: Floats | None
    pair_prob: Floats | None

    @property
    def dead_ends(self) -> Integers:
        """The types without an observed successor, after which all types are equally likely."""
        return np.flatnonzero(self.leaving == 0)

    def known(self) -> tuple[Floats, Floats]:
        """Start and pair probabilities; raises a `ValueError` that says why if there are none."""
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

    __repr__ = short_repr


class ByType(NamedTuple):
    """The parameters that depend on event types.

    Attributes
    ----------
    startprob : (m, M) π[j | ω]; emission : one `Emission` per feature, parameters (m, M)
    pairs : (P, 2) the observed (ψ, ω), sorted; transmat : (P, M, M) their a[i, j | ψ, ω]
    """

    startprob: Floats
    pairs: Integers
    transmat: Floats
    emission: Sequence[Emission]


@dataclass(frozen=True, eq=False)
class Parameters:
    """θ, with all that is needed to score event types and pairs it does not list; never changed in place.

    Attributes
    ----------
    event_types : (m,); families : one per feature
    pairs : (P, 2) observed (ψ, ω), sorted
    start : (m + 1, M) π[j | ω], then π[j]
    transitions : (P + 2m + 1, M, M) a[i, j | ψ, ω] of the pairs, then a[i, j | ψ] of each earlier type,
        a[i, j | ω] of each later one, and a[i, j]
    emissions : (m + 1, F, M) the parameters of b[j | ω] of all features one after the other, then of b[j]
    chain : the event chain
    smoothing : the rules by which transitions of unseen pairs are smoothed
    has_marginal : False if the chain has no unique stationary distribution; the marginals are then NaN
    """

    event_types: Types
    families: tuple[Family, ...]
    pairs: Integers
    start: Floats
    transitions: Floats
    emissions: Floats
    chain: EventChain
    smoothing: Smoothing
    has_marginal: bool = True

    @classmethod
    def of(
        cls,
        event_types: Types,
        by_type: ByType,
        marginal: Marginal | None,
        chain: EventChain,
        smoothing: Smoothing,
    ) -> Parameters:
        """Build θ from its parts."""
        startprob, pairs, transmat, emission = by_type
        m, n_states = startprob.shape
        families = tuple(e.distribution for e in emission)
        start = np.full((m + 1, n_states), np.nan)
        transitions = np.full((len(pairs) + 2 * m + 1, n_states, n_states), np.nan)
        emissions = np.full((m + 1, sum(len(f.parameters) for f in families), n_states), np.nan)
        start[:m], transitions[: len(pairs)] = startprob, transmat
        column = 0
        for k, e in enumerate(emission):
            for name in e.distribution.parameters:
                emissions[:m, column] = e.params[name]
                if marginal is not None:
                    emissions[m, column] = marginal.emission[k].params[name]
                column += 1
        if marginal is not None:
            start[m], transitions[-1] = marginal.startprob, marginal.transmat
            transitions[len(pairs) : -1] = np.concatenate([marginal.transmat_from, marginal.transmat_to])
        known = marginal is not None
        return cls(event_types, families, pairs, start, transitions, emissions, chain, smoothing, known)

    @property
    def n_types(self) -> int:
        return len(self.event_types)

    @property
    def n_states(self) -> int:
        return int(self.start.shape[1])

    @property
    def startprob(self) -> Floats:
        """π[j | ω], (m, M)."""
        return self.start[:-1]

    @property
    def transmat(self) -> Floats:
        """a[i, j | ψ, ω] of the observed pairs, (P, M, M)."""
        return self.transitions[: len(self.pairs)]

    @cached_property
    def emission(self) -> list[Emission]:
        """One `Emission` per feature, with parameters (m, M)."""
        return self._emissions(slice(0, -1))

    @cached_property
    def emission_tables(self) -> list[Emission]:
        """The emission of each feature, with the marginal as an additional row for unknown types."""
        return self._emissions(slice(None)) if self.has_marginal else self.emission

    @property
    def start_table(self) -> Floats:
        """π[j | ω], with the marginal as an additional row for unknown types."""
        return self.start if self.has_marginal else self.startprob

    @cached_property
    def marginal(self) -> Marginal | None:
        """The marginals; None if the chain has no unique stationary distribution."""
        if not self.has_marginal:
            return None
        m, n_pairs = self.n_types, len(self.pairs)
        return Marginal(
            self.start[m],
            self.transitions[-1],
            self.transitions[n_pairs : n_pairs + m],
            self.transitions[n_pairs + m : -1],
            self._emissions(m),
        )

    def marginal_params(self, k: int) -> Params:
        """The parameters of b[j] of one feature."""
        first = features_of(self.families)[k, FIRST]
        return {name: self.emissions[-1, first + p] for p, name in enumerate(self.families[k].parameters)}

    def _emissions(self, rows: Any) -> list[Emission]:
        table, made, column = self.emissions[rows], [], 0
        for family in self.families:
            names = family.parameters
            made.append(Emission(family, {name: table[..., column + p, :] for p, name in enumerate(names)}))
            column += len(names)
        return made

    @cached_property
    def cells(self) -> Floats:
        """The coefficients of the emissions for the compiled densities, (m + 1, K, W, M, 1)."""
        shape = (len(self.start), len(self.families), width_of(self.families), self.n_states, 1)
        cells = np.zeros(shape)
        emissions = np.ascontiguousarray(self.emissions)[..., None]
        variant = variant_for(self.n_states, self.families)
        cells_of(variant, features_of(self.families), emissions, cells)
        return cells

    @cached_property
    def pair_index(self) -> Pairs:
        """The index of the transitions of pairs, with the weights of marginals in those of unseen pairs."""
        m, chain, weights = self.n_types, self.chain, np.zeros((self.n_types + 1, 3))
        first = np.searchsorted(self.pairs[:, 0], np.arange(m + 1))
        later = np.append(self.pairs[:, 1], np.full(2 * m + 1, -1))
        weights[:-1, 0], weights[:-1, 1] = self.smoothing.transition_weights(
            np.zeros(m), chain.leaving, chain.entering, limited=False
        )
        weights[:, 2] = np.inf if self.smoothing.published else 1.0
        return Pairs(np.concatenate([first, later]), weights)

    def known_marginal(self) -> Marginal:
        """The marginals; raises a `ValueError` that says why if there are none."""
        if self.marginal is None:
            raise ValueError(
                "the event chain has no unique stationary distribution, so there are no marginals: "
                "missing and unseen event types cannot be scored"
            )
        return self.marginal

    def transmat_of(self, before: Integers, after: Integers) -> Floats:
        """a[i, j | ψ, ω] of any pairs of codes, (U, M, M); m stands for an unknown type."""
        if not self.has_marginal and len(before) and max(before.max(), after.max()) == self.n_types:
            self.known_marginal()
        return between(self.pair_index, self.transitions, before, after)[1]

    def event_prob_of(self, before: Integers, after: Integers) -> Floats:
        """a[ψ, ω] of any pairs of known types; zero for an unseen pair, equal shares at a dead end."""
        _, pair_prob = self.chain.known()
        rows, _ = between(self.pair_index, self.transitions, before, after)
        prob: Floats = np.append(pair_prob, 0.0)[rows]
        prob[np.isin(before, self.chain.dead_ends)] = 1.0 / self.n_types
        return prob

    @cached_property
    def all_steps(self) -> Floats:
        """a[i, j | ψ, ω] of all (m + 1)² pairs of codes, in order, (…, M, M, 1)."""
        codes = np.divmod(np.arange((self.n_types + 1) ** 2), self.n_types + 1)
        return between(self.pair_index, self.transitions, *codes)[1][..., None]

    @cached_property
    def type_places(self) -> dict[Any, int]:
        """The code of each event type."""
        return vocabulary.places_of(self.event_types)

    def dense_transmat(self) -> Floats:
        """a[i, j | ψ, ω] of all pairs, unseen ones included, (m, m, M, M)."""
        m, n_states = self.n_types, self.n_states
        before, after = np.divmod(np.arange(m * m), m)
        return self.transmat_of(before, after).reshape(m, m, n_states, n_states)

    def dense_event_transmat(self) -> Floats:
        """a[ψ, ω] of all pairs, (m, m); the row of a type without successor is uniform."""
        _, pair_prob = self.chain.known()
        table = np.zeros((self.n_types, self.n_types))
        table[self.pairs[:, 0], self.pairs[:, 1]] = pair_prob
        table[self.chain.dead_ends] = 1.0 / self.n_types
        return table

    def reordered(self, order: Integers) -> Parameters:
        """The model with its states renumbered."""
        return replace(
            self,
            start=np.ascontiguousarray(self.start[:, order]),
            transitions=np.ascontiguousarray(self.transitions[:, order[:, None], order]),
            emissions=np.ascontiguousarray(self.emissions[..., order]),
        )

    def extended(self, event_types: Types, pairs: Integers) -> Parameters:
        """θ with more event types and pairs; `event_types` must begin with the known ones.

        A new type starts with the marginals, which score unknown types, and a new pair with the transitions
        that score unseen pairs. `pairs` are added to those already listed.
        """
        m, new = self.n_types, len(event_types) - self.n_types
        all_pairs = np.unique(np.concatenate([self.pairs, pairs]), axis=0)
        if new == 0 and len(all_pairs) == len(self.pairs):
            return self
        # A type about which nothing was learnt yet, such as one that `accumulate` added, counts as unknown.
        learnt = (self.chain.prob != 0) | (self.chain.leaving > 0) | (self.chain.entering > 0)
        place = np.full(len(event_types), m)
        place[:m][learnt] = np.flatnonzero(learnt)
        transmat = self.transmat_of(place[all_pairs[:, 0]], place[all_pairs[:, 1]])
        keys, own_keys = (pairs[:, 0] * len(event_types) + pairs[:, 1] for pairs in (all_pairs, self.pairs))
        listed = np.searchsorted(keys, own_keys)
        transmat[listed] = self.transmat
        chain = self.chain
        if new:
            self.known_marginal()
            prob, leaving, entering = (
                np.append(values, np.zeros(new)) for values in (chain.prob, chain.leaving, chain.entering)
            )
            startprob = None if chain.startprob is None else np.append(chain.startprob, np.zeros(new))
            chain = EventChain(prob, leaving, entering, startprob, chain.pair_prob)
        if chain.pair_prob is not None:
            pair_prob = np.zeros(len(all_pairs))
            pair_prob[listed] = chain.pair_prob
            chain = replace(chain, pair_prob=pair_prob)
        # Rows of new types are copies of the marginal, which remains the last row.
        types = np.append(np.minimum(np.arange(len(event_types)), m), m)
        after_pairs = np.concatenate([types[:-1], m + types])
        after_pairs[: len(event_types)][types[:-1] == m] = 2 * m
        return replace(
            self,
            event_types=event_types,
            pairs=all_pairs,
            start=self.start[types],
            transitions=np.concatenate([transmat, self.transitions[len(self.pairs) + after_pairs]]),
            emissions=self.emissions[types],
            chain=chain,
        )
