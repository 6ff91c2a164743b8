"""`fit`: the parameters of one model from data."""

from __future__ import annotations

import warnings
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from keydyn.model.data.input_forms import refuse_lengths_as_y
from keydyn.model.data.sequences import Sequences
from keydyn.model.families.family import families_of
from keydyn.model.fit import training
from keydyn.model.fit.fitted import Fitted
from keydyn.model.fit.result import FitResult


class Estimation(Fitted):
    """What turns an estimator with parameters into a fitted one."""

    n_states: int
    n_init: int
    tol: float
    max_iter: int
    warm_start: bool
    random_state: Any
    verbose: int
    callback: Any

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        events: Any = None,
        lengths: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Estimate the parameters (Algorithm 1).

        `X` is a flat (N, K) array with `lengths`, a list of (n_i, K) arrays, or a `Sequences`; `events` has
        the same form, None or NaN where an event has no type. `sample_weight` has one entry per sequence; a
        weight of k is the same as k copies. `y` is ignored.
        """
        refuse_lengths_as_y(X, y, lengths)
        self._estimate(X, events, lengths, sample_weight)
        if self.stop_reason_ == "max_iter":
            gain = self.log_likelihood_ - self.history_[-1]
            warnings.warn(
                f"not converged after max_iter={self.max_iter} iterations (last gain {gain:.3g}, "
                f"tol={self.tol:g}): raise max_iter or tol, or check that the data support "
                f"{self.n_states} states",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _estimate(
        self, X: Any, events: Any, lengths: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> Self:
        """`fit` without a word on convergence."""
        begun = self.warm_start and self.__sklearn_is_fitted__()
        current = self._parameters if begun else None
        sequences, families = self._take(X, events, lengths, new=current is None)
        settings = self._settings(sequences.n_features)
        if current is None:
            batch = training.training_data(sequences, families, sample_weight)
            results = training.fit_from_starts(batch, settings, self.random_state)
        else:
            training.check_unchanged(current, settings, families_of(self.emission, sequences.n_features))
            batch = training.training_data(sequences, families, sample_weight, current.event_types)
            results = training.fit_further(batch, settings, current)
        return self._finish(sequences, results, max(results, key=lambda result: result.log_likelihood))

    def _finish(self, sequences: Sequences, results: list[FitResult], best: FitResult) -> Self:
        """Become the model of a finished fit."""
        if not (self.warm_start and self.__sklearn_is_fitted__()):
            self._compare_features(sequences, reset=True)
        self._take_result(best)
        self.init_results_ = results
        return self
