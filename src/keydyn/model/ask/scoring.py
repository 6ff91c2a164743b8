"""Log-likelihoods by compiled scoring where the model allows it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from keydyn.arrays import Floats, Integers, plain
from keydyn.model.ask.inference import Inference
from keydyn.model.data import vocabulary
from keydyn.model.estimation.scoring import score
from keydyn.model.fit.fitted import Fitted


class Scoring(Fitted, Inference):
    """The two scores that are asked for most, without laying out a lattice."""

    def score_sequences(self, X: Any, *, events: Any = None, lengths: ArrayLike | None = None) -> Floats:
        """ln P(x | Ω), one a sequence; −inf for one that the model cannot produce."""
        scores = self._scores(X, events, lengths, of_events=False)
        return super().score_sequences(X, events=events, lengths=lengths) if scores is None else scores

    def score_samples(self, X: Any, *, events: Any = None, lengths: ArrayLike | None = None) -> Floats:
        """ln P(x_n | x_1..n−1, Ω), one an event (Eq. 43, corrected). They add up to `score`."""
        scores = self._scores(X, events, lengths, of_events=True)
        return super().score_samples(X, events=events, lengths=lengths) if scores is None else scores

    def _scores(self, X: Any, events: Any, lengths: ArrayLike | None, of_events: bool) -> Floats | None:
        """The scores; None where the lattice is needed, for other families or to refuse an unknown type."""
        check_is_fitted(self)
        model = self._scorable.finished
        if model is None or self.handle_unknown == "error":
            return None
        sequences, _ = self._take(X, events, lengths, new=False)
        arrays = (plain(sequences.X), plain(sequences.codes), plain(sequences.offsets))
        log_floor = -math.inf if self.density_floor is None else math.log(self.density_floor)
        return score(*arrays, self._places(sequences.event_types), model, log_floor, of_events)

    def _places(self, source: vocabulary.Types) -> Integers:
        """The model's code of each event type of the source, and of no type, last."""
        types = self._scorable.event_types
        if vocabulary.is_single(types):
            return np.zeros(len(source) + 1, dtype=np.int64)
        return vocabulary.translation(source, types, self._scorable.type_places)
