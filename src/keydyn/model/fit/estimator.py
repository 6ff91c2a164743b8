"""What a fitted POHMM knows of itself: its parameters as attributes, and how it takes sequences in."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from keydyn.arrays import Floats, Integers
from keydyn.model.data import vocabulary
from keydyn.model.data.input_forms import refuse_lengths_as_y
from keydyn.model.data.numbers import check_size
from keydyn.model.data.sequences import Sequences, as_sequences
from keydyn.model.data.settings import Settings, check_settings, checked_floor
from keydyn.model.data.vocabulary import Types
from keydyn.model.families.family import Emission, Family, families_of
from keydyn.model.fit import training
from keydyn.model.fit.one_state import OneState, parameter_names
from keydyn.model.fit.result import Estimates, FitResult, n_parameters
from keydyn.model.fit.statistics import Statistics
from keydyn.model.theta import lattice as lattices
from keydyn.model.theta.lattice import EventIndex, Lattice
from keydyn.model.theta.marginals import joint_transmat, normalised, stationary_distribution
from keydyn.model.theta.parameters import Marginal, Parameters


class Fitted(OneState):
    """The fitted attributes of `POHMM`, which describes them, and the door for sequences."""

    # scikit-learn's
    get_params: Callable[..., dict[str, Any]]

    emission: Any
    density_floor: float | None
    handle_unknown: str

    # What was learnt or given, or the fit that found it.
    _source: Estimates | FitResult
    # Whether the running totals are those of a fit.
    _totals_from_fit: bool = False
    # Whether the vocabulary was given and stays as it is.
    _closed: bool = False

    log_likelihood_: float
    history_: Floats
    n_iter_: int
    stop_reason_: str
    n_features_in_: int

    @property
    def event_types_(self) -> Types:
        return self._parameters.event_types

    @property
    def event_pairs_(self) -> Integers:
        """(P, 2) the pairs of a type and the next that occurred, as places in `event_types_`, sorted."""
        return self._parameters.pairs.copy()

    @property
    def startprob_(self) -> Floats:
        return self._parameters.startprob

    @property
    def transmat_(self) -> Floats:
        """Built when asked for: it has m² entries, the model only the observed pairs."""
        theta = self._parameters
        instead = "transmat_between(earlier, later) gives some of its pairs"
        check_size("transmat_", (theta.n_types * theta.n_states) ** 2, instead)
        return theta.dense_transmat()

    @property
    def emission_(self) -> list[Emission]:
        return self._parameters.emission

    @property
    def event_startprob_(self) -> Floats:
        return self._parameters.chain.known()[0]

    @property
    def event_transmat_(self) -> Floats:
        theta = self._parameters
        instead = "event_prob_between(earlier, later) gives some of its pairs"
        check_size("event_transmat_", theta.n_types**2, instead)
        return theta.dense_event_transmat()

    @property
    def event_prob_(self) -> Floats:
        theta = self._parameters
        if np.isnan(theta.chain.prob).any():
            raise ValueError("the event chain has no unique stationary distribution")
        return theta.chain.prob

    @property
    def stationary_(self) -> Floats:
        theta = self._parameters
        if self._stationary is not None:
            return self._stationary
        joint = joint_transmat(self.transmat_, self.event_transmat_)
        together = stationary_distribution(joint)
        if together is None:
            raise ValueError("the chain of event types and states has no unique stationary distribution")
        return normalised(together.reshape(theta.n_types, theta.n_states))

    def transmat_between(self, earlier: Any, later: Any) -> Floats:
        """a[i, j | ψ, ω] of some pairs of event types, (B, M, M), without the table of all pairs.

        `earlier` and `later` are B event types each; one that is missing or unknown stands for any.
        """
        return self._parameters.transmat_of(*self._pairs(earlier, later))

    def event_prob_between(self, earlier: Any, later: Any) -> Floats:
        """a[ψ, ω] of some pairs of known event types, (B,), without the table of all pairs."""
        theta = self._parameters
        before, after = self._pairs(earlier, later)
        if (np.maximum(before, after) == theta.n_types).any():
            raise ValueError("these must be event types that the model knows")
        _, pair_prob = theta.chain.known()
        rows = theta.find_pairs(before * theta.n_types + after)
        prob = np.where(rows >= 0, np.append(pair_prob, 0.0)[rows], 0.0)
        prob[np.isin(before, theta.chain.dead_ends)] = 1.0 / theta.n_types
        return prob

    def _pairs(self, earlier: Any, later: Any) -> tuple[Integers, Integers]:
        theta, codes = self._parameters, []
        for given in (earlier, later):
            found, types = vocabulary.encode(vocabulary.as_labels(given))
            codes.append(vocabulary.find(found, types, theta.event_types, theta.type_places)[0])
        if len(codes[0]) != len(codes[1]):
            raise ValueError(f"there are {len(codes[0])} earlier and {len(codes[1])} later event types")
        return codes[0], codes[1]

    @property
    def marginal_(self) -> Marginal:
        return self._parameters.known_marginal()

    @property
    def converged_(self) -> bool:
        """Whether the last iteration of `fit` gained less than `tol` without falling."""
        return self.stop_reason_ == "tol"

    @property
    def n_parameters_(self) -> int:
        return self._n_parameters()[0]

    @property
    def n_parameters_full_(self) -> int:
        return self._n_parameters()[1]

    @property
    def scale_floored_(self) -> list[NDArray[np.bool_]]:
        floored = self._learnt.floored
        if floored is None:
            raise AttributeError("these parameters were given, so no scale floor acted on them")
        return floored

    @property
    def _learnt(self) -> Estimates:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"this {type(self).__name__} is not fitted yet")
        return self._source.estimates if isinstance(self._source, FitResult) else self._source

    @property
    def _parameters(self) -> Parameters:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"this {type(self).__name__} is not fitted yet")
        return self._source.parameters

    @property
    def _totals(self) -> Statistics | None:
        """Statistics of the data learnt from so far."""
        return self._learnt.statistics if self.__sklearn_is_fitted__() else None

    @property
    def _stationary(self) -> Floats | None:
        return self._learnt.stationary

    def _n_parameters(self) -> tuple[int, int]:
        return self._learnt.n_parameters or n_parameters(self._parameters, None, ())

    @property
    def _floor(self) -> float | None:
        return checked_floor(self.density_floor)

    def __sklearn_is_fitted__(self) -> bool:
        return "_source" in vars(self)

    def _check_fitted(self) -> None:
        """scikit-learn's error if the model is not fitted; its check takes as long as a short score."""
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)

    def _settings(self, n_features: int) -> Settings:
        kind: Any = type(self)
        return check_settings({name: getattr(self, name) for name in parameter_names(kind)}, n_features)

    def _as_sequences(self, X: Any, events: Any, lengths: ArrayLike | None) -> Sequences:
        return as_sequences(X, events, lengths)

    def _take(
        self, X: Any, events: Any, lengths: ArrayLike | None, *, new: bool
    ) -> tuple[Sequences, tuple[Family, ...]]:
        """Checked sequences and each feature's family, for a `new` fit or for the model as it is."""
        sequences = self._as_sequences(X, events, lengths)
        if new:
            families = families_of(self.emission, sequences.n_features)
        else:
            self._compare_features(sequences, reset=False)
            families = self._parameters.families
        training.check_domain(sequences, families)
        return sequences, families

    def _compare_features(self, sequences: Sequences, *, reset: bool) -> None:
        """scikit-learn's check of the features' number and names, or, with `reset`, their being noted."""
        names = sequences.feature_names
        if reset and (names is not None or not hasattr(self, "feature_names_in_")):
            # The same as below, without its checks of what there is nothing to check of.
            self.n_features_in_ = sequences.n_features
            if names is not None:
                self.feature_names_in_ = np.array(names, dtype=object)
            return
        known = getattr(self, "feature_names_in_", None)
        if (
            not reset
            and self.n_features_in_ == sequences.n_features
            and (names is None if known is None else names == tuple(known))
        ):
            return
        nothing: Any = sequences.X[:0]
        if sequences.feature_names is not None:
            nothing = pd.DataFrame(nothing, columns=list(sequences.feature_names))
        validate_data(self, nothing, reset=reset, skip_check_array=True)

    def _encode(
        self, X: Any, events: Any, lengths: ArrayLike | None, reject_unknown: bool | None = None
    ) -> tuple[Sequences, Integers]:
        """Checked sequences with codes into this model's event types, m where unknown."""
        self._check_fitted()
        sequences, _ = self._take(X, events, lengths, new=False)
        codes, unseen = vocabulary.find(sequences.codes, sequences.event_types, self.event_types_)
        reject = self.handle_unknown == "error" if reject_unknown is None else reject_unknown
        if reject and unseen.any():
            self._refuse_unseen(sequences, int(np.argmax(unseen)))
        return sequences, codes

    def _refuse_unseen(self, sequences: Sequences, row: int) -> None:
        label = sequences.event_types[sequences.codes[row]].item()
        raise ValueError(f"{sequences.place(row)}: event type {label!r} was not seen in fitting")

    def _lattice(self, X: Any, events: Any, lengths: ArrayLike | None) -> Lattice:
        sequences, codes = self._encode(X, events, lengths)
        index = EventIndex.of(codes, sequences.offsets, self._parameters.n_types)
        return lattices.build(self._parameters, sequences.X, index, self._floor)

    def _take_given(self, parameters: Parameters) -> None:
        """Become the model of given parameters."""
        self._source, self._closed = Estimates(parameters), False
        self.n_features_in_ = len(parameters.emission)

    def _take_result(self, result: FitResult) -> None:
        """Become the model of a finished fit."""
        self._source, self._totals_from_fit, self._closed = result, True, False
        self.log_likelihood_ = result.log_likelihood
        self.history_ = result.history
        self.n_iter_ = len(result.history)
        self.stop_reason_ = result.stop_reason


