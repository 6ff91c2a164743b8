"""Fits of a batch of models: from data and settings to Algorithm 1, and to what it found."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import partial

import numpy as np

from keydyn.arrays import Floats, Integers, Truths
from keydyn.model.data.settings import Settings
from keydyn.model.engine.densities import END, FIRST
from keydyn.model.engine.expectation import ROW, SEQUENCE, STEP, Scratch, Sums, Tables
from keydyn.model.engine.layout import LANES, variant_of
from keydyn.model.engine.maximisation import KEEP_EMISSION, PROB
from keydyn.model.engine.scores_and_states import room_for
from keydyn.model.families.compiled import custom_features, features_of, width_of
from keydyn.model.families.family import Emission, Stats
from keydyn.model.fit.algorithm import (
    ALONE,
    CALLBACK,
    GOES_ON,
    IMPOSSIBLE,
    IN_LOGS,
    MAX_ITER,
    Outcome,
    climb,
    climb_in_logs,
    share_states,
    smooth_emissions,
)
from keydyn.model.fit.batch import Batch, sizes
from keydyn.model.fit.lanes import FREE, Lanes, climb_in_lanes
from keydyn.model.fit.result import FitResult, Unpacking
from keydyn.model.fit.statistics import Statistics
from keydyn.model.fit.steps_in_python import maximise_custom, rules_of, smooth_custom
from keydyn.model.fit.threads import check_wanted, piece_for, run_hearing_signals
from keydyn.model.theta.lattice import Lattice, check_possible, filtered, log_densities
from keydyn.model.theta.parameters import Parameters
from keydyn.model.theta.start_values import Moments, start_emission

# Iterations for which there is room at first.
HISTORY = 256


@dataclass(frozen=True)
class Iteration:
    """What a callback gets: the number of the E-step, its log-likelihood and the gain over the last.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import HMM
    >>> from keydyn.model import Iteration
    >>> def stop_after_five(iteration: Iteration) -> bool:
    ...     return iteration.number >= 5
    >>> x = np.random.default_rng(0).lognormal(5.0, 0.4, (300, 1))
    >>> HMM(tol=0.0, callback=stop_after_five).fit(x).stop_reason_
    'callback'
    """

    number: int
    log_likelihood: float
    gain: float
    start: int


class Fits:
    """The models of a batch while they are fitted, and after.

    `start` has the parameters that a single model starts from; without it all start from their data, after
    the first start with `jitter`. `number` is that of the start, for messages.
    """

    def __init__(
        self,
        batch: Batch,
        settings: Settings,
        start: Parameters | None = None,
        jitter: np.random.Generator | None = None,
        number: int = 0,
    ) -> None:
        self.batch, self.settings, self.number = batch, settings, number
        self.rules, self.features = rules_of(settings), features_of(batch.families)
        self.custom = custom_features(batch.families)
        self.chain, self.min_scale = batch.chain(settings), batch.least_scales(settings)
        copies = len(batch) if batch.is_shared else 1
        self.n_rows, self.n_steps = int(batch.rows_of[-1]) * copies, int(batch.steps_of[-1]) * copies
        self.tables = self._tables(self.n_rows, self.n_steps, 1)
        self.sums = self._sums(self.n_rows, self.n_steps, 1)
        self.floored = self._floored(self.n_rows, 1)
        self.stationary = np.zeros((self.n_rows, settings.n_states))
        self.custom_stats: dict[int, Stats] = {}
        self.outcome = Outcome(
            np.full(len(batch), GOES_ON),
            np.zeros(len(batch), dtype=np.int64),
            np.full(len(batch), math.nan),
            np.empty((len(batch), min(settings.max_iter, HISTORY))),
        )
        if start is None:
            self._start_from_data(jitter)
        else:
            self.tables.start[..., 0] = start.start
            self.tables.transitions[..., 0] = start.transitions
            self.tables.emission[..., 0] = start.emissions

    def run(self) -> Fits:
        """Algorithm 1 for all models; those that share their events go side by side."""
        if self.batch.is_shared:
            self._climb_in_lanes()
        else:
            self._climb()
        return self

    def results(self) -> list[FitResult]:
        """What was found, model by model; a `ValueError` names a sequence that a model cannot produce."""
        batch = self.batch
        if (self.outcome.reason == IMPOSSIBLE).any():
            self._check_possible()
        alone = np.flatnonzero(self.outcome.reason == ALONE).tolist()
        spans = self.model_spans()
        share_states(
            spans,
            spans[:, [ROW, STEP]] * batch.is_shared,
            batch.codes,
            batch.steps,
            batch.offsets,
            batch.weights,
            self.tables.start,
            self.tables.transitions,
            np.empty((2, self.settings.n_states)),
            self.stationary,
        )
        found = Unpacking(self)
        results = [found.result(b) for b in range(len(self.batch))]
        for b in alone:
            (results[b],) = Fits(self.batch.alone(b), self.settings).run().results()
        return results

    def parameters(self) -> Parameters:
        """The current parameters of a single model."""
        return Unpacking(self).parameters(0)

    def expectation(self) -> Statistics:
        """One expectation step of a single model, nothing changed."""
        scratch = self._scratch()
        # A limit of one step, and nothing but that step.
        self.rules = self.rules._replace(max_iter=1)
        self._turn(0, self._given(), scratch, budget=1)
        log_likelihood = float(self.outcome.log_likelihood[0])
        if not log_likelihood > -math.inf:
            self._check_possible()
        self._take_custom(scratch)
        return Unpacking(self).statistics(0, log_likelihood)

    def _climb(self) -> None:
        """One model after the other, in pieces of a second at most."""
        settings, scratch = self.settings, self._scratch()
        stepwise = bool(settings.verbose or settings.callback is not None or self.custom)
        given = self._given()
        while len(left := self._left()):
            check_wanted()
            self._turn(int(left[0]), given, scratch, 1 if stepwise else piece_for(settings.n_states))
            if stepwise:
                self._between(scratch)
                given = self._given()

    def _turn(self, first: int, given: Floats, scratch: Scratch, budget: int) -> None:
        """A piece of Algorithm 1, from the first model on that goes on."""
        batch, variant = self.batch, variant_of(self.settings.n_states)
        piece = partial(
            climb,
            variant,
            first,
            len(batch),
            self.rules,
            self.features,
            batch.spans,
            batch.events,
            self.chain,
            batch.engine_values,
            given,
            self.min_scale,
            self.tables,
            self.sums,
            self.floored,
            scratch,
            self.outcome,
            budget,
        )
        # One expectation step is the least that is done in a call.
        run_hearing_signals(piece, is_long=int(batch.n_events.max()) > piece_for(self.settings.n_states))
        for b in np.flatnonzero(self.outcome.reason == IN_LOGS).tolist():
            climb_in_logs(
                variant,
                b,
                self.rules,
                self.features,
                batch.spans[b],
                batch.events,
                batch.engine_values,
                given,
                self.tables,
                self.sums,
                scratch,
                self.outcome,
            )

    def _climb_in_lanes(self) -> None:
        """Models over the same events, side by side, in pieces of a second at most."""
        batch, n_features = self.batch, len(self.batch.families)
        n_rows, n_steps = int(batch.rows_of[-1]), int(batch.steps_of[-1])
        x, min_scale = np.ones((len(batch.codes), n_features, LANES)), np.ones((n_features, LANES))
        tables, sums = self._tables(n_rows, n_steps, LANES), self._sums(n_rows, n_steps, LANES)
        floored, scratch = self._floored(n_rows, LANES), self._scratch(LANES)
        of_models = (batch.engine_values, self.min_scale, *self.tables, *self.sums)
        lanes = Lanes(
            np.full(LANES, FREE),
            tuple(array.reshape(len(batch), -1) for array in of_models),
            tuple(array.reshape(-1, LANES) for array in (x, min_scale, *tables, *sums)),
            self.floored.reshape(len(batch), -1),
            floored.reshape(-1, LANES),
        )
        cursor = np.zeros(2, dtype=np.int64)
        while len(self._left()):
            check_wanted()
            climb_in_lanes(
                variant_of(self.settings.n_states, in_lanes=True),
                self.rules,
                self.features,
                batch.spans[0],
                batch.events,
                self.chain,
                np.empty((0, self.settings.n_states, LANES)),
                lanes,
                x,
                min_scale,
                tables,
                sums,
                floored,
                scratch,
                self.outcome,
                cursor,
                piece_for(self.settings.n_states),
            )

    def _between(self, scratch: Scratch) -> None:
        """What Python has to do with a single model after each expectation step."""
        if self.outcome.reason[0] == IMPOSSIBLE:
            return
        self._take_custom(scratch)
        if self._reported_to_stop():
            self.outcome.reason[0] = CALLBACK
        elif self.custom and self.outcome.reason[0] == GOES_ON:
            self._maximise_custom()

    def _reported_to_stop(self) -> bool:
        """Report an iteration to the terminal and to the callback, whose true answer stops the fit."""
        settings, history, n_iter = self.settings, self.outcome.history[0], int(self.outcome.n_iter[0])
        if self.outcome.reason[0] == MAX_ITER:
            return False
        gain = float(history[n_iter - 1] - history[n_iter - 2]) if n_iter > 1 else math.inf
        if settings.verbose:
            start = f"start {self.number}, " if settings.n_init > 1 else ""
            reached = f"log-likelihood {history[n_iter - 1]:.6f}, gain {gain:.3g}"
            print(f"{start}iteration {n_iter}: {reached}", file=sys.stderr)
        if settings.callback is None:
            return False
        return bool(settings.callback(Iteration(n_iter, float(history[n_iter - 1]), gain, self.number)))

    def _left(self) -> Integers:
        """The models that go on; there is room for their next iteration then."""
        left, history = np.flatnonzero(self.outcome.reason == GOES_ON), self.outcome.history
        if (
            history.shape[1] < self.settings.max_iter
            and (self.outcome.n_iter[left] == history.shape[1]).any()
        ):
            self.outcome = self.outcome._replace(history=np.concatenate([history, history], axis=1))
        return left

    def model_spans(self) -> Integers:
        """The part of the tables that belongs to each model."""
        spans, n = self.batch.spans, len(self.batch)
        if not self.batch.is_shared:
            return spans
        spans = np.repeat(spans, n, axis=0)
        spans[:, ROW] += np.arange(n) * int(self.batch.rows_of[-1])
        spans[:, ROW + 1] += np.arange(n) * int(self.batch.rows_of[-1])
        spans[:, STEP] += np.arange(n) * int(self.batch.steps_of[-1])
        return spans

    def _start_from_data(self, jitter: np.random.Generator | None) -> None:
        """Starting parameters, smoothed (Section 3.5)."""
        batch, settings = self.batch, self.settings
        self.tables.start[:] = self.tables.transitions[:] = 1.0 / settings.n_states
        # What holds for a whole model, for each of its rows.
        model = np.repeat(np.arange(len(batch)), batch.n_rows) if len(batch) > 1 else slice(None)
        overall = Moments(*(table[model] for table in batch.overall[0]))
        for k, family in enumerate(batch.families):
            floor = self.min_scale[model, k, 0]
            params = start_emission(family, k, batch.by_type.of(k), overall.of(k), floor, settings, jitter)
            for p, name in enumerate(family.parameters, int(self.features[k, FIRST])):
                self.tables.emission[:, p, :, 0] = params[name]
        chain = self.chain
        if batch.is_shared:
            chain = chain._replace(of_types=np.tile(chain.of_types, (len(batch), 1)))
        smooth_emissions(
            variant_of(settings.n_states),
            False,
            self.rules.smooth_emission and not self.rules.fixed_emission,
            self.features,
            self.model_spans(),
            chain.of_types,
            self.sums.moments,
            self.tables.emission,
        )
        for k in self.custom:
            prob, keep = chain.of_types[:-1, PROB], chain.of_types[:-1, KEEP_EMISSION]
            shares = np.repeat(prob[:, None], settings.n_states, axis=1)
            smooth_custom(batch.families[k], settings, shares, keep, self._columns(k))

    def _columns(self, k: int) -> Floats:
        """The parameters of one feature of a single model, (m + 1, p, M)."""
        columns = slice(self.features[k, FIRST], self.features[k, END])
        table: Floats = self.tables.emission[:, columns, :, 0]
        return table

    def _take_custom(self, scratch: Scratch) -> None:
        """The statistics of custom families under γ of the last expectation step."""
        batch, m = self.batch, int(self.batch.n_types[0])
        for k in self.custom:
            family, table = batch.families[k], self._columns(k)
            params = {name: table[:, p].copy() for p, name in enumerate(family.parameters)}
            states = scratch.states[..., 0]
            self.custom_stats[k] = family.statistics(batch.values[:, k], states, batch.codes, m, params)

    def _maximise_custom(self) -> None:
        """The maximisation step of custom families."""
        for k in self.custom:
            least, floored = float(self.min_scale[0, k, 0]), self.floored[:-1, k, :, 0]
            family, stats = self.batch.families[k], self.custom_stats[k]
            maximise_custom(family, stats, least, self.settings, self.chain, self._columns(k), floored)

    def _given(self) -> Floats:
        """The log-densities of custom families, (N, M, 1), or no rows."""
        batch = self.batch
        total = np.zeros((len(batch.codes) if self.custom else 0, self.settings.n_states, 1))
        for k in self.custom:
            table = self._columns(k)
            params = {name: table[:, p] for p, name in enumerate(batch.families[k].parameters)}
            emission = Emission(batch.families[k], params)
            floor = self.settings.density_floor
            total[..., 0] += emission.log_densities(batch.values[:, k], batch.codes, floor)
        return total

    def _check_possible(self) -> None:
        """`ValueError` naming the sequence that a model cannot produce under the parameters that it has."""
        for b in np.flatnonzero(~(self.outcome.log_likelihood > -math.inf)).tolist():
            batch, span = self.batch, self.batch.spans[b]
            offsets = batch.offsets[span[SEQUENCE] : span[SEQUENCE + 1] + 1]
            own = slice(offsets[0], offsets[-1])
            lattice = Lattice(
                log_densities(
                    Unpacking(self).parameters(b), batch.values[own], batch.codes[own] - span[ROW], None
                ),
                offsets - offsets[0],
                batch.codes[offsets[:-1]],
                self.tables.start[..., 0],
                batch.steps[own],
                self.tables.transitions[..., 0],
            )
            check_possible(filtered(lattice)[1], lattice.offsets)

    def _tables(self, n_rows: int, n_steps: int, n_lanes: int) -> Tables:
        """Room for parameters; a lane without a model computes on ones."""
        n_states, n_parameters = self.settings.n_states, int(self.features[-1, END])
        return Tables(
            np.ones((n_rows, n_states, n_lanes)),
            np.ones((n_steps, n_states, n_states, n_lanes)),
            np.ones((n_rows, n_parameters, n_states, n_lanes)),
        )

    def _sums(self, n_rows: int, n_steps: int, n_lanes: int) -> Sums:
        n_states, width = self.settings.n_states, width_of(self.batch.families)
        return Sums(
            np.zeros((n_rows, n_states, n_lanes)),
            np.zeros((n_rows, n_states, n_lanes)),
            np.zeros((n_steps, n_states, n_states, n_lanes)),
            np.zeros((n_rows, len(self.batch.families), width, n_states, n_lanes)),
        )

    def _floored(self, n_rows: int, n_lanes: int) -> Truths:
        return np.zeros((n_rows, len(self.batch.families), self.settings.n_states, n_lanes), dtype=bool)

    def _scratch(self, n_lanes: int = 1) -> Scratch:
        batch, n_states = self.batch, self.settings.n_states
        longest = int(sizes(batch.offsets).max())
        block = longest if n_lanes > 1 else room_for(longest, int(batch.n_events.max()))
        shape = (int(batch.rows_of[-1]), len(batch.families), width_of(batch.families), n_states, n_lanes)
        return Scratch(
            np.zeros(shape),
            np.empty((block, n_states, n_lanes)),
            np.empty((block, n_lanes)),
            np.empty((len(batch.codes), n_states, n_lanes)),
            np.empty((n_states, n_lanes)),
            np.empty((len(batch.weights), n_lanes)),
            np.empty(n_lanes),
            np.empty(0),
            np.empty(int(batch.rows_of[-1]), dtype=np.int64),
        )
