"""Discriminative training: the models of several classes learn together to tell the classes apart.

Maximum likelihood fits each class's model to that class alone. Starting there, the locations and scales of
all models' emissions are moved so that the right class of the training sequences stands out: by the
conditional likelihood ln P(class | x, Ω), or by the margin to the other classes (Mutsam and Pernkopf, 2016).
The paper leaves this open in Section 5.2. Start, transitions and marginals stay as they are. By Fisher's
identity the gradient of ln P(x | Ω) is the posterior mean of the gradient of ln b, so one smoothing pass per
model gives it exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from keydyn.arrays import Floats, Integers
from keydyn.model.data.sequences import Sequences
from keydyn.model.data.vocabulary import find
from keydyn.model.engine.densities import FIRST
from keydyn.model.families.compiled import features_of
from keydyn.model.families.family import Family
from keydyn.model.families.location_scale import LocationScale
from keydyn.model.families.student import Student
from keydyn.model.fit.estimator import ModelState
from keydyn.model.fit.many import score_many
from keydyn.model.fit.result import FitResult

LIKELIHOOD, CONDITIONAL, MARGIN = "likelihood", "conditional", "margin"
# Largest move of a location, in units of its scale, and of the logarithm of a scale.
FURTHEST = 5.0


@dataclass(frozen=True)
class TrainingCriterion:
    """A criterion for discriminative training, "conditional" or "margin", with its settings.

    Let f be `sharpness` times the sum of log-likelihood and log-prior of each class. A sequence of class y
    contributes ln softmax(f)[y] (conditional), or −ln(1 + exp(1 − f[y] + ln Σ exp f[others])) (margin), which
    levels off where y leads by more than one. As a penalty, each emission cell subtracts `lean`/2 times the
    squared moves of its location, in units of its first scale, and of its log-scale.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import POHMM, POHMMClassifier
    >>> from keydyn.model import TrainingCriterion
    >>> rng = np.random.default_rng(0)
    >>> sequences = [rng.lognormal(location, 0.5, (20, 1)) for location in [5.0, 5.3] * 10]
    >>> criterion = TrainingCriterion("margin", sharpness=0.5)
    >>> classifier = POHMMClassifier(POHMM(n_states=1), criterion=criterion).fit(sequences, [0, 1] * 10)
    >>> bool(np.all(np.diff(classifier.criterion_history_) >= 0.0))
    True
    """

    name: str
    sharpness: float = 0.1
    lean: float = 1.0
    max_iter: int = 30

    def __post_init__(self) -> None:
        """Check the values."""
        if self.name not in (CONDITIONAL, MARGIN):
            raise ValueError(f"criterion must be 'likelihood', 'conditional' or 'margin', not {self.name!r}")
        if not self.sharpness > 0.0 or not self.lean >= 0.0 or self.max_iter < 1:
            raise ValueError("sharpness must be above 0, lean 0 or more, and max_iter 1 or more")

    def values(self, f: Floats, target: Integers) -> tuple[Floats, Floats]:
        """The contribution of each sequence to the criterion, (S,), and its derivatives by f, (S, C)."""
        rows = np.arange(len(f))
        right = np.zeros_like(f)
        right[rows, target] = 1.0
        if self.name == CONDITIONAL:
            total = np.logaddexp.reduce(f, axis=1)
            return f[rows, target] - total, right - np.exp(f - total[:, None])
        others = np.where(right > 0, -np.inf, f)
        rival = np.logaddexp.reduce(others, axis=1)
        short = 1.0 - f[rows, target] + rival
        slope = expit(short)[:, None]
        return -np.logaddexp(0.0, short), slope * (right - np.exp(others - rival[:, None]))


class Labelled(NamedTuple):
    """Training sequences with the number of the right model, (S,), and the weight, (S,), of each."""

    sequences: Sequences
    target: Integers
    weights: Floats


class Discrimination:
    """The criterion and its gradient as functions of the moves of all emissions from where they started.

    There are two moves for each model, event type, feature and state: one of the location, in units of the
    first scale, and one of the logarithm of the scale.
    """

    def __init__(
        self,
        models: Sequence[Any],
        data: Labelled,
        log_priors: Floats,
        criterion: TrainingCriterion,
        n_jobs: int | None = None,
    ) -> None:
        self.models, (self.sequences, self.target, self.weights) = models, data
        self.log_priors, self.criterion, self.n_jobs = log_priors, criterion, n_jobs
        self._first = [model._parameters.emissions for model in models]
        self._shapes = [(2, model._parameters.n_types, *self._columns(model)) for model in models]
        self.size = sum(int(np.prod(shape)) for shape in self._shapes)
        self._sequence = np.repeat(np.arange(len(self.sequences)), self.sequences.lengths)
        for model in models:
            _check(model)

    @staticmethod
    def _columns(model: Any) -> tuple[int, int]:
        return len(model._parameters.families), model._parameters.n_states

    def moved(self, moves: Floats) -> list[Any]:
        """The models with their emissions moved."""
        return [
            _with_emissions(model, self._emissions(model, first, part))
            for model, first, part in zip(self.models, self._first, self._parts(moves), strict=True)
        ]

    def value_and_gradient(self, moves: Floats) -> tuple[float, Floats]:
        """The criterion and its derivatives by the moves."""
        models = self.moved(moves)
        sharpness = self.criterion.sharpness
        f = sharpness * (score_many(models, self.sequences, self.n_jobs).T + self.log_priors)
        added, slopes = self.criterion.values(f, self.target)
        slopes *= sharpness * self.weights[:, None]
        value = self.weights @ added - 0.5 * self.criterion.lean * moves @ moves
        parts = [self._gradient(model, slopes[:, c]) for c, model in enumerate(models)]
        for c, first in enumerate(self._first):
            # The chain rule: moves of locations are in units of the first scale.
            parts[c][0] *= first[:-1, self._scales(self.models[c])]
        gradient = np.concatenate([part.ravel() for part in parts])
        return float(value), gradient - self.criterion.lean * moves

    def _gradient(self, model: Any, slopes: Floats) -> Floats:
        """The sum over sequences of `slopes` times the gradient of ln P by loc and ln scale, (2, m, K, M)."""
        sequences, known = self.sequences, model._parameters
        codes, _ = find(sequences.codes, sequences.event_types, known.event_types)
        posterior = model.predict_proba(sequences) * slopes[self._sequence, None]
        m, total = known.n_types, np.zeros((2, known.n_types, len(known.families), known.n_states))
        for k, emission in enumerate(known.emission):
            # An event type that this model does not know uses the marginal, which does not move.
            rows = np.flatnonzero((codes < m) & np.isfinite(sequences.X[:, k]))
            row = codes[rows]
            scale = emission.scale[row]
            z = (emission.distribution.working(sequences.X[rows, k])[:, None] - emission.loc[row]) / scale
            weight = posterior[rows] * _precision(emission.distribution, emission.params, z, row)
            for part, each in enumerate((weight * z / scale, weight * z * z - posterior[rows])):
                for j in range(known.n_states):
                    total[part, :, k, j] = np.bincount(row, each[:, j], m)
        return total

    def _emissions(self, model: Any, first: Floats, moves: Floats) -> Floats:
        emissions = first.copy()
        scales = self._scales(model)
        locations = scales - 1
        emissions[:-1, locations] += moves[0] * first[:-1, scales]
        emissions[:-1, scales] *= np.exp(moves[1])
        return emissions

    @staticmethod
    def _scales(model: Any) -> Integers:
        """The columns of the features' scales, each right after the column of its location."""
        columns: Integers = features_of(model._parameters.families)[:, FIRST].astype(np.int64) + 1
        return columns

    def _parts(self, moves: Floats) -> list[Floats]:
        ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes])
        split = np.split(moves, ends[:-1])
        return [part.reshape(shape) for part, shape in zip(split, self._shapes, strict=True)]


