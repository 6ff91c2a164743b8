"""The distribution of the next emission: a mixture over states, and over types if the next is unknown."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from keydyn.arrays import Floats, Integers
from keydyn.model.data.input_forms import as_numbers
from keydyn.model.families.family import Emission, not_a_value
from keydyn.model.theta.parameters import Parameters
from keydyn.short_repr import short_repr


@dataclass(frozen=True)
class NextEmission:
    """The distribution of the next emission after each of S sequences.

    Attributes
    ----------
    weights : (S, C) probabilities of the mixture's components
    emission : for each of the K features a family with parameters of shape (S, C) or (C,)
    density_floor : the density floor of the model, or None

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import HMM
    >>> x = np.random.default_rng(0).normal(100.0, 5.0, (300, 1))
    >>> after = HMM(n_states=1, emission="normal").fit(x).predict_next(x)
    >>> round(float(after.mean()[0, 0]), -1), float(after.cdf(after.quantile(0.9))[0, 0].round(6))
    (100.0, 0.9)
    """

    weights: Floats
    emission: list[Emission]
    density_floor: float | None = None

    __repr__ = short_repr

    def mean(self) -> Floats:
        """The expected value of each feature, (S, K); raises `ValueError` if a family has no finite mean."""
        columns = []
        for k, emission in enumerate(self.emission):
            means = emission.distribution.mean(emission.params)
            if not np.isfinite(means).all():
                raise ValueError(
                    f"feature {k}: a {emission.family} distribution has no finite mean here; "
                    "ask for the median, quantile(0.5)"
                )
            columns.append(np.sum(self.weights * means, axis=1))
        return np.stack(columns, axis=1)

    def cdf(self, x: ArrayLike) -> Floats:
        """P(X ≤ x) of each feature, (S, K); `x` is one number, one per feature, or (S, K)."""
        values = self._as_table(x)
        return np.stack([self._cdf(k, values[:, k]) for k in range(len(self.emission))], axis=1)

    def logpdf(self, x: ArrayLike) -> Floats:
        """The joint log-density of all features, (S,); a NaN in `x` leaves out its feature."""
        values = self._as_table(x)
        with np.errstate(divide="ignore"):
            total = np.log(self.weights)
        for k, emission in enumerate(self.emission):
            present = ~np.isnan(values[:, k])
            safe = np.where(present, values[:, k], 1.0)
            inside = ~emission.distribution.outside(safe)
            if not inside.all():
                s = int(np.argmin(inside))
                raise not_a_value(f"sequence {s}, column {k}", safe[s], emission.distribution)
            density = emission.distribution.log_density(safe[:, None], emission.params)
            if self.density_floor is not None:
                density = np.maximum(density, math.log(self.density_floor))
            total = total + np.where(present[:, None], density, 0.0)
        logs: Floats = np.logaddexp.reduce(total, axis=1)
        return logs

    def quantile(self, q: ArrayLike) -> Floats:
        """The q-quantile of each feature (0 < q < 1), (S, K)."""
        wanted = self._as_table(q)
        if not ((wanted > 0.0) & (wanted < 1.0)).all():
            raise ValueError("q must lie between 0 and 1, both excluded")
        columns = []
        for k, emission in enumerate(self.emission):
            q_k = wanted[:, k]
            ends = np.broadcast_to(
                emission.distribution.quantile(q_k[:, None], emission.params), self.weights.shape
            )
            used = self.weights > 0.0
            low = np.min(np.where(used, ends, np.inf), axis=1)
            high = np.max(np.where(used, ends, -np.inf), axis=1)
            # If the distribution function has jumps, the lower end itself may be the quantile.
            high = np.where(self._cdf(k, low) >= q_k, low, high)
            for _ in range(2000):
                middle = low + 0.5 * (high - low)
                below = self._cdf(k, middle) < q_k
                narrower = (middle > low) & (middle < high)
                if not narrower.any():
                    break
                low, high = np.where(below & narrower, middle, low), np.where(~below & narrower, middle, high)
            columns.append(high)
        return np.stack(columns, axis=1)

    def _cdf(self, feature: int, x: Floats) -> Floats:
        emission = self.emission[feature]
        sums: Floats = np.sum(self.weights * emission.distribution.cdf(x[:, None], emission.params), axis=1)
        return sums

    def _as_table(self, x: ArrayLike) -> Floats:
        values = as_numbers("these values", x)
        shape = (len(self.weights), len(self.emission))
        if values.ndim == 1 and shape[1] == 1 and len(values) == shape[0]:
            values = values[:, None]
        try:
            return np.array(np.broadcast_to(values, shape))
        except ValueError:
            raise ValueError(
                f"expected one number, one per feature, or an array of shape {shape}, not {values.shape}"
            ) from None


def after(
    parameters: Parameters, filtered: Floats, last: Integers, following: Integers, floor: float | None
) -> NextEmission:
    """The next emission given its event type (m if unknown), with one row per sequence."""
    steps = parameters.transmat_of(last, following)
    weights = np.einsum("si,sij->sj", filtered, steps)
    return NextEmission(weights, [e.replace(e.at(following)) for e in parameters.emission_tables], floor)


def after_any(parameters: Parameters, filtered: Floats, last: Integers, floor: float | None) -> NextEmission:
    """The next emission of unknown event type, mixed over the types with the event chain's probabilities."""
    m, n_states, n_sequences = parameters.n_types, parameters.n_states, len(last)
    _, pair_prob = parameters.chain.known()
    chances = np.zeros((n_sequences, m))
    for s, psi in enumerate(last):
        if psi == m:
            parameters.known_marginal()
            chances[s] = parameters.chain.prob
        elif psi in parameters.chain.dead_ends:
            chances[s] = 1.0 / m
        else:
            low, high = np.searchsorted(parameters.pairs[:, 0], [psi, psi + 1])
            chances[s, parameters.pairs[low:high, 1]] = pair_prob[low:high]
    sequence, following = np.nonzero(chances)
    steps = parameters.transmat_of(last[sequence], following)
    weights = np.zeros((n_sequences, m, n_states))
    weights[sequence, following] = (
        np.einsum("si,sij->sj", filtered[sequence], steps) * chances[sequence, following, None]
    )
    emission = [
        e.replace({name: values.reshape(-1) for name, values in e.params.items()})
        for e in parameters.emission
    ]
    return NextEmission(weights.reshape(n_sequences, m * n_states), emission, floor)
