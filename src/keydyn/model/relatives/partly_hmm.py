"""The partly-HMM (Kobayashi and Haruyama, 1997)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from keydyn.arrays import Floats, Given, Integers
from keydyn.model.data.input_forms import as_numbers
from keydyn.model.data.sequences import to_draw
from keydyn.model.data.settings import Settings, generator_of, is_whole
from keydyn.model.data.vocabulary import SINGLE_TYPE, Types
from keydyn.model.families.location_scale import of_working_values
from keydyn.model.relatives.contexts import Contexts, Past
from keydyn.model.relatives.lines import EachItsOwn, Lines
from keydyn.model.relatives.parameter_tables import Training, uniform_tables
from keydyn.model.relatives.relative import Relative
from keydyn.model.relatives.relative_files import restorable
from keydyn.model.theta.given import distribution, given_emissions


@restorable
@dataclass(eq=False, repr=False)
class PartlyHMM(Relative):
    """Second-order model, the first state hidden, the second observable.

    Hidden state and emission at n both depend on the observation at n − 1, besides the hidden state:
    P(z_n | z_{n−1}, x_{n−1}) and P(x_n | z_n, x_{n−1}). With u the deviation of x_{n−1} from its average on
    the family's own scale (ln x for a log-normal), each feature's location is loc + slope · its own u, and
    the transitions are multinomial-logistic in the u of `previous_feature`. Where a value is missing, x_{n−1}
    is the last one seen; at a sequence's first event u is zero. `events` is ignored. With zero slopes it is
    the HMM. If x_{n−1} is to choose among tables instead, a `ContextHMM` with the same bins twice does that.

    Parameters
    ----------
    n_states : number of hidden states M
    emission : a location-scale family's name or a `Family`, or one per feature
    previous_feature : the feature whose value before the transitions depend on
    fixed : which of "start", "transitions", "emission", "slopes" are not estimated; slopes start at zero
    spread, tol, max_iter : as in `POHMM`, like all that are not listed here

    Attributes
    ----------
    startprob_ : (M,)
    transmat_ : (M, M) after an average value
    emission_ : parameters (1, M) after an average value
    emission_slopes_ : (K, M) change of location with u
    transition_slopes_ : (M, M) change with u of the log-odds of going to j instead of staying
    centre_ : (K,) the average value on the family's scale, where u = 0
    log_likelihood_, history_, n_iter_ : as in `POHMM`, like all that are not listed here

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import PartlyHMM
    >>> x = np.random.default_rng(0).lognormal(5.0, 0.4, (300, 1))
    >>> model = PartlyHMM().fit(x)
    >>> model.emission_slopes_.shape, model.transition_slopes_.shape
    ((1, 2), (2, 2))
    """

    _further_parts = ("slopes",)

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
        """A fitted model from its parameters, states in the order given.

        `transmat` is (M, M), `emission` a list of `(family, loc, scale)` or `(family, {name: array})` with
        arrays (1, M). Slopes are (K, M) and (M, M), `centre` is (K,); all three are zero if not given.
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

    def sample(
        self, n_events: int = 100, events: Any = None, random_state: Any = None, *, lengths: Given = None
    ) -> tuple[Floats, Types, Integers]:
        """Draw `X` (N, K), event types (N,), which are all one, and hidden states (N,)."""
        known = self._known()
        offsets = to_draw(known.n_features, n_events, events, lengths).offsets
        X, states = known.theta.drawn(offsets, generator_of(random_state))
        return X, np.full(len(X), SINGLE_TYPE), states

    def _settings(self, n_features: int) -> Settings:
        feature = self.previous_feature
        if not is_whole(feature) or not 0 <= feature < n_features:
            raise ValueError(
                f"previous_feature must be the number of a feature, 0 to {n_features - 1}, not {feature!r}"
            )
        return super()._settings(n_features)

    def _learn_contexts(self, past: Past, X: Floats, event_weights: Floats) -> Contexts:
        return EachItsOwn(), EachItsOwn()

    def _start(
        self, evidence: Training, contexts: Contexts, settings: Settings, jitter: np.random.Generator | None
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
            "slopes" not in self._fixed(),
        )

    def _count(self, theta: Any, rows: int, steps: int, fixed: tuple[str, ...]) -> int:
        count = super()._count(theta, rows, steps, fixed)
        if "slopes" not in fixed:
            m, n_features = len(theta.startprob), len(theta.emission)
            count += 0 if "emission" in fixed else n_features * m
            count += 0 if "transitions" in fixed else m * (m - 1)
        return count


def _finite(name: str, values: Given, shape: tuple[int, ...]) -> Floats:
    """Given numbers of this shape, zero if there are none."""
    if values is None:
        return np.zeros(shape)
    array = as_numbers(name, values)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers of shape {shape}, not {array!r}")
    return array
