"""Fits of a batch of models: sets up Algorithm 1 from data and settings, runs it, and returns its results."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.model.data.fit_settings import FitSettings, generator_of
from keydyn.model.engine.densities import END, FIRST
from keydyn.model.engine.expectation import room_for
from keydyn.model.engine.layout import (
    LANES,
    ROW,
    SEQUENCE,
    STEP,
    FitJob,
    FitRoom,
    Outcome,
    Rules,
    Sums,
    Tables,
    Walk,
)
from keydyn.model.engine.scores_and_states import Lattice
from keydyn.model.families.compiled import custom_features, features_of, variant_for, width_of
from keydyn.model.families.family import Family, Stats
from keydyn.model.fit import custom_families
from keydyn.model.fit.algorithm import (
    ALONE,
    CALLBACK,
    FREE,
    GOES_ON,
    IMPOSSIBLE,
    IN_LOGS,
    MAX_ITER,
    Lanes,
    climb,
    climb_in_lanes,
    climb_in_logs,
    share_states,
    smooth_emissions,
)
from keydyn.model.fit.batch import Batch, sizes
from keydyn.model.fit.result import FitResult, Statistics, parameters_of, statistics_of
from keydyn.model.fit.threads import check_wanted, piece_for, run_hearing_signals
from keydyn.model.theta.from_data import Moments, displacements, start_emission
from keydyn.model.theta.lattice import check_possible, filtered, log_densities
from keydyn.model.theta.parameters import Parameters

# Length of the history at first; it is doubled as needed.
HISTORY = 256


@dataclass(frozen=True)
class Iteration:
    """The report of one iteration to a callback: number, log-likelihood, gain over the last, and start.

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


def fit_from_starts(batch: Batch, settings: FitSettings, random_state: Any) -> list[FitResult]:
    """Fit one model from the start that its data suggest, then from jittered ones; return all results."""
    # Without a seed and with a single start there is nothing to draw and nothing to check.
    generator = generator_of(random_state) if random_state is not None or settings.n_init > 1 else None
    results = []
    for number in range(settings.n_init):
        fits = Fits(batch, settings, jitter=generator if number else None, number=number)
        results += fits.run().results()
    return results


def fit_further(batch: Batch, settings: FitSettings, current: Parameters) -> list[FitResult]:
    """Continue the fit of one model from its current parameters."""
    start = current.extended(batch.event_types[0], batch.counts(0).pairs)
    return Fits(batch.with_pairs(start.pairs), settings, start).run().results()


def rules_of(settings: FitSettings, families: tuple[Family, ...]) -> Rules:
    """The settings in the form that the engine takes."""
    smoothing = settings.smoothing
    return Rules(
        features_of(families),
        -math.inf if settings.density_floor is None else math.log(settings.density_floor),
        settings.count_floor,
        fixed_start="start" in settings.fixed,
        fixed_transitions="transitions" in settings.fixed,
        fixed_emission="emission" in settings.fixed,
        exact=settings.marginals == "exact",
        first_occurrence=settings.start_estimate == "first_occurrence",
        smooth_start=smoothing.start is not None,
        smooth_transitions=smoothing.transitions is not None,
        smooth_emission=smoothing.emission is not None,
        tol=settings.tol,
        max_iter=settings.max_iter,
    )


