"""A fast path for the most frequent query, log-likelihoods, straight from values and event types."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from keydyn.arrays import Floats, Given, Integers
from keydyn.model.ask.inference import Inference
from keydyn.model.data import vocabulary
from keydyn.model.data.sequences import Sequences
from keydyn.model.engine.expectation import room_for
from keydyn.model.engine.scores_and_states import (
    GivenSequences,
    Lattice,
    Scored,
    ScoreRoom,
    check_scoring,
    score,
)
from keydyn.model.families.compiled import custom_features, features_of, variant_for
from keydyn.model.fit.estimator import Estimator, ModelState, refuse_unseen
from keydyn.model.fit.threads import piece_for, run_hearing_signals
from keydyn.model.theta import lattice as lattices
from keydyn.model.theta.lattice import EventIndex
from keydyn.model.theta.parameters import SMALL_TABLE, Parameters

NO_STEPS = np.empty(0, dtype=np.int64)


class Scoring(Estimator, Inference):
    """Mixin with the two most frequent scores, computed without laying out a lattice."""

    def score_sequences(self, X: Any, *, events: Any = None, lengths: Given = None) -> Floats:
        """ln P(x | Ω), one per sequence; −inf for one that the model cannot produce.

        Examples
        --------
        >>> model.score_sequences(tau, events=keys, lengths=[230, 230]).shape
        (2,)
        """
        return self._scores(X, events, lengths, of_events=False)

    def score_samples(self, X: Any, *, events: Any = None, lengths: Given = None) -> Floats:
        """ln P(x_n | x_1..n−1, Ω), one per event (Eq. 43, corrected); their sum is `score`.

        Examples
        --------
        >>> model.score_samples(tau, events=keys).shape
        (460,)
        """
        return self._scores(X, events, lengths, of_events=True)

    def _scores(self, X: Any, events: Any, lengths: Given, of_events: bool) -> Floats:
        state, floor = self._known(), self._floor
        theta = state.parameters
        sequences, _ = self._checked(X, events, lengths, state)
        places = places_of(theta, sequences.event_types)
        reject = self.handle_unknown == "error"
        if reject or not theta.has_marginal:
            check_known(theta, sequences, places, reject)
        scores = np.empty(len(sequences))
        increments = np.empty(sequences.n_events if of_events else 0)
        values, codes, offsets = sequences.engine_arrays
        x = np.empty((room_for(sequences.longest, sequences.n_events), sequences.n_features, 1))
        model = scored(theta, places, sequences, floor)
        source = GivenSequences(
            values.reshape(-1), codes, offsets, _custom_densities(theta, places, sequences, floor)
        )
        room = ScoreRoom(scores, increments, x, x.reshape(-1))
        check_scoring(source, model, room)
        arrays: tuple[Any, ...] = (*source, *model, *room)
        call = partial(score, variant_for(theta.n_states, theta.families), *arrays)
        run_hearing_signals(call, is_long=sequences.n_events > piece_for(theta.n_states))
        lost = np.flatnonzero(~(scores > -math.inf))
        if len(lost):
            self._score_lost(state, sequences, lost, room)
        return increments if of_events else scores

    def _score_lost(self, state: ModelState, sequences: Sequences, lost: Integers, room: ScoreRoom) -> None:
        """Recompute scores of sequences for which underflow threatens, with a lattice and the log domain."""
        some = sequences[lost]
        of_events = lattices.filtered(self._lattice_of(state, some, None, None))[1]
        room.scores[lost] = lattices.per_sequence(of_events, some.offsets)
        if len(room.increments):
            places = np.repeat(sequences.offsets[lost] - some.offsets[:-1], some.lengths)
            room.increments[places + np.arange(len(places))] = of_events

    def _lattice(self, X: Any, events: Any, lengths: Given) -> Lattice:
        return self._lattice_of(self._known(), X, events, lengths)

    def _lattice_of(self, state: ModelState, X: Any, events: Any, lengths: Given) -> Lattice:
        sequences, codes = self._encoded(state, X, events, lengths)
        index = EventIndex.of(codes, sequences.offsets, state.parameters.n_types)
        return lattices.build(state.parameters, sequences.X, index, self._floor)

    def _approximate(self) -> bool:
        theta = self._parameters
        return (theta.smoothing.acts and theta.n_types > 1) or self.density_floor is not None


def scored(theta: Parameters, places: Integers, sequences: Sequences, floor: float | None) -> Scored:
    """The model in the form for scoring, with transitions of all pairs of types if these are few enough."""
    steps = NO_STEPS
    if len(theta.start) ** 2 <= 4 * sequences.n_events + SMALL_TABLE:
        transitions = theta.all_steps
    else:
        index = EventIndex.of(places[sequences.codes], sequences.offsets, theta.n_types)
        steps, transitions = index.steps, theta.transmat_of(index.before, index.after)[..., None]
    return Scored(
        places,
        steps,
        features_of(theta.families),
        -math.inf if floor is None else math.log(floor),
        theta.cells,
        np.ascontiguousarray(theta.start)[..., None],
        transitions,
    )


def check_known(theta: Parameters, sequences: Sequences, places: Integers, reject: bool) -> None:
    """Raise `ValueError` if a type is unknown and `reject` is true, or the model has no marginals for it."""
    unknown = places[sequences.codes] == theta.n_types
    unseen = unknown & (sequences.codes != vocabulary.MISSING)
    if reject and unseen.any():
        refuse_unseen(sequences, int(np.argmax(unseen)))
    if unknown.any():
        theta.known_marginal()


def places_of(theta: Parameters, source: vocabulary.Types) -> Integers:
    """The model's code of each event type of the source, and lastly of events without a type."""
    if vocabulary.is_single(theta.event_types):
        return np.zeros(len(source) + 1, dtype=np.int64)
    return vocabulary.translation(source, theta.event_types, theta.type_places)


def _custom_densities(
    theta: Parameters, places: Integers, sequences: Sequences, floor: float | None
) -> Floats:
    """The log-densities of features whose family is not compiled, (N, M, 1); no rows if there are none."""
    custom = custom_features(theta.families)
    total = np.zeros((sequences.n_events if custom else 0, theta.n_states, 1))
    for k in custom:
        codes = places[sequences.codes]
        total[..., 0] += theta.emission_tables[k].log_densities(sequences.X[:, k], codes, floor)
    return total
