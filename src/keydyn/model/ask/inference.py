"""Likelihood and hidden states (Sections 3.2 and 3.3) for any model that can lay out a lattice."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from keydyn.arrays import Floats, Given, Integers
from keydyn.model.data.input_forms import refuse_lengths_as_y
from keydyn.model.data.sequences import Sequences, check_weights
from keydyn.model.engine.scores_and_states import Lattice
from keydyn.model.fit.result import FitReport
from keydyn.model.theta import lattice as lattices
from keydyn.model.theta.marginals import normalised


class Criterion(float):
    """A value of AIC or BIC that also tells whether it is approximate.

    The criteria assume maximum-likelihood estimates. With smoothed parameters or floored densities they are
    only approximate, and the value says so when printed.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import HMM
    >>> x = np.random.default_rng(0).lognormal(5.0, 0.4, (300, 1))
    >>> criterion = HMM(n_states=1).fit(x).bic(x)
    >>> criterion.approximate, criterion == float(criterion)
    (False, True)
    """

    approximate: bool

    def __new__(cls, value: float, approximate: bool = False) -> Criterion:
        made = super().__new__(cls, value)
        made.approximate = approximate
        return made

    def __repr__(self) -> str:
        return f"{float(self)!r}{' (approximate: smoothed or floored)' if self.approximate else ''}"

    __str__ = __repr__


class Inference(FitReport, ABC):
    """The queries of a fitted model. None of them changes it.

    `X` is a flat (N, K) array with `lengths`, a list of (n_i, K) arrays, or a `Sequences`; `events` has the
    same form. Results are flat arrays in input order.
    """

    @property
    @abstractmethod
    def n_parameters_(self) -> int:
        """The number of free parameters that the likelihood depends on."""

    @abstractmethod
    def _lattice(self, X: Any, events: Any, lengths: Given) -> Lattice:
        """The lattice of these sequences for the kernels, under the model's current state."""

    @abstractmethod
    def _as_sequences(self, X: Any, events: Any, lengths: Given) -> Sequences:
        """Any accepted form of input as sequences."""

    @abstractmethod
    def _approximate(self) -> bool:
        """Whether AIC and BIC are approximate, because parameters are not maximum-likelihood estimates."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        return tags

    def score(
        self, X: Any, y: Any = None, *, events: Any = None, lengths: Given = None, sample_weight: Given = None
    ) -> float:
        """The sum of ln P(x | Ω) over all sequences, weighted by `sample_weight` if given. `y` is ignored.

        Examples
        --------
        >>> bool(np.isclose(model.score(tau, events=keys), model.log_likelihood_))
        True
        """
        refuse_lengths_as_y(X, y, lengths)
        scores = self.score_sequences(X, events=events, lengths=lengths)
        if sample_weight is None:
            return float(scores.sum())
        weights = check_weights(sample_weight, len(scores))
        return float(weights[weights > 0] @ scores[weights > 0])

    def score_sequences(self, X: Any, *, events: Any = None, lengths: Given = None) -> Floats:
        """ln P(x | Ω), one per sequence; −inf for one that the model cannot produce."""
        lattice = self._lattice(X, events, lengths)
        return lattices.per_sequence(lattices.filtered(lattice)[1], lattice.offsets)

    def score_samples(self, X: Any, *, events: Any = None, lengths: Given = None) -> Floats:
        """ln P(x_n | x_1..n−1, Ω), one per event (Eq. 43, corrected); their sum is `score`."""
        return lattices.filtered(self._lattice(X, events, lengths))[1]

    def predict_proba(self, X: Any, *, events: Any = None, lengths: Given = None) -> Floats:
        """The probability of each state at each event given the whole sequence, γ (Eq. 10), (N, M).

        Examples
        --------
        >>> proba = model.predict_proba(tau, events=keys)
        >>> proba.shape, bool(np.allclose(proba.sum(axis=1), 1.0))
        ((460, 2), True)
        """
        lattice = self._lattice(X, events, lengths)
        posterior = lattices.posterior(lattice)
        lattices.check_posterior(posterior, lattice)
        # Rounding errors accumulate along a sequence; a certain state should have probability one.
        return normalised(posterior.states)

    def filter_proba(self, X: Any, *, events: Any = None, lengths: Given = None) -> Floats:
        """The probability of each state given the events up to and including this one, (N, M).

        Examples
        --------
        >>> causal = model.filter_proba(tau, events=keys)
        >>> bool(np.allclose(causal[-1], model.predict_proba(tau, events=keys)[-1]))  # nothing comes after
        True
        """
        lattice = self._lattice(X, events, lengths)
        probabilities, increments = lattices.filtered(lattice)
        lattices.check_possible(increments, lattice.offsets)
        return probabilities

    def predict(self, X: Any, *, events: Any = None, lengths: Given = None) -> Integers:
        """The most probable state at each event (Eq. 11). For the most probable *sequence* see `decode`.

        Examples
        --------
        >>> set(model.predict(tau, events=keys).tolist()) <= {0, 1}
        True
        """
        states: Integers = np.argmax(self.predict_proba(X, events=events, lengths=lengths), axis=1)
        return states

    def decode(self, X: Any, *, events: Any = None, lengths: Given = None) -> tuple[Floats, Integers]:
        """The most probable state sequences by Viterbi: ln P(x, z | Ω) of each, and the states (N,).

        Examples
        --------
        >>> log_probability, states = model.decode(tau, events=keys)
        >>> log_probability.shape, states.shape
        ((1,), (460,))
        """
        return lattices.most_probable(self._lattice(X, events, lengths))

    def aic(self, X: Any, *, events: Any = None, lengths: Given = None) -> Criterion:
        """Akaike's information criterion; lower is better."""
        own = self._as_it_is()
        score = own.score(X, events=events, lengths=lengths)
        return Criterion(2.0 * own.n_parameters_ - 2.0 * score, own._approximate())

    def bic(self, X: Any, *, events: Any = None, lengths: Given = None) -> Criterion:
        """Bayesian information criterion; lower is better. N counts events with a value.

        Examples
        --------
        >>> two, three = model, POHMM(n_states=3).fit(tau, events=keys)
        >>> two.bic(tau, events=keys) < three.bic(tau, events=keys)
        True
        """
        own = self._as_it_is()
        sequences = own._as_sequences(X, events, lengths)
        score = own.score(sequences)
        n_values = int(np.count_nonzero(~np.isnan(sequences.X).all(axis=1)))
        return Criterion(own.n_parameters_ * np.log(max(n_values, 1)) - 2.0 * score, own._approximate())