class Fits:
    """The models of a batch during and after their fit.

    `start` has the parameters that a single model starts from. Without it all models start from their data,
    with `jitter` if given. `number` is the number of the start, for messages.
    """

    def __init__(
        self,
        batch: Batch,
        settings: FitSettings,
        start: Parameters | None = None,
        jitter: np.random.Generator | None = None,
        number: int = 0,
    ) -> None:
        self.batch, self.settings, self.number = batch, settings, number
        self.rules, self.chain = rules_of(settings, batch.families), batch.type_chain(settings)
        self.custom = custom_features(batch.families)
        copies = len(batch) if batch.is_shared else 1
        n_rows, n_steps = int(batch.rows_of[-1]) * copies, int(batch.steps_of[-1]) * copies
        self.tables, self.sums = self._tables(n_rows, n_steps, 1), self._sums(n_rows, n_steps, 1)
        self.tables.least[:] = batch.least_scales(settings)
        self.stationary = np.zeros((n_rows, settings.n_states))
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
        """Run Algorithm 1 for all models, side by side for models that share their events."""
        if self.batch.is_shared:
            self._climb_in_lanes()
        else:
            self._climb()
        return self

    def results(self) -> list[FitResult]:
        """The result of each model; a `ValueError` names a sequence that a model cannot produce."""
        batch, spans = self.batch, self.model_spans
        if (self.outcome.reason == IMPOSSIBLE).any():
            self._check_possible()
        shifts, chances = spans[:, [ROW, STEP]] * batch.is_shared, np.empty((2, self.settings.n_states))
        share_states(spans, shifts, batch.events, self.tables, chances, self.stationary)
        alone = np.flatnonzero(self.outcome.reason == ALONE).tolist()
        refitted = {b: Fits(batch.alone(b), self.settings).run().results()[0] for b in alone}
        # Results that are unpacked later do not need the data.
        self.batch = batch.without_data()
        return [refitted[b] if b in refitted else FitResult(self, b) for b in range(len(batch))]

    def parameters(self) -> Parameters:
        """The current parameters of a single model."""
        return parameters_of(self, 0)

    def expectation(self) -> Statistics:
        """The statistics of one expectation step of a single model, whose parameters are not changed."""
        # With a limit of one iteration and a budget of one, only that step is made.
        self.rules = self.rules._replace(max_iter=1)
        job = self._job(self._work())
        self._turn(job, 0, budget=1)
        if not self.outcome.log_likelihood[0] > -math.inf:
            self._check_possible()
        self._take_custom(job.work)
        return statistics_of(self, 0)

    def _climb(self) -> None:
        """Fit one model after the other, in pieces of a second at most."""
        settings, work = self.settings, self._work()
        stepwise = bool(settings.verbose or settings.callback is not None or self.custom)
        while len(left := self._left()):
            check_wanted()
            self._turn(self._job(work), int(left[0]), 1 if stepwise else piece_for(settings.n_states))
            if stepwise:
                self._between(work)

    def _job(self, work: FitRoom) -> FitJob:
        batch, events = self.batch, self.batch.events
        if self.custom:
            events = events._replace(
                given=custom_families.densities(batch, self.tables, self.settings.density_floor)
            )
        job = FitJob(self.rules, batch.spans, events, self.chain, self.tables, self.sums, work, self.outcome)
        job.check(int(self.rules.features[-1, END]))
        return job

    def _turn(self, job: FitJob, first: int, budget: int) -> None:
        """Run a piece of Algorithm 1, starting with the first model whose fit goes on."""
        variant = variant_for(self.settings.n_states, self.batch.families)
        # A call makes one expectation step at least.
        is_long = int(self.batch.n_events.max()) > piece_for(self.settings.n_states)
        run_hearing_signals(partial(climb, variant, job, first, budget), is_long=is_long)
        for b in np.flatnonzero(self.outcome.reason == IN_LOGS).tolist():
            climb_in_logs(variant, job, b)

    def _climb_in_lanes(self) -> None:
        """Fit models over the same events side by side, in pieces of a second at most."""
        batch, n_rows, n_steps = self.batch, int(self.batch.rows_of[-1]), int(self.batch.steps_of[-1])
        x = np.ones((len(batch.codes), len(batch.families), LANES))
        events = batch.events._replace(x=x, given=np.empty((0, self.settings.n_states, LANES)))
        tables, sums = self._tables(n_rows, n_steps, LANES), self._sums(n_rows, n_steps, LANES)
        of_models = _loaded_and_unloaded(batch.engine_values, self.tables, self.sums)
        lanes = Lanes(
            model=np.full(LANES, FREE),
            of_models=tuple(array.reshape(len(batch), -1) for array in of_models),
            in_lanes=tuple(array.reshape(-1, LANES) for array in _loaded_and_unloaded(x, tables, sums)),
            floored=self.tables.floored.reshape(len(batch), -1),
            floored_in_lanes=tables.floored.reshape(-1, LANES),
        )
        cursor, work = np.zeros(2, dtype=np.int64), self._work(LANES)
        variant = variant_for(self.settings.n_states, batch.families, in_lanes=True)
        while len(self._left()):
            check_wanted()
            job = FitJob(self.rules, batch.spans, events, self.chain, tables, sums, work, self.outcome)
            job.check(int(self.rules.features[-1, END]))
            climb_in_lanes(variant, job, lanes, cursor, piece_for(self.settings.n_states))

    def _between(self, work: FitRoom) -> None:
        """Do Python's part for a single model after each expectation step: custom families and reports."""
        if self.outcome.reason[0] == IMPOSSIBLE:
            return
        self._take_custom(work)
        if self._reported_to_stop():
            self.outcome.reason[0] = CALLBACK
        elif self.custom and self.outcome.reason[0] == GOES_ON:
            families = self.batch.families
            custom_families.maximise(families, self.custom_stats, self.settings, self.chain, self.tables)

    def _take_custom(self, work: FitRoom) -> None:
        """Update the statistics of custom families with γ of the last expectation step."""
        if self.custom:
            self.custom_stats = custom_families.statistics(self.batch, self.tables, work.states[..., 0])

    def _reported_to_stop(self) -> bool:
        """Report an iteration to the terminal and the callback; return whether the callback stops the fit."""
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
        """The numbers of models whose fit goes on; makes room for their next iteration in the history."""
        left, history = np.flatnonzero(self.outcome.reason == GOES_ON), self.outcome.history
        if (
            history.shape[1] < self.settings.max_iter
            and (self.outcome.n_iter[left] == history.shape[1]).any()
        ):
            self.outcome = self.outcome._replace(history=np.concatenate([history, history], axis=1))
        return left

    @cached_property
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
        """Fill the tables with smoothed starting parameters (Section 3.5)."""
        batch, settings, tables, chain = self.batch, self.settings, self.tables, self.chain
        tables.start[:] = tables.transitions[:] = 1.0 / settings.n_states
        # Quantities of a whole model, repeated for each of its rows.
        model = np.repeat(np.arange(len(batch)), batch.n_rows) if len(batch) > 1 else slice(None)
        overall = Moments(*(table[model] for table in batch.overall[0]))
        for k, family in enumerate(batch.families):
            floor = tables.least[:, k, 0]
            shift = displacements(k, settings, jitter)
            params = start_emission(family, batch.by_type.of(k), overall.of(k), floor, shift, settings)
            for p, name in enumerate(family.parameters, int(self.rules.features[k, FIRST])):
                tables.emission[:, p, :, 0] = params[name]
        if batch.is_shared:
            chain = chain._replace(of_types=np.tile(chain.of_types, (len(batch), 1)))
        rules = self.rules._replace(exact=False)
        variant = variant_for(settings.n_states, batch.families)
        smooth_emissions(variant, self.model_spans, rules, chain, self.sums, tables)
        if self.custom:
            custom_families.smooth_start(batch.families, settings, chain, tables)

    def _check_possible(self) -> None:
        """Raise `ValueError` naming a sequence that a model cannot produce under its current parameters."""
        for b in np.flatnonzero(~(self.outcome.log_likelihood > -math.inf)).tolist():
            batch, span = self.batch, self.batch.spans[b]
            offsets = batch.offsets[span[SEQUENCE] : span[SEQUENCE + 1] + 1]
            own = slice(offsets[0], offsets[-1])
            walk = Walk.along(
                offsets - offsets[0],
                batch.codes[offsets[:-1]],
                self.tables.start[..., 0],
                batch.steps[own],
                self.tables.transitions[..., 0],
            )
            theta, codes = parameters_of(self, b), batch.codes[own] - span[ROW]
            lattice = Lattice.of(log_densities(theta, batch.values[own], codes, None), walk)
            check_possible(filtered(lattice)[1], lattice.offsets)

    def _tables(self, n_rows: int, n_steps: int, n_lanes: int) -> Tables:
        """Tables for parameters, filled with ones: lanes without a model compute on them, too."""
        n_states, n_parameters = self.settings.n_states, int(self.rules.features[-1, END])
        n_features = len(self.batch.families)
        return Tables(
            start=np.ones((n_rows, n_states, n_lanes)),
            transitions=np.ones((n_steps, n_states, n_states, n_lanes)),
            emission=np.ones((n_rows, n_parameters, n_states, n_lanes)),
            cells=np.zeros((n_rows, n_features, width_of(self.batch.families), n_states, n_lanes)),
            least=np.ones((n_rows, n_features, n_lanes)),
            floored=np.zeros((n_rows, n_features, n_states, n_lanes), dtype=bool),
        )

    def _sums(self, n_rows: int, n_steps: int, n_lanes: int) -> Sums:
        n_states, width = self.settings.n_states, width_of(self.batch.families)
        return Sums(
            start=np.zeros((n_rows, n_states, n_lanes)),
            first_seen=np.zeros((n_rows, n_states, n_lanes)),
            transitions=np.zeros((n_steps, n_states, n_states, n_lanes)),
            moments=np.zeros((n_rows, len(self.batch.families), width, n_states, n_lanes)),
            latest=np.empty(n_rows, dtype=np.int64),
        )

    def _work(self, n_lanes: int = 1) -> FitRoom:
        batch, n_states = self.batch, self.settings.n_states
        longest = int(sizes(batch.offsets).max())
        block = longest if n_lanes > 1 else room_for(longest, int(batch.n_events.max()))
        return FitRoom(
            density=np.empty((block, n_states, n_lanes)),
            largest=np.empty((block, n_lanes)),
            states=np.empty((len(batch.codes), n_states, n_lanes)),
            inverse=np.empty((n_states, n_lanes)),
            scores=np.empty((len(batch.weights), n_lanes)),
            worst=np.empty(n_lanes),
            increments=np.empty(0),
        )


def _loaded_and_unloaded(x: Floats, tables: Tables, sums: Sums) -> tuple[Floats, ...]:
    """The arrays that are copied into lanes and out of them, in the order that `Lanes` documents."""
    parameters = tables.start, tables.transitions, tables.emission
    return x, tables.least, *parameters, sums.start, sums.first_seen, sums.transitions, sums.moments
