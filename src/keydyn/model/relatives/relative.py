"""The common base of the relatives as estimators: input checks, the fit around EM, and its results.

For every event a relative provides an emission table, the transition table of the step to it, and optionally
a factor for each state. The kernels and the families do the rest.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning

from keydyn.arrays import Floats, Given, Integers
from keydyn.model.ask.inference import Inference
from keydyn.model.data.fit_settings import FitSettings, check_settings, generator_of
from keydyn.model.data.input_forms import refuse_lengths_as_y
from keydyn.model.data.sequences import Sequences, as_sequences
from keydyn.model.engine.scores_and_states import Lattice
from keydyn.model.families.family import Emission, Family, families_of
from keydyn.model.fit.estimator import check_domain, check_values_present, weighted
from keydyn.model.fit.result import FitResult
from keydyn.model.pohmm import POHMM
from keydyn.model.relatives.contexts import Contexts, Past
from keydyn.model.relatives.parameter_tables import Result, Training, climb, lattice_of, n_rows
from keydyn.model.theta.lattice import log_densities


@dataclass(frozen=True, eq=False)
class RelativeState:
    """The fitted state of a relative, learnt or given; never changed.

    Attributes
    ----------
    result : θ, and the report of the fit that found it
    contexts : the emission and transition contexts, which select the tables of each event
    n_features : K; feature_names : the names in the input, or None
    """

    result: FitResult
    contexts: Contexts
    n_features: int
    feature_names: tuple[str, ...] | None = None

    @property
    def theta(self) -> Any:
        """The parameters."""
        return self.result.parameters


@dataclass(eq=False, repr=False)
class Relative(Inference, DensityMixin, BaseEstimator):  # type: ignore[misc]
    """The common part of the relatives as estimators. Each model documents how it uses `events`."""

    n_states: int = 2
    emission: str | Family | Sequence[str | Family] = "lognormal"
    _: KW_ONLY
    spread: float = 2.0
    tol: float = 1e-6
    max_iter: int = 1000
    n_init: int = 1
    random_state: Any = None
    fixed: Sequence[str] = ()
    min_scale: float | str = "auto"
    order_states: bool = True
    leading_feature: int = 0
    density_floor: float | None = None
    count_floor: float = 0.0
    spread_features: str = "all"
    spread_scale: str = "type"
    verbose: int = 0
    callback: Any = None

    # Number of earlier events that a context sees.
    _memory: ClassVar[int] = 0

    @property
    def startprob_(self) -> Floats:
        return np.asarray(self._theta.startprob)

    @property
    def transmat_(self) -> Floats:
        return np.asarray(self._theta.transmat)

    @property
    def emission_(self) -> list[Emission]:
        emission: list[Emission] = self._theta.emission
        return emission

    @property
    def n_parameters_(self) -> int:
        return self._found(self._result.n_parameters)[0]

    @property
    def _theta(self) -> Any:
        """The parameters."""
        return self._known().theta

    @property
    def _contexts(self) -> Contexts:
        """The emission and transition contexts, which select the tables of each event."""
        return self._known().contexts

    def _known(self) -> RelativeState:
        state: RelativeState = super()._known()
        return state

    @abstractmethod
    def _learn_contexts(self, past: Past, X: Floats, event_weights: Floats) -> Contexts:
        """The emission and transition contexts, learnt from the training events."""

    @abstractmethod
    def _start(
        self,
        evidence: Training,
        contexts: Contexts,
        settings: FitSettings,
        jitter: np.random.Generator | None,
    ) -> Any:
        """The parameters with which EM begins."""

    def fit(
        self, X: Any, y: Any = None, *, events: Any = None, lengths: Given = None, sample_weight: Given = None
    ) -> Self:
        """Estimate the parameters by expectation–maximisation.

        `X` is a flat (N, K) array with `lengths`, a list of (n_i, K) arrays, or a `Sequences`.
        `sample_weight` has one entry per sequence; a weight of k is equivalent to k copies. `y` is ignored.
        """
        refuse_lengths_as_y(X, y, lengths)
        return self._fit(self._as_sequences(X, events, lengths), sample_weight)

    def _approximate(self) -> bool:
        return self.density_floor is not None

    def _settings(self, n_features: int) -> FitSettings:
        """The settings, with the POHMM's checks of shared parameters; subclasses check their own."""
        own = self.get_params(deep=False)
        given = POHMM(smoothing=None).get_params(deep=False)
        return check_settings(given | {name: own[name] for name in given if name in own}, n_features)

    def _as_sequences(self, X: Any, events: Any, lengths: Given) -> Sequences:
        return as_sequences(X, None, lengths).without_events()

    def _checked(self, X: Any, events: Any, lengths: Given) -> Sequences:
        known = self._known()
        sequences = self._as_sequences(X, events, lengths)
        self._compare_features(sequences, known.n_features, known.feature_names)
        check_domain(sequences, tuple(e.distribution for e in known.theta.emission))
        return sequences

    def _past(self, sequences: Sequences) -> Past:
        """The past of each event, from which contexts are computed."""
        return Past.of(sequences, self._memory)

    def _labels_in_fitting(self, sequences: Sequences) -> tuple[Integers | None, tuple[Any, ...]]:
        """The state that each event's label names, and the label of each state; (None, ()) without labels."""
        return None, ()

    def _labels_in_scoring(self, sequences: Sequences) -> Integers | None:
        """The state that each event's label names; None without labels."""
        return None

    def _lattice(self, X: Any, events: Any, lengths: Given) -> Lattice:
        own = self._as_it_is()
        sequences = own._checked(X, events, lengths)
        past = own._past(sequences)
        rows, steps = (context.tables(past) for context in own._contexts)
        tables = own._theta.tables_for(past.last)
        log_density = log_densities(tables, sequences.X, rows, own._floor)
        factor = own._theta.log_factor(own._labels_in_scoring(sequences))
        if factor is not None:
            log_density += factor
        return lattice_of(log_density, sequences.offsets, tables.startprob, steps, tables.transmat)

    def _fit(self, sequences: Sequences, sample_weight: Given) -> Self:
        families = families_of(self.emission, sequences.n_features)
        check_domain(sequences, families)
        settings = self._settings(sequences.n_features)
        sequences, weights = weighted(sequences, sample_weight)
        check_values_present(sequences)
        past = self._past(sequences)
        event_weights = np.repeat(weights, sequences.lengths)
        contexts = self._learn_contexts(past, sequences.X, event_weights)
        rows, steps = (context.tables(past) for context in contexts)
        labels, names = self._labels_in_fitting(sequences)
        evidence = Training(
            sequences.X, sequences.offsets, weights, families, rows, steps, past.last, labels, names
        )
        generator = generator_of(self.random_state)
        results = []
        for number in range(settings.n_init):
            start = self._start(evidence, contexts, settings, generator if number else None)
            results.append(climb(start, evidence, settings, number))
        best = max(results, key=lambda result: result.log_likelihood)
        self._become(best, evidence, contexts, settings, sequences.feature_names)
        if best.stop_reason == "max_iter":
            warnings.warn(
                f"not converged after max_iter={settings.max_iter} iterations: raise max_iter or tol, or "
                f"check that the data support {settings.n_states} states",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _become(
        self,
        result: Result,
        evidence: Training,
        contexts: Contexts,
        settings: FitSettings,
        feature_names: tuple[str, ...] | None,
    ) -> None:
        """Take the result of EM as the state of the model, with states ordered by the leading feature."""
        theta = result.theta
        # Contexts that no training event had use a row that pools all contexts.
        pool = [context.n_tables > context.n_rows for context in contexts]
        theta = theta.with_pooled(evidence, result.posterior, *pool)
        order = np.arange(settings.n_states)
        if settings.order_states:
            leading = result.theta.pooled_emission(evidence, result.posterior)[settings.leading_feature]
            order = np.argsort(leading.distribution.location(leading.params), kind="stable")
        later = np.ones(len(evidence.X), dtype=bool)
        later[evidence.offsets[:-1]] = False
        used = len(np.unique(evidence.rows)), len(np.unique(evidence.steps[later]))
        n_parameters = self._count(result.theta, *used, settings.fixed)
        found = FitResult.of(
            theta.reordered(order),
            log_likelihood=result.log_likelihood,
            history=result.history,
            stop_reason=result.stop_reason,
            floored=[np.atleast_2d(floored)[:, order] for floored in result.floored],
            n_parameters=(n_parameters, n_parameters),
        )
        self._state = RelativeState(found, contexts, evidence.X.shape[1], feature_names)

    @classmethod
    def _given(cls, theta: Any, contexts: Contexts, own: dict[str, Any], settings: dict[str, Any]) -> Self:
        """A model with given parameters, the settings that follow from them, and the caller's settings."""
        emission = [e.distribution for e in theta.emission]
        follows: dict[str, Any] = {"n_states": len(theta.startprob), "emission": emission}
        made = cls(**(follows | own | settings))
        made._settings(len(emission))
        n_parameters = made._count(theta, contexts[0].n_rows, contexts[1].n_rows, ())
        found = FitResult.of(theta, n_parameters=(n_parameters, n_parameters))
        made._state = RelativeState(found, contexts, len(emission))
        return made

    def _count(self, theta: Any, rows: int, steps: int, fixed: tuple[str, ...]) -> int:
        """The number of free parameters that the likelihood depends on, in tables that some event uses."""
        m = len(theta.startprob)
        families = [e.distribution for e in theta.emission]
        rows = min(rows, n_rows(theta.emission[0]))
        steps = min(steps, len(theta.transmat) if theta.transmat.ndim == 3 else 1)
        count = 0 if "start" in fixed else m - 1
        count += 0 if "transitions" in fixed else steps * m * (m - 1)
        if "emission" not in fixed:
            count += sum(rows * m * f.free_parameters() + f.shared_parameters() for f in families)
        return count