def discriminated(problem: Discrimination) -> tuple[list[Any], Floats]:
    """The models that maximise a criterion, by L-BFGS from where they are, and its value after each step.

    The value never falls: a step that would lower it is shortened, or the search ends.
    """
    start = np.zeros(problem.size)
    history = [problem.value_and_gradient(start)[0]]

    def negative(moves: Floats) -> tuple[float, Floats]:
        value, gradient = problem.value_and_gradient(moves)
        return -value, -gradient

    found = minimize(
        negative,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(-FURTHEST, FURTHEST)] * problem.size,
        callback=lambda intermediate_result: history.append(-float(intermediate_result.fun)),
        options={"maxiter": problem.criterion.max_iter},
    )
    return problem.moved(found.x), np.array(history)


def _check(model: Any) -> None:
    """Raise `ValueError` if the gradient would not be that of the likelihood used for scoring."""
    if model.density_floor is not None:
        raise ValueError("a density that is floored has no gradient: set density_floor=None for a criterion")
    for family in model._parameters.families:
        if not isinstance(family, LocationScale):
            raise ValueError(
                f"a criterion moves locations and scales, which the family {family.name!r} has not"
            )


def _precision(family: Family, params: dict[str, Floats], z: Floats, row: Integers) -> Floats | float:
    """The weight of residuals under Student's t, relative to that under a normal, which is one."""
    if not isinstance(family, Student):
        return 1.0
    df = params["df"][row]
    return np.asarray((df + 1.0) / (df + z * z))


def _with_emissions(model: Any, emissions: Floats) -> Any:
    """A copy of a fitted model with other emissions, without the log-likelihood and history of its fit."""
    made, state = copy(model), model._state
    found = FitResult.of(
        replace(state.parameters, emissions=emissions),
        n_parameters=state.result.n_parameters,
        stationary=state.result.stationary,
    )
    made._state = ModelState(found, state.n_features, state.feature_names, state.closed)
    return made
