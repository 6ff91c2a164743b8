"""Learning from data that come in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from keydyn.model.data import vocabulary
from keydyn.model.data.input_forms import refuse_lengths_as_y
from keydyn.model.families.family import families_of
from keydyn.model.fit import training
from keydyn.model.fit.estimator import Fitted
from keydyn.model.fit.fits import Fits
from keydyn.model.fit.result import Estimates, n_parameters
from keydyn.model.fit.steps_in_python import maximised
from keydyn.model.theta.marginals import normalised


class Incremental(Fitted):
    """`partial_fit`, and its two halves."""

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        events: Any = None,
        lengths: ArrayLike | None = None,
        event_types: Sequence[Any] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from some more data: `accumulate`, then `update`.

        The expectation step runs under the current parameters (on the first call, starting ones from these
        data), its statistics are added to those of all calls before and of the last `fit`, and the
        maximisation step uses the totals. `event_types` names the whole vocabulary on the first call; types
        that are not in it then count as unknown. Without it the vocabulary grows with the data.
        """
        refuse_lengths_as_y(X, y, lengths)
        return self._accumulate(X, events, lengths, event_types, sample_weight, after_fit=True).update()

    def accumulate(
        self,
        X: Any,
        *,
        events: Any = None,
        lengths: ArrayLike | None = None,
        event_types: Sequence[Any] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Expectation step only: add the statistics of these data to the running totals.

        Right after a `fit` the totals begin anew, so that a pass over all chunks, then `update`, is one more
        iteration of it.
        """
        return self._accumulate(X, events, lengths, event_types, sample_weight, after_fit=False)

    def update(self, *, forget: bool = False) -> Self:
        """Maximisation step and smoothing from the running totals; `forget` then empties them.

        `log_likelihood_` is then that of the data gathered, under the parameters they were gathered with, and
        `stationary_` the posterior share of each state. What an earlier `fit` reported is gone.
        """
        totals = self._totals
        if totals is None:
            raise ValueError("there is nothing to update from: call accumulate or partial_fit first")
        settings = self._settings(self.n_features_in_)
        parameters, floored = maximised(totals, self._parameters, settings)
        self._source = Estimates(
            parameters,
            None if forget else totals,
            floored,
            totals.shares(),
            n_parameters(parameters, totals.counts, settings.fixed),
        )
        self.log_likelihood_ = totals.log_likelihood
        for of_a_fit in ("history_", "n_iter_", "stop_reason_", "init_results_"):
            if hasattr(self, of_a_fit):
                delattr(self, of_a_fit)
        self._totals_from_fit = False
        return self

    def _accumulate(
        self,
        X: Any,
        events: Any,
        lengths: ArrayLike | None,
        event_types: Sequence[Any] | None,
        sample_weight: ArrayLike | None,
        after_fit: bool,
    ) -> Self:
        begun = self.__sklearn_is_fitted__()
        sequences, families = self._take(X, events, lengths, new=not begun)
        settings = self._settings(sequences.n_features)
        if begun:
            families_now = families_of(self.emission, sequences.n_features)
            training.check_unchanged(self._parameters, settings, families_now)
        known = self.event_types_ if begun else None
        closed = self._closed
        if event_types is not None:
            given = vocabulary.check_types(event_types)
            if known is not None and given.tolist() != known.tolist():
                raise ValueError("event_types differs from the model's; give it on the first call only")
            known, closed = given, True
        batch = training.training_data(sequences, families, sample_weight, known, closed)
        if begun:
            parameters = self._parameters.extended(batch.event_types[0], batch.counts(0).pairs)
            fits = Fits(batch.with_pairs(parameters.pairs), settings, parameters)
        else:
            fits = Fits(batch, settings)
            parameters = fits.parameters()
        totals = fits.expectation()
        if begun:
            if self._totals is not None and (after_fit or not self._totals_from_fit):
                totals = self._totals.merged(totals, families)
            learnt = _with_room(self._learnt, len(batch.event_types[0]) - len(self.event_types_))
        else:
            self._compare_features(sequences, reset=True)
            counted = n_parameters(parameters, totals.counts, settings.fixed)
            learnt = Estimates(parameters, n_parameters=counted)
        self._source, self._closed = replace(learnt, parameters=parameters, statistics=totals), closed
        self._totals_from_fit = False
        return self


def _with_room(learnt: Estimates, new: int) -> Estimates:
    """Rows for new event types in what is known of the old ones: no state is likelier, no floor acted."""
    shape = (new, learnt.parameters.n_states)
    stationary, floored = learnt.stationary, learnt.floored
    if stationary is not None:
        stationary = np.vstack([stationary, normalised(np.zeros(shape))])
    if floored is not None:
        floored = [np.vstack([acted, np.zeros(shape, dtype=bool)]) for acted in floored]
    return replace(learnt, stationary=stationary, floored=floored)
