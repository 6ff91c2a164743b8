"""Queries about the event types themselves: joint likelihood, key recovery, the next event, and samples.

Missing event types are summed over exactly, in the lattice of all m·M pairs of type and state. That lattice
is an HMM with m·M states and one transition table, so the same kernels apply. Time grows with N·(mM)², memory
with N·mM. A model of text can replace the event chain; the lattice then has all pairs of a text context and
a state.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from keydyn.arrays import Floats, Given, Integers
from keydyn.model.ask import next_emission, ngrams
from keydyn.model.ask.next_emission import NextEmission
from keydyn.model.ask.ngrams import NGrams
from keydyn.model.data import vocabulary
from keydyn.model.data.fit_settings import generator_of
from keydyn.model.data.sequences import to_draw
from keydyn.model.data.vocabulary import Types
from keydyn.model.engine import walks
from keydyn.model.engine.layout import Walk
from keydyn.model.engine.scores_and_states import Lattice
from keydyn.model.fit.estimator import Estimator
from keydyn.model.theta import lattice as lattices
from keydyn.model.theta.lattice import EventIndex, per_sequence, walked
from keydyn.model.theta.marginals import joint_transmat, normalised
from keydyn.model.theta.parameters import Parameters


def draw_events(parameters: Parameters, offsets: Integers, generator: np.random.Generator) -> Integers:
    """Draw codes of event types from the event chain."""
    startprob, pair_prob = parameters.chain.known()
    m = parameters.n_types
    start = generator.choice(m, size=len(offsets) - 1, p=startprob / startprob.sum())
    # A pair can be listed without having occurred; a type that has only such pairs is a dead end.
    pairs, pair_prob = parameters.pairs[pair_prob > 0], pair_prob[pair_prob > 0]
    first = np.searchsorted(pairs[:, 0], np.arange(m + 1))
    # Cumulative probabilities within each row of the chain.
    running = np.cumsum(pair_prob)
    before_row = np.concatenate([[0.0], running])[first[:-1]]
    bounds = running - before_row[pairs[:, 0]]
    codes, later = np.empty(int(offsets[-1]), dtype=np.int64), np.ascontiguousarray(pairs[:, 1])
    start, first, uniforms = start.astype(np.int64), first.astype(np.int64), generator.random(len(codes))
    walks.walk_events(offsets, walks.SparseChain(start, first, later, bounds), uniforms, codes)
    return codes


def draw_states(parameters: Parameters, index: EventIndex, generator: np.random.Generator) -> Integers:
    """Draw hidden states along given event types."""
    states = np.empty(len(index.codes), dtype=np.int64)
    walks.walk_states(walked(parameters, index), generator.random(len(states)), states)
    return states


def draw_emissions(
    parameters: Parameters, codes: Integers, states: Integers, generator: np.random.Generator
) -> Floats:
    """Draw emissions given event types and states, ignoring any density floor used in scoring."""
    tables = parameters.emission_tables
    return np.stack([e.distribution.draw(generator, e.at((codes, states))) for e in tables], axis=1)


# Most entries, (mM)², of a joint transition table: half a gigabyte.
LARGEST_JOINT_TABLE = 2**26


def interpolated_chain(parameters: Parameters) -> Floats:
    """a[ψ, ω] mixed with a share 1/(1 + f(ψ,·)) of Π[ω], so that unseen pairs are not impossible."""
    share = (1.0 / (1.0 + parameters.chain.leaving))[:, None]
    observed = parameters.dense_event_transmat()
    if not share.any():
        return observed
    return (1.0 - share) * observed + share * parameters.chain.prob


def log_event_probability(parameters: Parameters, codes: Integers, offsets: Integers) -> Floats:
    """ln P(Ω) of sequences without missing types, one per sequence, without a table of all pairs."""
    chain, (before, after) = parameters.chain, (codes[:-1], codes[1:])
    startprob, _ = chain.known()
    observed = parameters.event_prob_of(before, after)
    share = 1.0 / (1.0 + chain.leaving[before])
    steps = observed if not share.any() else (1.0 - share) * observed + share * chain.prob[after]
    factors = np.append(1.0, steps)
    factors[offsets[:-1]] = startprob[codes[offsets[:-1]]]
    with np.errstate(divide="ignore"):
        return per_sequence(np.log(factors), offsets)


def joint_densities(parameters: Parameters, X: Floats, codes: Integers, floor: float | None) -> Floats:
    """ln f(x_n; b[j | ω]) of every type, (N, m, M); a known type (code < m) rules out all others."""
    m = parameters.n_types
    log_density = np.zeros((len(X), m, parameters.n_states))
    for k, emission in enumerate(parameters.emission):
        present = ~np.isnan(X[:, k])
        density = emission.distribution.log_density(X[present, k][:, None, None], emission.params)
        log_density[present] += density if floor is None else np.maximum(density, math.log(floor))
    given = codes < m
    log_density[given[:, None] & (np.arange(m) != codes[:, None])] = -np.inf
    return log_density


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
    log_density = joint_densities(parameters, X, codes, floor)
    startprob = (event_startprob[:, None] * parameters.startprob).reshape(1, -1)
    transmat = joint_transmat(parameters.dense_transmat(), interpolated_chain(parameters))
    zeros = np.zeros(len(X), dtype=np.int64)
    walk = Walk.along(offsets, zeros[: len(offsets) - 1], startprob, zeros, transmat[None])
    return Lattice.of(log_density.reshape(len(X), m * n_states), walk)


class Generative(Estimator):
    """Mixin with the queries that need the event chain."""

    def score_joint(
        self, X: Any, *, events: Any = None, lengths: Given = None, text: NGrams | None = None
    ) -> Floats:
        """ln P(x, Ω), one per sequence; missing event types are summed over, unseen ones refused.

        `text`, an n-gram model, replaces the event chain.

        Examples
        --------
        >>> model.score_joint(tau, events=keys) < model.score(tau, events=keys)
        array([ True])
        """
        state = self._known()
        sequences, codes = self._encoded(state, X, events, lengths, reject=True)
        parameters, offsets = state.parameters, sequences.offsets
        if (codes < parameters.n_types).all():
            index = EventIndex.of(codes, offsets, parameters.n_types)
            lattice = lattices.build(parameters, sequences.X, index, self._floor)
            given = lattices.per_sequence(lattices.filtered(lattice)[1], offsets)
            if text is not None:
                return given + lattices.per_sequence(text.log_probabilities(sequences), offsets)
            return given + log_event_probability(parameters, codes, offsets)
        if text is not None:
            log_density = joint_densities(parameters, sequences.X, codes, self._floor)
            return ngrams.smoothed(parameters, text, log_density, offsets)[1]
        lattice = joint_lattice(parameters, sequences.X, codes, offsets, self._floor)
        return lattices.per_sequence(lattices.filtered(lattice)[1], offsets)

    def predict_events(
        self, X: Any, *, events: Any = None, lengths: Given = None, text: NGrams | None = None
    ) -> tuple[Types, Floats]:
        """Recover event types from emissions: the most probable at each event, and all probabilities (N, m).

        `events` may give the types that are known. `text`, an n-gram model, replaces the event chain.

        Examples
        --------
        >>> guessed, probability = model.predict_events(tau)
        >>> guessed.shape, set(guessed) <= set(keys)
        ((460,), True)
        >>> from keydyn import NGrams
        >>> text = NGrams.learn(keys, order=4)  # of any text with the same keys
        >>> model.predict_events(tau, text=text)[1].shape == probability.shape
        True
        """
        state = self._known()
        sequences, codes = self._encoded(state, X, events, lengths, reject=True)
        theta, offsets = state.parameters, sequences.offsets
        if text is None:
            lattice = joint_lattice(theta, sequences.X, codes, offsets, self._floor)
            posterior = lattices.posterior(lattice)
            lattices.check_posterior(posterior, lattice)
            by_type = posterior.states.reshape(len(posterior.states), -1, theta.n_states)
            probabilities: Floats = by_type.sum(axis=2)
        else:
            log_density = joint_densities(theta, sequences.X, codes, self._floor)
            posterior_types, scores = ngrams.smoothed(theta, text, log_density, offsets)
            ngrams.check_possible(scores)
            probabilities = normalised(posterior_types)
        return theta.event_types[np.argmax(probabilities, axis=1)], probabilities

    def decode_events(
        self, X: Any, *, events: Any = None, lengths: Given = None
    ) -> tuple[Floats, Types, Integers]:
        """The most probable types and states jointly: ln P(x, Ω, z) of each sequence, types, and states.

        Examples
        --------
        >>> _, guessed, states = model.decode_events(tau)
        >>> guessed.shape, states.shape
        ((460,), (460,))
        """
        state = self._known()
        sequences, codes = self._encoded(state, X, events, lengths, reject=True)
        theta = state.parameters
        lattice = joint_lattice(theta, sequences.X, codes, sequences.offsets, self._floor)
        log_probability, path = lattices.most_probable(lattice)
        types, states = np.divmod(path, theta.n_states)
        return log_probability, theta.event_types[types], states

    def predict_next(
        self, X: Any, *, events: Any = None, lengths: Given = None, next_event: Any = None
    ) -> NextEmission:
        """The distribution of the emission that follows each sequence.

        `next_event` is the type of the next event, one for all or one per sequence. Without it the event
        chain gives the probabilities of types, and the result is a mixture over them.

        Examples
        --------
        >>> after = model.predict_next(tau, events=keys, next_event=" ")
        >>> low, high = after.quantile(0.1), after.quantile(0.9)
        >>> bool((low < high).all()), after.mean().shape
        (True, (1, 1))
        """
        state, floor = self._known(), self._floor
        theta = state.parameters
        sequences, codes = self._encoded(state, X, events, lengths)
        index = EventIndex.of(codes, sequences.offsets, theta.n_types)
        lattice = lattices.build(theta, sequences.X, index, floor)
        probabilities, increments = lattices.filtered(lattice)
        lattices.check_possible(increments, lattice.offsets)
        ends = sequences.offsets[1:] - 1
        now, last = probabilities[ends], codes[ends]
        if next_event is None:
            return next_emission.after_any(theta, now, last, floor)
        following = self._next_codes(theta, next_event, len(sequences))
        return next_emission.after(theta, now, last, following, floor)

    def sample(
        self, n_events: int = 100, events: Any = None, random_state: Any = None, *, lengths: Given = None
    ) -> tuple[Floats, Types, Integers]:
        """Draw values `X` (N, K), event types (N,) and hidden states (N,) from the model.

        Types come from the event chain unless `events` gives them. With `lengths` several sequences are
        drawn, otherwise one of `n_events` events.

        Examples
        --------
        >>> x, typed, states = model.sample(50, random_state=0)
        >>> x.shape, typed.shape, states.shape
        ((50, 1), (50,), (50,))
        """
        state = self._known()
        theta = state.parameters
        generator = generator_of(random_state)
        drawn = to_draw(state.n_features, n_events, events, lengths)
        if events is None:
            codes = draw_events(theta, drawn.offsets, generator)
            labels = theta.event_types[codes]
        else:
            codes = self._encoded(state, drawn, None, None)[1]
            single = vocabulary.is_single(theta.event_types)
            labels = theta.event_types[codes] if single else drawn.labels()
        index = EventIndex.of(codes, drawn.offsets, theta.n_types)
        states = draw_states(theta, index, generator)
        return draw_emissions(theta, codes, states, generator), labels, states

    def _next_codes(self, theta: Parameters, next_event: Any, n_sequences: int) -> Integers:
        if np.ndim(next_event) == 0:
            labels = np.full(n_sequences, next_event, dtype=object)
        else:
            labels = vocabulary.as_labels(next_event)
        if len(labels) != n_sequences:
            raise ValueError(
                f"next_event must be one type, or one per sequence: {n_sequences}, not {len(labels)}"
            )
        codes, types = vocabulary.encode(labels)
        places, unseen = vocabulary.find(codes, types, theta.event_types)
        if self.handle_unknown == "error" and unseen.any():
            raise ValueError(f"next_event {labels[int(np.argmax(unseen))]!r} was not seen in fitting")
        return places
