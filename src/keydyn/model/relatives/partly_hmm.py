"""The partly-HMM (Kobayashi and Haruyama, 1997), whose parameters depend on the previous value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from keydyn.arrays import Floats, Given, Integers
from keydyn.model.data.fit_settings import FitSettings, is_whole
from keydyn.model.data.input_forms import as_numbers
from keydyn.model.families.family import Emission
from keydyn.model.families.location_scale import of_working_values
from keydyn.model.relatives.contexts import Contexts, NoContext, Past
from keydyn.model.relatives.parameter_tables import (
    ContextTables,
    Floored,
    Training,
    start_update,
    uniform_tables,
)
from keydyn.model.relatives.regression import (
    LineLimits,
    SeenFeature,
    line_update,
    tilted,
    update_logits,
)
from keydyn.model.relatives.relative import Relative
from keydyn.model.theta.given import distribution, given_emissions
from keydyn.model.theta.lattice import StatePosterior

# Larger slopes could make a number infinite.
STEEPEST = 1e110


@dataclass(frozen=True)
class EachItsOwn(NoContext):
    """The context in which every event has tables of its own, computed from the previous value."""

    def tables(self, past: Past) -> Integers:
        return np.arange(len(past.last), dtype=np.int64)

    def names(self) -> list[str]:
        return ["average"]


@dataclass(frozen=True)
class Lines(ContextTables):
    """θ as a function of u, the deviation of the last value from the centre, on the working scale.

    Attributes
    ----------
    startprob : (M,); transmat : (M, M) a[i, j] at u = 0; emission : parameters (1, M) at u = 0
    emission_slopes : (K, M) b: the location of feature k is loc + b[k, j] u[k]
    transition_slopes : (M, M) c, zero on the diagonal: a[i, j | u] ∝ a[i, j] exp(c[i, j] u)
    centre : (K,) the average value of each feature on its working scale
    feature : the feature on whose u the transitions depend
    """

    emission_slopes: Floats
    transition_slopes: Floats
    centre: Floats
    feature: int

    def __post_init__(self) -> None:
        """Check that u times a slope is finite for any previous value."""
        for name in ("emission_slopes", "transition_slopes", "centre"):
            if not (np.abs(getattr(self, name)) <= STEEPEST).all():
                raise ValueError(f"{name} must be between -{STEEPEST:g} and {STEEPEST:g}")

    def deviations(self, last: Floats) -> Floats:
        """u of each event and feature, (N, K); zero if no value was seen yet."""
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
        self, evidence: Training, posterior: StatePosterior, settings: FitSettings
    ) -> tuple[Self, Floored]:
        """The M-step: least squares for the lines, Newton's method for the logits."""
        weighted, u = posterior.states, self._training_deviations(evidence)
        startprob, transmat, steepness = self.startprob, self.transmat, self.transition_slopes
        if "start" not in settings.fixed:
            startprob = start_update(weighted, evidence, settings)
        if "transitions" not in settings.fixed:
            deviation, expected, least = u[self.feature], posterior.transitions, settings.count_floor
            transmat, steepness = transmat.copy(), steepness.copy()
            update_logits(transmat, steepness, deviation, expected, least)
        emission, slopes = list(self.emission), self.emission_slopes.copy()
        floored = [np.zeros((1, len(startprob)), dtype=bool) for _ in emission]
        if "emission" not in settings.fixed:
            for k, e in enumerate(emission):
                limits = LineLimits(evidence.least_scale(k, settings), settings.count_floor)
                seen = SeenFeature(evidence.working[k], u[k])
                emission[k], slopes[k], floored[k] = line_update(e, slopes[k], seen, weighted, limits)
        slopes_of: Any = {"emission_slopes": slopes, "transition_slopes": steepness}
        return replace(self, startprob=startprob, transmat=transmat, emission=emission, **slopes_of), floored

    def pooled_emission(self, evidence: Training, posterior: StatePosterior) -> list[Emission]:
        """The emission after an average previous value."""
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


