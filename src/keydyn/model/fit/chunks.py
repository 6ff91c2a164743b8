"""Incremental learning from data that come in chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from keydyn.arrays import Given, Truths
from keydyn.model.data import vocabulary
from keydyn.model.data.fit_settings import FitSettings
from keydyn.model.data.input_forms import refuse_lengths_as_y
from keydyn.model.engine.densities import END, FIRST
from keydyn.model.engine.layout import OF_TYPES, Sums, Tables
from keydyn.model.families.compiled import variant_for
from keydyn.model.families.family import families_of
from keydyn.model.fit import custom_families
from keydyn.model.fit.algorithm import maximise
from keydyn.model.fit.estimator import Estimator, ModelState, check_unchanged, training_data
from keydyn.model.fit.fits import Fits, rules_of
from keydyn.model.fit.result import FitResult, Statistics, around_locations, n_parameters
from keydyn.model.fit.threads import learning
from keydyn.model.theta.from_data import least_scale
from keydyn.model.theta.marginals import normalised
from keydyn.model.theta.parameters import Parameters


class Chunks(Estimator):
    """Mixin with `partial_fit` and its two halves, `accumulate` and `update`."""

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        events: Any = None,
        lengths: Given = None,
        event_types: Sequence[Any] | None = None,
        sample_weight: Given = None,
    ) -> Self:
        """Learn from more data: `accumulate`, then `update`.

        The expectation step runs under the current parameters (on the first call, start values from these
        data). Its statistics are added to those of all earlier calls and of the last `fit`, and the
        maximisation step uses the totals. On the first call `event_types` may give the whole vocabulary; all
        other types then count as unknown. Without it the vocabulary grows with the data.
        """
        refuse_lengths_as_y(X, y, lengths)
        with learning(self):
            # Assigned once, when both halves are done.
            state = self._accumulated(X, events, lengths, event_types, sample_weight, after_fit=True)
            self._state = self._updated(state, forget=False)
        return self

    def accumulate(
        self,
        X: Any,
        *,
        events: Any = None,
        lengths: Given = None,
        event_types: Sequence[Any] | None = None,
        sample_weight: Given = None,
    ) -> Self:
        """Run the expectation step only: add the statistics of these data to the running totals.

        Right after a `fit` the totals start from zero, so that a pass over all chunks, followed by `update`,
        is one more iteration of the fit.
        """
        with learning(self):
            self._state = self._accumulated(X, events, lengths, event_types, sample_weight, after_fit=False)
        return self

    def update(self, *, forget: bool = False) -> Self:
        """Run the maximisation step and smoothing on the running totals; `forget` then empties the totals.

        Afterwards `log_likelihood_` is that of the accumulated data, under the parameters they were
        accumulated with, and `stationary_` has the posterior share of each state. The report of an earlier
        `fit` is discarded.
        """
        with learning(self):
            state = vars(self).get("_state")
            self._state = self._updated(state, forget)
        return self

    def _updated(self, state: ModelState | None, forget: bool) -> ModelState:
        totals = None if state is None else state.result.statistics
        if state is None or totals is None:
            raise ValueError("there is nothing to update from: call accumulate or partial_fit first")
        settings = self._settings(state.n_features)
        parameters, floored = maximised(totals, state.parameters, settings)
        result = FitResult.of(
            parameters,
            statistics=None if forget else totals,
            floored=floored,
            stationary=totals.shares(),
            n_parameters=n_parameters(parameters, totals.counts, settings.fixed),
            log_likelihood=totals.log_likelihood,
        )
        return replace(state, result=result, totals_from_fit=False, init_results=None)

    def _accumulated(
        self,
        X: Any,
        events: Any,
        lengths: Given,
        event_types: Sequence[Any] | None,
        sample_weight: Given,
        after_fit: bool,
    ) -> ModelState:
        """The state with the statistics of these data added; `after_fit` keeps those of an earlier fit."""
        state: ModelState | None = vars(self).get("_state")
        sequences, families = self._checked(X, events, lengths, state)
        settings = self._settings(sequences.n_features)
        if state is not None:
            families_now = families_of(self.emission, sequences.n_features)
            check_unchanged(state.parameters, settings, families_now)
        known, closed = (None, False) if state is None else (state.parameters.event_types, state.closed)
        if event_types is not None:
            given = vocabulary.check_types(event_types)
            if known is not None and given.tolist() != known.tolist():
                raise ValueError("event_types differs from the model's; give it on the first call only")
            known, closed = given, True
        batch = training_data(sequences, families, sample_weight, known, closed)
        if state is None:
            fits = Fits(batch, settings)
            parameters, totals = fits.parameters(), fits.expectation()
            counted = n_parameters(parameters, totals.counts, settings.fixed)
            result = FitResult.of(parameters, statistics=totals, n_parameters=counted)
            return ModelState(result, sequences.n_features, sequences.feature_names, closed)
        parameters = state.parameters.extended(batch.event_types[0], batch.counts(0).pairs)
        totals = Fits(batch.with_pairs(parameters.pairs), settings, parameters).expectation()
        before = state.result.statistics
        if before is not None and (after_fit or not state.totals_from_fit):
            totals = before.merged(totals, families)
        result = _with_room(state.result, len(batch.event_types[0]) - state.parameters.n_types)
        result = result.replaced(parameters=parameters, statistics=totals)
        return replace(state, result=result, closed=closed, totals_from_fit=False)


def _with_room(result: FitResult, new: int) -> FitResult:
    """The result with rows for new event types: their states are equally likely, and no scale floor acted."""
    shape = (new, result.parameters.n_states)
    stationary, floored = result.stationary, result.floored
    if stationary is not None:
        stationary = np.vstack([stationary, normalised(np.zeros(shape))])
    if floored is not None:
        floored = [np.vstack([acted, np.zeros(shape, dtype=bool)]) for acted in floored]
    return result.replaced(stationary=stationary, floored=floored)


def maximised(
    totals: Statistics, current: Parameters, settings: FitSettings
) -> tuple[Parameters, list[Truths]]:
    """The parameters of a single model after maximisation and smoothing, and where the scale floor acted."""
    m, n_pairs, families = current.n_types, len(current.pairs), current.families
    rules, event_chain = rules_of(settings, families), totals.counts.chain()
    chain = totals.counts.type_chain(event_chain, settings)
    chain = chain._replace(of_types=np.vstack([chain.of_types, np.zeros((1, OF_TYPES))]))
    least = [
        least_scale(family, *overall, settings.min_scale)
        for family, overall in zip(families, totals.overall, strict=True)
    ]
    tables = Tables(
        start=np.array(current.start, order="C")[..., None],
        transitions=np.array(current.transitions, order="C")[..., None],
        emission=np.array(current.emissions, order="C")[..., None],
        cells=np.zeros((*totals.moments.shape, 1)),
        least=np.tile(np.array(least), (m + 1, 1, 1)),
        floored=np.zeros((m + 1, len(families), current.n_states, 1), dtype=bool),
    )
    locations = [tables.emission[:, first, :, 0] for first in rules.features[:, FIRST]]
    transitions = np.zeros_like(current.transitions)
    transitions[:n_pairs] = totals.transitions
    sums = Sums(
        start=np.array(totals.start)[..., None],
        first_seen=np.array(totals.first_seen)[..., None],
        transitions=transitions[..., None],
        moments=around_locations(families, totals.moments, locations)[..., None],
        latest=np.empty(m + 1, dtype=np.int64),
    )
    chain.check(m + 1)
    tables.check(len(families), int(rules.features[-1, END]))
    sums.check(tables)
    span = np.array([0, 0, 0, m + 1, 0, n_pairs, 0])
    maximise(variant_for(current.n_states, families), span, rules, chain, sums, tables)
    custom_families.maximise(families, totals.custom, settings, chain, tables)
    parameters = replace(
        current,
        start=tables.start[..., 0],
        transitions=tables.transitions[..., 0],
        emissions=tables.emission[..., 0],
        chain=event_chain,
        smoothing=settings.smoothing,
    )
    return parameters, [tables.floored[:-1, k, :, 0] for k in range(len(families))]
