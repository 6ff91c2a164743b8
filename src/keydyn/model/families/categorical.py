"""The categorical distribution over categories numbered from 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from keydyn.arrays import Floats, Integers, Truths
from keydyn.model.data.fit_settings import is_number, is_whole
from keydyn.model.engine.sums import weighted_sums
from keydyn.model.families.family import NO_MASS, Family, Params, Stats, register, where_some

# The share of a start that is uniform: EM cannot revive a probability of zero.
UNIFORM = 0.1
SUM_TOLERANCE = 1e-6
# Each category is a parameter with its own array, so more would be unusable anyway.
MOST_CATEGORIES = 100_000


@register
@dataclass(frozen=True)
class Categorical(Family):
    """The categorical distribution over 0 … n_categories − 1, with probabilities `p0`, `p1`, ….

    The name `"categorical"` stands for two categories; `Categorical(n_categories=5)` has five. A category
    that a state never emitted in fitting has probability zero there, unless `pseudocount` events of each
    category are added to the counts (EM then climbs the penalised likelihood, not the likelihood).

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import HMM
    >>> from keydyn.model import Categorical
    >>> x = np.array([[0], [2], [1], [2]] * 10)
    >>> params = HMM(n_states=1, emission=Categorical(n_categories=3)).fit(x).emission_[0].params
    >>> {name: value.round(6).tolist() for name, value in params.items()}
    {'p0': [[0.25]], 'p1': [[0.25]], 'p2': [[0.5]]}
    """

    n_categories: int = 2
    pseudocount: float = 0.0

    name: ClassVar[str] = "categorical"
    lowest: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        if not is_whole(self.n_categories) or not 1 <= self.n_categories <= MOST_CATEGORIES:
            raise ValueError(
                f"n_categories must be a whole number from 1 to {MOST_CATEGORIES}, not {self.n_categories!r}"
            )
        if not is_number(self.pseudocount) or self.pseudocount < 0.0:
            raise ValueError(f"pseudocount must be zero or greater, not {self.pseudocount!r}")

    @property
    def parameters(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(f"p{c}" for c in range(self.n_categories))

    @property
    def highest(self) -> float:  # type: ignore[override]
        return float(self.n_categories - 1)

    @property
    def domain(self) -> str:  # type: ignore[override]
        return f"a whole number from 0 to {self.n_categories - 1} (n_categories={self.n_categories})"

    def outside(self, x: Floats) -> Truths:
        return super().outside(x) | (np.floor(x) < x)

    def log_density(self, x: Floats, params: Params) -> Floats:
        shape = np.broadcast_shapes(np.shape(x), *(np.shape(values) for values in params.values()))
        probability = np.zeros(shape)
        for c, name in enumerate(self.parameters):
            probability = np.where(x == c, params[name], probability)
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(probability)
        return logs

    def cdf(self, x: Floats, params: Params) -> Floats:
        """P(X ≤ x), a step function."""
        terms = [np.where(np.asarray(x) >= c, params[name], 0.0) for c, name in enumerate(self.parameters)]
        total: Floats = np.minimum(np.sum(terms, axis=0), 1.0)
        return total

    def quantile(self, q: Floats, params: Params) -> Floats:
        """The smallest category x with P(X ≤ x) ≥ q."""
        shares = [np.asarray(params[name]) for name in self.parameters]
        passed, below = np.zeros(np.broadcast_shapes(np.shape(q), shares[0].shape)), np.zeros(shares[0].shape)
        for c in range(self.n_categories - 1):
            below = below + shares[c]
            # Rounding of the sum must not select a category of probability zero.
            more = np.sum(shares[c + 1 :], axis=0) > 0.0
            passed += (below < q) & more
        return passed

    def mean(self, params: Params) -> Floats:
        """The mean category, by which states are ordered."""
        total: Floats = np.sum([c * params[name] for c, name in enumerate(self.parameters)], axis=0)
        return total

    def start(self, mean: Floats, scale: Floats, shift: Floats) -> Params:
        """Start probabilities: a bell curve around each state's place, mixed with a uniform share."""
        middle = np.clip(mean + shift, 0.0, self.highest)
        width = np.maximum(scale, 0.5)
        bell = np.stack([np.exp(-0.5 * ((c - middle) / width) ** 2) for c in range(self.n_categories)])
        shares = (1.0 - UNIFORM) * bell / bell.sum(axis=0) + UNIFORM / self.n_categories
        return {name: shares[c] for c, name in enumerate(self.parameters)}

    def statistics(self, x: Floats, posterior: Floats, rows: Integers, n_rows: int, params: Params) -> Stats:
        sums = {
            name: weighted_sums(rows, n_rows, posterior * (x == c)[:, None])
            for c, name in enumerate(self.parameters)
        }
        return {"count": np.sum(list(sums.values()), axis=0), **sums}

    def update(
        self, stats: Stats, current: Params, min_scale: float, count_floor: float
    ) -> tuple[Params, Truths]:
        count = stats["count"]
        some = count > max(NO_MASS, count_floor)
        total = np.where(some, count + self.n_categories * self.pseudocount, 1.0)
        shares = {name: (stats[name] + self.pseudocount) / total for name in self.parameters}
        # There is no scale, so no floor can act.
        return where_some(some, shares, current), np.zeros(count.shape, dtype=bool)

    def check(self, params: Params) -> None:
        values = np.stack([params[name] for name in self.parameters])
        if (values < 0.0).any():
            raise ValueError("a probability is negative")
        if (np.abs(values.sum(axis=0) - 1.0) > SUM_TOLERANCE).any():
            raise ValueError(f"{', '.join(self.parameters)} must add up to one")

    def free_parameters(self) -> int:
        return self.n_categories - 1
