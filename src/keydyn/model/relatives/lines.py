"""Parameters that are lines and logits in the value before: the continuous partly-HMM's θ."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.model.data.settings import Settings
from keydyn.model.families.family import Emission
from keydyn.model.relatives.contexts import NoContext, Past
from keydyn.model.relatives.parameter_tables import (
    ContextTables,
    Floored,
    Training,
    start_update,
)
from keydyn.model.relatives.regression import (
    LineLimits,
    SeenFeature,
    line_update,
    tilted,
    update_logits,
)
from keydyn.model.relatives.sampling import LinearWalk, largest_working, on_input_scale, walk_linear
from keydyn.model.theta.lattice import StatePosterior

STEEPEST = 1e110


@dataclass(frozen=True)
class EachItsOwn(NoContext):
    """Every event has tables of its own, made from the value before."""

    def tables(self, past: Past) -> Integers:
        return np.arange(len(past.last), dtype=np.int64)

    def names(self) -> list[str]:
        return ["average"]


@dataclass(frozen=True)
class Lines(ContextTables):
    """θ that varies with u, the deviation of the last value from the centre, on the working scale.

    Attributes
    ----------
    startprob : (M,); transmat : (M, M) a[i, j] at u = 0; emission : parameters (1, M) at u = 0
    emission_slopes : (K, M) b: the location of feature k is loc + b[k, j] u[k]
    transition_slopes : (M, M) c, zero on the diagonal: a[i, j | u] ∝ a[i, j] exp(c[i, j] u)
    centre : (K,) the average value of each feature on its working scale
    feature : the feature whose u the transitions see
    free_slopes : whether fitting changes the slopes
    """

    emission_slopes: Floats
    transition_slopes: Floats
    centre: Floats
    feature: int
    free_slopes: bool = True

    def __post_init__(self) -> None:
        """Check that u times a slope is finite, whatever the value before."""
        for name in ("emission_slopes", "transition_slopes", "centre"):
            if not (np.abs(getattr(self, name)) <= STEEPEST).all():
                raise ValueError(f"{name} must be between -{STEEPEST:g} and {STEEPEST:g}")

    def deviations(self, last: Floats) -> Floats:
        """u (N, K); zero where no value was seen yet."""
        working = np.stack([e.distribution.working(last[:, k]) for k, e in enumerate(self.emission)], axis=1)
        return np.nan_to_num(working - self.centre)

    def tables_for(self, last: Floats) -> ContextTables:
        """The tables that each event uses, one row per event."""
        u = self.deviations(last)
        emission = []
        for k, e in enumerate(self.emission):
            shape = (len(last), self.n_states)
            params = {name: np.broadcast_to(values, shape) for name, values in e.params.items()}
            params["loc"] = e.params["loc"] + self.emission_slopes[k] * u[:, k : k + 1]
            emission.append(e.replace(params))
        steps = tilted(self.transmat, self.transition_slopes, u[:, self.feature])
        return ContextTables(self.startprob, steps, emission)

    def maximised(
        self, evidence: Training, posterior: StatePosterior, settings: Settings
    ) -> tuple[Self, Floored]:
        """The M-step: least squares for the lines, Newton's method for the logits."""
        weighted, u = posterior.states, self._training_deviations(evidence)
        startprob, transmat, steepness = self.startprob, self.transmat, self.transition_slopes
        if "start" not in settings.fixed:
            startprob = start_update(weighted, evidence, settings)
        if "transitions" not in settings.fixed:
            deviation, expected, least = u[self.feature], posterior.transitions, settings.count_floor
            transmat, steepness = transmat.copy(), steepness.copy()
            update_logits(transmat, steepness, deviation, expected, least, self.free_slopes)
        emission, slopes = list(self.emission), self.emission_slopes.copy()
        floored = [np.zeros((1, len(startprob)), dtype=bool) for _ in emission]
        if "emission" not in settings.fixed:
            for k, e in enumerate(emission):
                limits = LineLimits(evidence.least_scale(k, settings), settings.count_floor, self.free_slopes)
                seen = SeenFeature(evidence.working[k], u[k])
                emission[k], slopes[k], floored[k] = line_update(e, slopes[k], seen, weighted, limits)
        slopes_of: Any = {"emission_slopes": slopes, "transition_slopes": steepness}
        return replace(self, startprob=startprob, transmat=transmat, emission=emission, **slopes_of), floored

    def pooled_emission(self, evidence: Training, posterior: StatePosterior) -> list[Emission]:
        """The emission after an average value."""
        return [e.replace({name: values[0] for name, values in e.params.items()}) for e in self.emission]

    def _training_deviations(self, evidence: Training) -> Floats:
        """u of the training events, (K, N)."""
        u: Floats = evidence.last_working - self.centre[:, None]
        u[np.isnan(u)] = 0.0
        return u

    def reordered(self, order: Integers) -> Self:
        """θ with its states renumbered."""
        return replace(
            super().reordered(order),
            emission_slopes=np.ascontiguousarray(self.emission_slopes[:, order]),
            transition_slopes=np.ascontiguousarray(self.transition_slopes[np.ix_(order, order)]),
        )

    def drawn(self, offsets: Integers, generator: np.random.Generator) -> tuple[Floats, Integers]:
        """Values (N, K) and states (N,) drawn from the model."""
        n, m = int(offsets[-1]), self.n_states
        ahead = np.empty((n, m, len(self.emission)))
        for k, e in enumerate(self.emission):
            params = {name: np.broadcast_to(values, (n, m)) for name, values in e.params.items()}
            ahead[..., k] = e.distribution.working(e.distribution.draw(generator, params))
        values, states = np.empty((n, len(self.emission))), np.empty(n, dtype=np.int64)
        limits = np.array([largest_working(e.distribution) for e in self.emission])
        slopes = self.emission_slopes, self.transition_slopes
        walk = LinearWalk(self.startprob, self.transmat, *slopes, self.centre, self.feature, limits)
        walk_linear(offsets, walk, ahead, generator.random(n), values, states)
        columns = [
            on_input_scale(values[:, k], e.distribution.on_log_scale) for k, e in enumerate(self.emission)
        ]
        return np.stack(columns, axis=1), states
