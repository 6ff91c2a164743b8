"""Expectation–maximisation for any relative: it sees tables, an index per event into each, and a factor."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.model.data.settings import Settings
from keydyn.model.engine.scores_and_states import Lattice
from keydyn.model.families.family import Emission
from keydyn.model.fit.algorithm import GOES_ON, REASONS, why_stop
from keydyn.model.fit.fits import Iteration
from keydyn.model.relatives.parameter_tables import Evidence, Floored
from keydyn.model.theta import lattice as lattices
from keydyn.model.theta.lattice import Posterior


class Theta(Protocol):
    """What EM needs of a relative's parameters."""

    @property
    def startprob(self) -> Floats: ...

    @property
    def emission(self) -> list[Emission]: ...

    def lattice(self, evidence: Evidence, floor: float | None) -> Lattice: ...

    def maximised(
        self, evidence: Evidence, posterior: Posterior, settings: Settings
    ) -> tuple[Self, Floored]: ...

    def pooled_emission(self, evidence: Evidence, posterior: Posterior) -> list[Emission]: ...

    def reordered(self, order: Integers) -> Self: ...


AnyTheta = TypeVar("AnyTheta", bound=Theta)


@dataclass(frozen=True)
class Result(Generic[AnyTheta]):
    """A finished climb from one start.

    Attributes
    ----------
    theta : the result; posterior : of the last E-step, under the result unless it was `max_iter`
    log_likelihood : of the result; history : (n_iter,) at each E-step
    stop_reason : "tol", "max_iter", "decrease" or "callback"
    floored : for each feature, where the scale floor acted in the last M-step
    """

    theta: AnyTheta
    posterior: Posterior
    log_likelihood: float
    history: Floats
    stop_reason: str
    floored: Floored


def climb(start: AnyTheta, evidence: Evidence, settings: Settings, number: int = 0) -> Result[AnyTheta]:
    """Expectation → maximisation, until the log-likelihood gains less than `tol`."""
    theta = start
    history: list[float] = []
    floored: Floored = [np.zeros(len(start.startprob), dtype=bool) for _ in start.emission]
    for _ in range(settings.max_iter):
        lattice = theta.lattice(evidence, settings.density_floor)
        posterior = lattices.posterior(lattice, evidence.weights)
        lattices.check_posterior(posterior, lattice)
        history.append(float(evidence.weights @ posterior.scores))
        reason = _why_stop(history, settings, number)
        if reason is not None:
            return Result(theta, posterior, history[-1], np.array(history), reason, floored)
        theta, floored = theta.maximised(evidence, posterior, settings)
    final = lattices.filtered(theta.lattice(evidence, settings.density_floor))[1]
    total = float(evidence.weights @ lattices.per_sequence(final, evidence.offsets))
    return Result(theta, posterior, total, np.array(history), "max_iter", floored)


def _why_stop(history: list[float], settings: Settings, number: int) -> str | None:
    gain = history[-1] - history[-2] if len(history) > 1 else np.inf
    if settings.verbose:
        print(
            f"start {number}, iteration {len(history)}: log-likelihood {history[-1]:.6f}, gain {gain:.3g}",
            file=sys.stderr,
        )
    if settings.callback is not None and settings.callback(
        Iteration(len(history), history[-1], gain, number)
    ):
        return "callback"
    reason = why_stop(history[-1], gain, settings.tol)
    return None if reason == GOES_ON else REASONS[reason]