@dataclass(eq=False, repr=False)
class PartlyHMM(Relative):
    """Second-order model, the first state hidden, the second observable.

    The hidden state and the emission at n both depend on the observation at n − 1 as well:
    P(z_n | z_{n−1}, x_{n−1}) and P(x_n | z_n, x_{n−1}). Let u be the deviation of x_{n−1} from its average,
    on the family's own scale (ln x for a log-normal). The location of each feature is loc + slope · its own
    u, and the transitions are multinomial-logistic in the u of `previous_feature`. If the value is missing,
    x_{n−1} is the last one seen; at the first event of a sequence u is zero. With zero slopes the model is
    the HMM. `events` is ignored. For x_{n−1} to choose among tables instead, use a `ContextHMM` with the same
    bins for both contexts.

    Parameters
    ----------
    n_states : number of hidden states M
    emission : a location-scale family's name or a `Family`, or a list with one per feature
    previous_feature : the feature on whose previous value the transitions depend
    spread, tol, max_iter : as in `POHMM`, as are all others

    Attributes
    ----------
    startprob_ : (M,)
    transmat_ : (M, M) transitions after an average value
    emission_ : parameters (1, M) after an average value
    emission_slopes_ : (K, M) change of the location with u
    transition_slopes_ : (M, M) change with u of the log-odds of going to j rather than staying
    centre_ : (K,) the average value on the family's scale, where u = 0
    log_likelihood_, history_, n_iter_ : as in `POHMM`, as are all others

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import PartlyHMM
    >>> x = np.random.default_rng(0).lognormal(5.0, 0.4, (300, 1))
    >>> model = PartlyHMM().fit(x)
    >>> model.emission_slopes_.shape, model.transition_slopes_.shape
    ((1, 2), (2, 2))
    """

    _: KW_ONLY
    previous_feature: int = 0

    @classmethod
    def from_parameters(
        cls,
        startprob: ArrayLike,
        transmat: ArrayLike,
        emission: Sequence[Any],
        *,
        emission_slopes: Given = None,
        transition_slopes: Given = None,
        centre: Given = None,
        **parameters: Any,
    ) -> Self:
        """A fitted model with these parameters; states keep the given order.

        `transmat` is (M, M), `emission` a list of `(family, loc, scale)` or `(family, {name: array})` with
        arrays (1, M). Slopes are (K, M) and (M, M), `centre` is (K,); all three are zero by default.
        """
        start = distribution("startprob", startprob, (None,))
        m = len(start)
        emissions = given_emissions(emission, (1, m))
        theta = Lines(
            start,
            distribution("transmat", transmat, (m, m)),
            emissions,
            _finite("emission_slopes", emission_slopes, (len(emissions), m)),
            _finite("transition_slopes", transition_slopes, (m, m)),
            _finite("centre", centre, (len(emissions),)),
            parameters.get("previous_feature", 0),
        )
        return cls._given(theta, (EachItsOwn(), EachItsOwn()), {}, parameters)

    @property
    def emission_slopes_(self) -> Floats:
        return np.asarray(self._theta.emission_slopes)

    @property
    def transition_slopes_(self) -> Floats:
        return np.asarray(self._theta.transition_slopes)

    @property
    def centre_(self) -> Floats:
        return np.asarray(self._theta.centre)

    def _settings(self, n_features: int) -> FitSettings:
        feature = self.previous_feature
        if not is_whole(feature) or not 0 <= feature < n_features:
            raise ValueError(
                f"previous_feature must be the number of a feature, 0 to {n_features - 1}, not {feature!r}"
            )
        return super()._settings(n_features)

    def _learn_contexts(self, past: Past, X: Floats, event_weights: Floats) -> Contexts:
        return EachItsOwn(), EachItsOwn()

    def _start(
        self,
        evidence: Training,
        contexts: Contexts,
        settings: FitSettings,
        jitter: np.random.Generator | None,
    ) -> Lines:
        tables = uniform_tables(evidence, 1, 1, settings, jitter)
        for k, e in enumerate(tables.emission):
            if not e.distribution.location_scale or of_working_values(e.distribution).on_log_scale:
                raise ValueError(
                    f"feature {k}: a {e.family} emission has no location that could be a line in the value "
                    "before; choose a location-scale family, or a ContextHMM"
                )
        m, n_features = settings.n_states, len(tables.emission)
        return Lines(
            tables.startprob,
            tables.transmat[0],
            tables.emission,
            np.zeros((n_features, m)),
            np.zeros((m, m)),
            np.array([overall.mean[0] for overall, _ in evidence.overall]),
            int(self.previous_feature),
        )

    def _count(self, theta: Any, rows: int, steps: int, fixed: tuple[str, ...]) -> int:
        m, n_features = len(theta.startprob), len(theta.emission)
        slopes = 0 if "emission" in fixed else n_features * m
        slopes += 0 if "transitions" in fixed else m * (m - 1)
        return super()._count(theta, rows, steps, fixed) + slopes


def _finite(name: str, values: Given, shape: tuple[int, ...]) -> Floats:
    """The given numbers, checked to be finite and of this shape; zeros if None."""
    if values is None:
        return np.zeros(shape)
    array = as_numbers(name, values)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers of shape {shape}, not {array!r}")
    return array
