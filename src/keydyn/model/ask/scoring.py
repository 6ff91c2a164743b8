"""Log-likelihoods, straight from values and event types: the question that is asked most."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keydyn.arrays import Floats, Integers
from keydyn.model.ask.inference import Inference
from keydyn.model.data import vocabulary
from keydyn.model.data.sequences import Sequences
from keydyn.model.engine.layout import variant_of
from keydyn.model.engine.scores_and_states import room_for, score
from keydyn.model.families.compiled import custom_features, features_of
from keydyn.model.fit.estimator import Fitted
from keydyn.model.fit.threads import piece_for, run_hearing_signals
from keydyn.model.theta import lattice as lattices
from keydyn.model.theta.parameters import SMALL_TABLE, Parameters

NONE = np.empty(0)
NO_STEPS = np.empty(0, dtype=np.int64)


class Scoring(Fitted, Inference):
    """The two scores that are asked for most, without laying out a lattice."""

    def score_sequences(self, X: Any, *, events: Any = None, lengths: ArrayLike | None = None) -> Floats:
        """ln P(x | Ω), one per sequence; −inf for one that the model cannot produce.

        Examples
        --------
        >>> model.score_sequences(tau, events=keys, lengths=[230, 230]).shape
        (2,)
        """
        return self._scores(X, events, lengths, of_events=False)

    def score_samples(self, X: Any, *, events: Any = None, lengths: ArrayLike | None = None) -> Floats:
        """ln P(x_n | x_1..n−1, Ω), one per event (Eq. 43, corrected). They add up to `score`.

        Examples
        --------
        >>> model.score_samples(tau, events=keys).shape
        (460,)
        """
        return self._scores(X, events, lengths, of_events=True)

    def _scores(self, X: Any, events: Any, lengths: ArrayLike | None, of_events: bool) -> Floats:
        self._check_fitted()
        sequences, _ = self._take(X, events, lengths, new=False)
        theta = self._parameters
        places = places_of(theta, sequences.event_types)
        if self.handle_unknown == "error" or not theta.has_marginal:
            self._check_known(sequences, places)
        scores = np.empty(len(sequences))
        increments = np.empty(sequences.n_events) if of_events else NONE
        small = len(theta.start) ** 2 <= 4 * sequences.n_events + SMALL_TABLE
        codes = NO_STEPS if small and not custom_features(theta.families) else places[sequences.codes]
        step_rows, transitions = theta.all_steps if small else (NO_STEPS, NONE)
        given_steps = NO_STEPS
        if not small:
            given_steps, transitions = theta.steps_of(codes)
        values, source, offsets = sequences.engine_arrays
        x = np.empty((room_for(sequences.longest, sequences.n_events), sequences.n_features, 1))
        call = partial(
            score,
            variant_of(theta.n_states),
            values.reshape(-1),
            source,
            offsets,
            places,
            step_rows,
            given_steps,
            features_of(theta.families),
            theta.cells,
            -math.inf if self._floor is None else math.log(self._floor),
            self._custom_densities(theta, sequences, codes),
            np.ascontiguousarray(theta.start)[..., None],
            transitions,
            x,
            x.reshape(-1),
            scores,
            increments,
        )
        run_hearing_signals(call, is_long=sequences.n_events > piece_for(theta.n_states))
        lost = np.flatnonzero(~(scores > -math.inf))
        if len(lost):
            self._score_lost(sequences[lost], lost, sequences.offsets, scores, increments)
        return increments if of_events else scores

    def _score_lost(
        self, sequences: Sequences, lost: Integers, offsets: Integers, scores: Floats, increments: Floats
    ) -> None:
        """Scores of sequences for which underflow threatens, by the lattice, which has a log domain."""
        of_events = lattices.filtered(self._lattice(sequences, None, None))[1]
        scores[lost] = lattices.per_sequence(of_events, sequences.offsets)
        if len(increments):
            places = np.repeat(offsets[lost] - sequences.offsets[:-1], sequences.lengths)
            increments[places + np.arange(len(places))] = of_events

    def _custom_densities(self, theta: Parameters, sequences: Sequences, codes: Integers) -> Floats:
        """What families that the engine does not know contribute, (N, M, 1), or no rows."""
        custom = custom_features(theta.families)
        total = np.zeros((len(codes) if custom else 0, theta.n_states, 1))
        for k in custom:
            emission = theta.emission_tables[k]
            total[..., 0] += emission.log_densities(sequences.X[:, k], codes, self._floor)
        return total

    def _check_known(self, sequences: Sequences, places: Integers) -> None:
        """`ValueError` if an event type is unknown to a model that takes none, or can take none."""
        unknown = places[sequences.codes] == self._parameters.n_types
        unseen = unknown & (sequences.codes != vocabulary.MISSING)
        if self.handle_unknown == "error" and unseen.any():
            self._refuse_unseen(sequences, int(np.argmax(unseen)))
        if unknown.any():
            self._parameters.known_marginal()


def places_of(theta: Parameters, source: vocabulary.Types) -> Integers:
    """The model's code of each event type of the source, and of no type, last."""
    if vocabulary.is_single(theta.event_types):
        return np.zeros(len(source) + 1, dtype=np.int64)
    return vocabulary.translation(source, theta.event_types, theta.type_places)
