"""The event types themselves: joint likelihood, key recovery, what comes next, and drawing samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keydyn.arrays import Floats, Integers
from keydyn.model.ask import joint, next_emission, sampling
from keydyn.model.ask.next_emission import NextEmission
from keydyn.model.data import vocabulary
from keydyn.model.data.input_forms import check_lengths
from keydyn.model.data.sequences import Sequences
from keydyn.model.data.settings import generator_of, is_whole
from keydyn.model.data.vocabulary import Types
from keydyn.model.engine.scores_and_states import Lattice
from keydyn.model.fit.estimator import Estimator, State
from keydyn.model.theta import lattice as lattices
from keydyn.model.theta.lattice import EventIndex
from keydyn.model.theta.parameters import Parameters


class Generative(Estimator):
    """Questions that need the event chain."""

    def score_joint(self, X: Any, *, events: Any = None, lengths: ArrayLike | None = None) -> Floats:
        """ln P(x, Ω), one per sequence; a missing event type is summed over, an unseen one refused.

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
            given = joint.log_event_probability(parameters, codes, offsets)
            return lattices.per_sequence(lattices.filtered(lattice)[1], offsets) + given
        lattice = joint.joint_lattice(parameters, sequences.X, codes, offsets, self._floor)
        return lattices.per_sequence(lattices.filtered(lattice)[1], offsets)

    def predict_events(
        self, X: Any, *, events: Any = None, lengths: ArrayLike | None = None
    ) -> tuple[Types, Floats]:
        """Event types from emissions: the most probable at each event, and all probabilities (N, m).

        `events` may give the types that are known.

        Examples
        --------
        >>> guessed, probability = model.predict_events(tau)
        >>> guessed.shape, set(guessed) <= set(keys)
        ((460,), True)
        """
        state = self._known()
        lattice = self._joint_lattice(state, X, events, lengths)
        posterior = lattices.posterior(lattice)
        lattices.check_posterior(posterior, lattice)
        by_type = posterior.states.reshape(len(posterior.states), -1, state.parameters.n_states)
        probabilities: Floats = by_type.sum(axis=2)
        return state.parameters.event_types[np.argmax(probabilities, axis=1)], probabilities

    def decode_events(
        self, X: Any, *, events: Any = None, lengths: ArrayLike | None = None
    ) -> tuple[Floats, Types, Integers]:
        """The most probable types and states together: ln P(x, Ω, z) of each sequence, types, states.

        Examples
        --------
        >>> _, guessed, states = model.decode_events(tau)
        >>> guessed.shape, states.shape
        ((460,), (460,))
        """
        state = self._known()
        log_probability, path = lattices.most_probable(self._joint_lattice(state, X, events, lengths))
        types, states = np.divmod(path, state.parameters.n_states)
        return log_probability, state.parameters.event_types[types], states

    def predict_next(
        self, X: Any, *, events: Any = None, lengths: ArrayLike | None = None, next_event: Any = None
    ) -> NextEmission:
        """The distribution of the emission that follows each sequence.

        `next_event` is the type of the next event, one for all or one per sequence; without it types are
        mixed by the event chain.

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
        self,
        n_events: int = 100,
        events: Any = None,
        random_state: Any = None,
        *,
        lengths: ArrayLike | None = None,
    ) -> tuple[Floats, Types, Integers]:
        """Draw `X` (N, K), event types (N,) and hidden states (N,).

        Types come from the event chain unless `events` gives them; `lengths` makes it several sequences,
        otherwise it is one of `n_events`.

        Examples
        --------
        >>> x, typed, states = model.sample(50, random_state=0)
        >>> x.shape, typed.shape, states.shape
        ((50, 1), (50,), (50,))
        """
        state = self._known()
        theta = state.parameters
        generator = generator_of(random_state)
        drawn = self._events_to_draw(state.n_features, n_events, events, lengths)
        if events is None:
            codes = sampling.draw_events(theta, drawn.offsets, generator)
            labels = theta.event_types[codes]
        else:
            codes = self._encoded(state, drawn, None, None)[1]
            single = vocabulary.is_single(theta.event_types)
            labels = theta.event_types[codes] if single else drawn.labels()
        index = EventIndex.of(codes, drawn.offsets, theta.n_types)
        states = sampling.draw_states(theta, index, generator)
        return sampling.draw_emissions(theta, codes, states, generator), labels, states

    def _events_to_draw(
        self, n_features: int, n_events: int, events: Any, lengths: ArrayLike | None
    ) -> Sequences:
        if events is None:
            if not is_whole(n_events) or n_events < 1:
                raise ValueError(f"n_events must be a whole number, 1 or more, not {n_events!r}")
            total = int(n_events) if lengths is None else int(check_lengths(lengths).sum())
            return self._as_sequences(np.full((total, n_features), np.nan), None, lengths)
        if lengths is None and isinstance(events, (list, tuple)) and len(events) and np.ndim(events[0]) == 1:
            return self._as_sequences([np.full((len(e), n_features), np.nan) for e in events], events, None)
        return self._as_sequences(np.full((len(events), n_features), np.nan), events, lengths)

    def _joint_lattice(self, state: State, X: Any, events: Any, lengths: ArrayLike | None) -> Lattice:
        sequences, codes = self._encoded(state, X, events, lengths, reject=True)
        return joint.joint_lattice(state.parameters, sequences.X, codes, sequences.offsets, self._floor)

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
