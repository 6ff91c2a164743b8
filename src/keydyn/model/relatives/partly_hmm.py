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
from keydyn.model.relatives import sampling
from keydyn.model.relatives.contexts import Bins, Context, Contexts, NoContext, Past, learnt
from keydyn.model.relatives.lines import EachItsOwn, Lines
from keydyn.model.relatives.parameter_tables import ContextTables, Training, uniform_tables
from keydyn.model.relatives.relative import Relative
from keydyn.model.relatives.relative_files import restorable
from keydyn.model.theta.given import distribution, given_emissions


@restorable
@dataclass(eq=False, repr=False)
class PartlyHMM(Relative):
    """Second-order model, the first state hidden, the second observable.

    Hidden state and emission at n both depend on the observation at n − 1, besides the hidden state:
    P(z_n | z_{n−1}, x_{n−1}) and P(x_n | z_n, x_{n−1}). Where a value is missing, x_{n−1} is the last one
    seen. A sequence's first event has none; u is zero there, or the bin is "none yet". `events` is ignored.
    With zero slopes, or one bin, it is the HMM.

    Parameters
    ----------
    n_states : number of hidden states M
    emission : a family's name or a `Family`, or one per feature; "linear" needs a location-scale family
    previous : how x_{n−1} enters. "linear": with u its deviation from the average on the family's own scale
        (ln x for a log-normal), each feature's location is loc + slope · its own u, and the transitions are
        multinomial-logistic in the u of `previous_feature`. A whole number: that many quantile bins of that
        feature, edges learnt in fitting; or `Bins(edges, feature)`
    previous_feature : see there
    fixed : which of "start", "transitions", "emission", "slopes" are not estimated; slopes start at zero
    spread, tol, max_iter : as in `POHMM`, like all that are not listed here

    Attributes
    ----------
    startprob_ : (M,)
    transmat_ : linear, (M, M) after an average value; in bins, (S, M, M) as in `ContextHMM`
    emission_ : linear, parameters (1, M) after an average value; in bins, (R, M)
    emission_slopes_ : (K, M) change of location with u; linear only
    transition_slopes_ : (M, M) change with u of the log-odds of going to j instead of staying; linear only
    centre_ : (K,) the average value on the family's scale, where u = 0; linear only
    previous_ : the `Bins`; in bins only
    log_likelihood_, history_, n_iter_ : as in `POHMM`, like all that are not listed here

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import PartlyHMM
    >>> x = np.random.default_rng(0).lognormal(5.0, 0.4, (300, 1))
    >>> model = PartlyHMM(previous="linear").fit(x)
    >>> model.emission_slopes_.shape, model.transition_slopes_.shape
    ((1, 2), (2, 2))
    """

    _further_parts = ("slopes",)

    previous: Any = "linear"
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
        previous: Bins | None = None,
        **parameters: Any,
    ) -> Self:
        """A fitted model from its parameters, states in the order given.

        With slopes (K, M) and (M, M) and a `centre` (K,) it is linear, `transmat` (M, M) and the arrays in
        `emission` (1, M); all three are zero if not given. With `previous`, a `Bins`, `transmat` is
        (S, M, M) and the arrays (R, M), one row per name of the bins. `emission` is a list of
        `(family, loc, scale)` or `(family, {name: array})`.
        """
        if not (previous is None or isinstance(previous, (Bins, NoContext))):
            raise ValueError(f"previous must be a Bins, or None for a linear model, not {previous!r}")
        start = distribution("startprob", startprob, (None,))
        m, rows = len(start), 1 if previous is None else previous.n_tables
        emissions = given_emissions(emission, (rows, m))
        n_features = len(emissions)
        if previous is not None:
            if not (emission_slopes is None and transition_slopes is None and centre is None):
                raise ValueError("a model in bins has no slopes and no centre")
            steps = distribution("transmat", transmat, (rows, m, m))
            tables = ContextTables(start, steps, emissions)
            return cls._given(tables, (previous, previous), {"previous": previous}, parameters)
        theta = Lines(
            start,
            distribution("transmat", transmat, (m, m)),
            emissions,
            _finite("emission_slopes", emission_slopes, (n_features, m)),
            _finite("transition_slopes", transition_slopes, (m, m)),
            _finite("centre", centre, (n_features,)),
            parameters.get("previous_feature", 0),
        )
        return cls._given(theta, (EachItsOwn(), EachItsOwn()), {"previous": "linear"}, parameters)

    @property
    def emission_slopes_(self) -> Floats:
        return self._lines().emission_slopes

    @property
    def transition_slopes_(self) -> Floats:
        return self._lines().transition_slopes

    @property
    def centre_(self) -> Floats:
        return self._lines().centre

    @property
    def previous_(self) -> Context:
        if isinstance(self._theta, Lines):
            raise AttributeError("a linear model has no bins")
        return self._contexts[0]

    def sample(
        self, n_events: int = 100, events: Any = None, random_state: Any = None, *, lengths: Given = None
    ) -> tuple[Floats, Types, Integers]:
        """Draw `X` (N, K), event types (N,), which are all one, and hidden states (N,)."""
        known = self._known()
        offsets = to_draw(known.n_features, n_events, events, lengths).offsets
        generator = generator_of(random_state)
        if isinstance(known.theta, Lines):
            X, states = known.theta.drawn(offsets, generator)
        else:
            X, states = sampling.draw_binned(known.theta, known.contexts, offsets, generator)
        return X, np.full(len(X), SINGLE_TYPE), states

    def _lines(self) -> Lines:
        theta = self._theta
        if not isinstance(theta, Lines):
            raise AttributeError("a model in bins has no slopes; its tables are transmat_ and emission_")
        return theta

    def _settings(self, n_features: int) -> Settings:
        given = self.previous
        if not (
            (isinstance(given, str) and given == "linear")
            or isinstance(given, (Bins, NoContext))
            or (is_whole(given) and given >= 1)
        ):
            raise ValueError(f"previous must be 'linear', a number of bins or a Bins, not {given!r}")
        feature = given.feature if isinstance(given, Bins) else self.previous_feature
        if not is_whole(feature) or not 0 <= feature < n_features:
            raise ValueError(
                f"previous_feature must be the number of a feature, 0 to {n_features - 1}, not {feature!r}"
            )
        return super()._settings(n_features)

    def _learn_contexts(self, past: Past, X: Floats, event_weights: Floats) -> Contexts:
        if isinstance(self.previous, str):
            return EachItsOwn(), EachItsOwn()
        bins = learnt(self.previous, past, X, event_weights, int(self.previous_feature))
        return bins, bins

    def _start(
        self, evidence: Training, contexts: Contexts, settings: Settings, jitter: np.random.Generator | None
    ) -> ContextTables:
        tables = uniform_tables(evidence, contexts[0].n_rows, contexts[1].n_rows, settings, jitter)
        if not isinstance(self.previous, str):
            return tables
        for k, e in enumerate(tables.emission):
            if not e.distribution.location_scale or of_working_values(e.distribution).on_log_scale:
                raise ValueError(
                    f"feature {k}: a {e.family} emission has no location that could be a line in the value "
                    "before; choose a location-scale family, or bins (previous=3)"
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
        if isinstance(theta, Lines) and "slopes" not in fixed:
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
