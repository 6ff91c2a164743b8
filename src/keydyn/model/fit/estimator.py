"""`fit`, the fitted attributes of a POHMM, and the checks of its input."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NoReturn, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from keydyn.arrays import Floats, Given, Integers
from keydyn.model.data import vocabulary
from keydyn.model.data.fit_settings import FitSettings, check_settings
from keydyn.model.data.input_forms import check_size, refuse_lengths_as_y
from keydyn.model.data.sequences import Sequences, as_sequences, check_weights
from keydyn.model.data.vocabulary import Types
from keydyn.model.families.family import Emission, Family, families_of, not_a_value
from keydyn.model.fit.batch import Batch
from keydyn.model.fit.fits import fit_from_starts, fit_further
from keydyn.model.fit.result import FitReport, FitResult, n_parameters
from keydyn.model.fit.threads import learning, parameter_names
from keydyn.model.theta.marginals import joint_transmat, normalised, stationary_distribution
from keydyn.model.theta.parameters import Marginal, Parameters


@dataclass(frozen=True, eq=False)
class ModelState:
    """The fitted state of a POHMM, learnt or given; never changed.

    Attributes
    ----------
    result : θ, and the report of the fit that found it
    n_features : K; feature_names : the names in the input, or None
    closed : whether the vocabulary was given and does not grow
    totals_from_fit : whether the running totals, `result.statistics`, come from a fit
    init_results : the result of every start, after a fit
    """

    result: FitResult
    n_features: int
    feature_names: tuple[str, ...] | None = None
    closed: bool = False
    totals_from_fit: bool = False
    init_results: list[FitResult] | None = None

    @classmethod
    def of(cls, parameters: Parameters) -> ModelState:
        """The state of a model whose parameters are given."""
        return cls(FitResult.of(parameters), len(parameters.families))

    @property
    def parameters(self) -> Parameters:
        return self.result.parameters

    @property
    def n_parameters(self) -> tuple[int, int]:
        """The number of free parameters that the likelihood depends on, and of all."""
        return self.result.n_parameters or n_parameters(self.parameters, None, ())


@dataclass(eq=False, repr=False)
class Estimator(FitReport):
    """The constructor, `fit` and the fitted attributes of a `POHMM`, which documents them."""

    n_states: int = 2
    emission: str | Family | Sequence[str | Family] = "lognormal"
    smoothing: Any = "frequency"
    spread: float = 2.0
    tol: float = 1e-6
    max_iter: int = 1000
    _: KW_ONLY
    n_init: int = 1
    random_state: Any = None
    warm_start: bool = False
    fixed: Sequence[str] = ()
    marginals: str = "printed"
    min_scale: float | str = "auto"
    handle_unknown: str = "marginal"
    order_states: bool = True
    leading_feature: int = 0
    density_floor: float | None = None
    count_floor: float = 0.0
    spread_features: str = "all"
    spread_scale: str = "type"
    start_estimate: str = "sequence_start"
    transition_weights: str = "proper"
    verbose: int = 0
    callback: Any = None

    def fit(
        self, X: Any, y: Any = None, *, events: Any = None, lengths: Given = None, sample_weight: Given = None
    ) -> Self:
        """Estimate the parameters (Algorithm 1).

        `X` is a flat (N, K) array with `lengths`, a list of (n_i, K) arrays, or a `Sequences`. `events` has
        the same form, with None or NaN where an event has no type. `sample_weight` has one entry per
        sequence; a weight of k is equivalent to k copies. `y` is ignored.
        """
        refuse_lengths_as_y(X, y, lengths)
        result = self._estimate(X, events, lengths, sample_weight)._state.result
        if result.stop_reason == "max_iter" and result.history is not None:
            gain = (result.log_likelihood or 0.0) - result.history[-1]
            warnings.warn(
                f"not converged after max_iter={self.max_iter} iterations (last gain {gain:.3g}, "
                f"tol={self.tol:g}): raise max_iter or tol, or check that the data support "
                f"{self.n_states} states",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _estimate(self, X: Any, events: Any, lengths: Given, sample_weight: Given) -> Self:
        """Do the work of `fit`, without its warning about convergence."""
        with learning(self):
            state = self._known() if self.warm_start and self.__sklearn_is_fitted__() else None
            sequences, families = self._checked(X, events, lengths, state)
            settings = self._settings(sequences.n_features)
            if state is None:
                batch = training_data(sequences, families, sample_weight)
                results = fit_from_starts(batch, settings, self.random_state)
            else:
                current = state.parameters
                check_unchanged(current, settings, families_of(self.emission, sequences.n_features))
                batch = training_data(sequences, families, sample_weight, current.event_types)
                results = fit_further(batch, settings, current)
            self._become(sequences, results, state)
        return self

    def _become(
        self, sequences: Sequences, results: list[FitResult], before: ModelState | None = None
    ) -> None:
        """Take the state of the best of finished fits; a warm start keeps the feature names it had before."""
        best = (
            max(results, key=lambda result: result.log_likelihood or 0.0) if len(results) > 1 else results[0]
        )
        names = sequences.feature_names if before is None else before.feature_names
        self._state = ModelState(best, sequences.n_features, names, False, True, results)

    @property
    def event_types_(self) -> Types:
        return self._parameters.event_types

    @property
    def event_pairs_(self) -> Integers:
        """The observed pairs of successive types, (P, 2), as indices into `event_types_`, sorted."""
        return self._parameters.pairs.copy()

    @property
    def startprob_(self) -> Floats:
        return self._parameters.startprob

    @property
    def transmat_(self) -> Floats:
        """The transition matrices of all m² pairs, built on access; the model keeps observed pairs only."""
        return _dense_transmat(self._parameters)

    @property
    def emission_(self) -> list[Emission]:
        return self._parameters.emission

    @property
    def event_startprob_(self) -> Floats:
        return self._parameters.chain.known()[0]

    @property
    def event_transmat_(self) -> Floats:
        return _dense_event_transmat(self._parameters)

    @property
    def event_prob_(self) -> Floats:
        theta = self._parameters
        if np.isnan(theta.chain.prob).any():
            raise ValueError("the event chain has no unique stationary distribution")
        return theta.chain.prob

    @property
    def stationary_(self) -> Floats:
        result = self._known().result
        if result.stationary is not None:
            return result.stationary
        theta = result.parameters
        joint = joint_transmat(_dense_transmat(theta), _dense_event_transmat(theta))
        together = stationary_distribution(joint)
        if together is None:
            raise ValueError("the chain of event types and states has no unique stationary distribution")
        return normalised(together.reshape(theta.n_types, theta.n_states))

    @property
    def marginal_(self) -> Marginal:
        return self._parameters.known_marginal()

    @property
    def init_results_(self) -> list[FitResult]:
        return self._found(self._known().init_results)

    @property
    def n_parameters_(self) -> int:
        return self._known().n_parameters[0]

    @property
    def n_parameters_full_(self) -> int:
        return self._known().n_parameters[1]

    def transmat_between(self, earlier: Any, later: Any) -> Floats:
        """a[i, j | ψ, ω] of B pairs of event types, (B, M, M), without the table of all pairs.

        `earlier` and `later` are B event types each; for a missing or unknown type the marginal is used.
        """
        theta = self._parameters
        return theta.transmat_of(*_pairs(theta, earlier, later))

    @property
    def _parameters(self) -> Parameters:
        return self._known().parameters

    def _known(self) -> ModelState:
        state: ModelState = super()._known()
        return state

    def _settings(self, n_features: int) -> FitSettings:
        kind: Any = type(self)
        return check_settings({name: getattr(self, name) for name in parameter_names(kind)}, n_features)

    def _as_sequences(self, X: Any, events: Any, lengths: Given) -> Sequences:
        return as_sequences(X, events, lengths)

    def _checked(
        self, X: Any, events: Any, lengths: Given, state: ModelState | None
    ) -> tuple[Sequences, tuple[Family, ...]]:
        """Checked sequences, and the family of each feature, from the state or else from `emission`."""
        sequences = self._as_sequences(X, events, lengths)
        if state is None:
            families = families_of(self.emission, sequences.n_features)
        else:
            self._compare_features(sequences, state.n_features, state.feature_names)
            families = state.parameters.families
        check_domain(sequences, families)
        return sequences, families

    def _encoded(
        self, state: ModelState, X: Any, events: Any, lengths: Given, reject: bool | None = None
    ) -> tuple[Sequences, Integers]:
        """Checked sequences with codes into a model's event types, m where unknown.

        `reject` says whether types that the model does not know are refused; None leaves it to
        `handle_unknown`.
        """
        sequences, _ = self._checked(X, events, lengths, state)
        codes, unseen = vocabulary.find(sequences.codes, sequences.event_types, state.parameters.event_types)
        if (self.handle_unknown == "error" if reject is None else reject) and unseen.any():
            refuse_unseen(sequences, int(np.argmax(unseen)))
        return sequences, codes


def refuse_unseen(sequences: Sequences, row: int) -> NoReturn:
    """Raise `ValueError` naming the event whose type the model does not know."""
    label = sequences.event_types[sequences.codes[row]].item()
    raise ValueError(f"{sequences.place(row)}: event type {label!r} was not seen in fitting")


def _dense_transmat(theta: Parameters) -> Floats:
    instead = "transmat_between(earlier, later) gives some of its pairs"
    check_size("transmat_", (theta.n_types * theta.n_states) ** 2, instead)
    return theta.dense_transmat()


def _dense_event_transmat(theta: Parameters) -> Floats:
    check_size("event_transmat_", theta.n_types**2, "event_pairs_ has the pairs that occurred")
    return theta.dense_event_transmat()


def _pairs(theta: Parameters, earlier: Any, later: Any) -> tuple[Integers, Integers]:
    codes = []
    for given in (earlier, later):
        found, types = vocabulary.encode(vocabulary.as_labels(given))
        codes.append(vocabulary.find(found, types, theta.event_types, theta.type_places)[0])
    if len(codes[0]) != len(codes[1]):
        raise ValueError(f"there are {len(codes[0])} earlier and {len(codes[1])} later event types")
    return codes[0], codes[1]


def training_data(
    sequences: Sequences,
    families: tuple[Family, ...],
    sample_weight: Given,
    known: Types | None = None,
    closed: bool = False,
) -> Batch:
    """The training data of one model; its vocabulary has the known types, then new ones unless it is closed.

    Sequences of weight zero are left out, as if they were not there. Data without any event type have a
    single one.
    """
    sequences, weights = weighted(sequences, sample_weight)
    if known is not None:
        seen = sequences.event_types[np.unique(sequences.codes[sequences.codes >= 0])]
        if vocabulary.is_single(known) and len(seen):
            raise ValueError(
                "the model was fitted without event types and cannot learn them now: fit it again"
            )
        known = known if closed else vocabulary.union(known, seen)
    check_values_present(sequences)
    return Batch.of([sequences], [weights], families, known)


def weighted(sequences: Sequences, sample_weight: Given) -> tuple[Sequences, Floats]:
    """Sequences and their weights, without those of weight zero."""
    if sample_weight is None:
        return sequences, np.ones(len(sequences))
    weights = check_weights(sample_weight, len(sequences))
    if (weights == 0).any():
        return sequences[weights > 0], weights[weights > 0]
    return sequences, weights


def check_unchanged(current: Parameters, settings: FitSettings, families: tuple[Family, ...]) -> None:
    """Raise `ValueError` if a model would learn further with other states or families than it has."""
    if settings.n_states != current.n_states:
        raise ValueError(f"the model has {current.n_states} states, but n_states is {settings.n_states}")
    for k, (family, wanted) in enumerate(zip(current.families, families, strict=True)):
        if family != wanted:
            raise ValueError(f"the model has {family} for feature {k}, but emission says {wanted}")


def check_domain(sequences: Sequences, families: tuple[Family, ...]) -> None:
    """Raise `ValueError` naming the first value that its feature's family cannot emit."""
    least, largest = sequences.extremes.tolist()
    for k, family in enumerate(families):
        if type(family).outside is Family.outside and not (
            least[k] < family.lowest or largest[k] > family.highest
        ):
            continue
        outside = family.outside(sequences.X[:, k])
        if outside.any():
            row = int(np.argmax(outside))
            raise not_a_value(sequences.place(row, k), sequences.X[row, k], family)


def check_values(batch: Batch) -> None:
    """Raise `ValueError` if a family cannot emit some value in the batch, or a column has no value at all."""
    for k, family in enumerate(batch.families):
        if family.outside(batch.values[:, k]).any():
            raise ValueError("there are values that a family cannot emit")
    if not (batch.overall[0].weight > 0.0).all():
        raise ValueError("there are columns without a value")


def check_values_present(sequences: Sequences) -> None:
    """Raise `ValueError` naming a column without a single value."""
    nothing = np.isnan(sequences.extremes[0])
    if nothing.any():
        k = int(np.argmax(nothing))
        name = f" ({sequences.feature_names[k]!r})" if sequences.feature_names else ""
        raise ValueError(f"column {k}{name} has no value at all: every entry is NaN")