class Estimation(Fitted):
    """What turns an estimator with parameters into a fitted one."""

    n_states: int
    n_init: int
    tol: float
    max_iter: int
    warm_start: bool
    random_state: Any
    verbose: int
    callback: Any

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        events: Any = None,
        lengths: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Estimate the parameters (Algorithm 1).

        `X` is a flat (N, K) array with `lengths`, a list of (n_i, K) arrays, or a `Sequences`; `events` has
        the same form, None or NaN where an event has no type. `sample_weight` has one entry per sequence; a
        weight of k is the same as k copies. `y` is ignored.
        """
        refuse_lengths_as_y(X, y, lengths)
        self._estimate(X, events, lengths, sample_weight)
        if self.stop_reason_ == "max_iter":
            gain = self.log_likelihood_ - self.history_[-1]
            warnings.warn(
                f"not converged after max_iter={self.max_iter} iterations (last gain {gain:.3g}, "
                f"tol={self.tol:g}): raise max_iter or tol, or check that the data support "
                f"{self.n_states} states",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _estimate(
        self, X: Any, events: Any, lengths: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> Self:
        """`fit` without a word on convergence."""
        begun = self.warm_start and self.__sklearn_is_fitted__()
        current = self._parameters if begun else None
        sequences, families = self._take(X, events, lengths, new=current is None)
        settings = self._settings(sequences.n_features)
        if current is None:
            batch = training.training_data(sequences, families, sample_weight)
            results = training.fit_from_starts(batch, settings, self.random_state)
        else:
            training.check_unchanged(current, settings, families_of(self.emission, sequences.n_features))
            batch = training.training_data(sequences, families, sample_weight, current.event_types)
            results = training.fit_further(batch, settings, current)
        return self._finish(sequences, results, max(results, key=lambda result: result.log_likelihood))

    def _finish(self, sequences: Sequences, results: list[FitResult], best: FitResult) -> Self:
        """Become the model of a finished fit."""
        if not (self.warm_start and self.__sklearn_is_fitted__()):
            self._compare_features(sequences, reset=True)
        self._take_result(best)
        self.init_results_ = results
        return self
