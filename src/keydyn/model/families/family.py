"""The interface of distribution families that serve as emissions, and the registry of families by name.

A family describes one feature. Its parameters are a dict of arrays; in a model each has shape (m, M), one
value per event type and state, and every method works elementwise on whatever shape it is given. A new
family is a class with `log_density`, `statistics` and `update`, decorated with `register`; every other
method has a default.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import special

from keydyn.arrays import Floats, Integers, Truths
from keydyn.model.engine.maximisation import NO_MASS as NO_MASS
from keydyn.model.engine.sums import weighted_sums
from keydyn.model.families import numerical
from keydyn.short_repr import short_repr

Params = dict[str, Floats]
Stats = dict[str, Floats]


# Points that represent a start: the medians of nine equal shares of a normal distribution, scaled to a
# standard deviation of one.
POINTS = special.ndtri((np.arange(9) + 0.5) / 9)
POINTS /= POINTS.std()
# Upper bound for parameters; values up to 1e100 do not need larger ones.
GREATEST = 1e110
# A family bounded on the linear scale starts at least this far inside its bounds, in standard deviations.
INSIDE = 0.1


@dataclass(frozen=True)
class Family(ABC):
    """A family of distributions of one feature.

    A subclass must define `log_density`, `statistics` and `update`. The other methods have defaults that
    hold for any continuous distribution: `cdf`, `quantile` and `mean` integrate the density, and `draw`
    turns uniform numbers into quantiles. Override them with closed formulas where speed matters. A discrete
    family must override them.

    Class attributes
    ----------------
    name : the name of the family in `emission=`
    parameters : the names of its parameters
    lowest, highest : the range of its values, bounds included; ±1e100 and beyond mean no bound
    domain : a description of this range for messages; by default built from the bounds
    location_scale : whether the parameters `loc` and `scale` are a location and a scale
    on_log_scale : whether start values and scale floor refer to ln x

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn.model import Family, Gamma
    >>> gamma = Gamma()
    >>> isinstance(gamma, Family), gamma.parameters, gamma.domain
    (True, ('shape', 'scale'), 'greater than zero (1e-100 to 1e100)')
    >>> params = {"shape": np.array([4.0]), "scale": np.array([25.0])}
    >>> gamma.mean(params).tolist()
    [100.0]
    """

    name: ClassVar[str]
    parameters: ClassVar[tuple[str, ...]]
    lowest: ClassVar[float] = -1e100
    highest: ClassVar[float] = 1e100
    domain: ClassVar[str] = "a number between -1e100 and 1e100"
    location_scale: ClassVar[bool] = False
    on_log_scale: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        own = cls.__dict__
        if "domain" not in own and ("lowest" in own or "highest" in own):
            cls.domain = f"a number between {cls.lowest} and {cls.highest}"

    def working(self, x: Floats) -> Floats:
        """x on the scale of locations and spreads: x itself, or ln x."""
        return np.log(x) if self.on_log_scale else x

    def outside(self, x: Floats) -> Truths:
        """A mask of the values that the family cannot take; a NaN is missing, not outside."""
        return (x < self.lowest) | (x > self.highest)

    @abstractmethod
    def log_density(self, x: Floats, params: Params) -> Floats:
        """ln f(x), per unit of x."""

    @abstractmethod
    def statistics(self, x: Floats, posterior: Floats, rows: Integers, n_rows: int, params: Params) -> Stats:
        """The weighted sums over events that `update` needs, each (n_rows, M); "count" is required.

        `posterior` (N, M) holds the weights and `rows` the event types. An event whose x is NaN, or whose
        type is unknown (row n_rows), has no weight. `params` are the current parameters, (n_rows + 1, M), for
        families whose statistics depend on them.
        """

    @abstractmethod
    def update(
        self, stats: Stats, current: Params, min_scale: float, count_floor: float
    ) -> tuple[Params, Truths]:
        """The parameters that maximise Σγ ln f (Eq. 15), and a mask of cells where the scale floor acted.

        Cells without mass keep their current parameters. `count_floor` is the smallest divisor for the
        normal and log-normal; in the other families a cell with less mass than this keeps its parameters.
        """

    def cdf(self, x: Floats, params: Params) -> Floats:
        """P(X ≤ x); by default the integral of the density, accurate to about 1e-8."""
        return numerical.cdf(self, x, params)

    def quantile(self, q: Floats, params: Params) -> Floats:
        """The x with P(X ≤ x) = q; the ends of the domain for q = 0 and q = 1."""
        return numerical.quantile(self, q, params)

    def mean(self, params: Params) -> Floats:
        """The expected value; inf where it does not exist or its integral converges too slowly."""
        return numerical.mean(self, params)

    def location(self, params: Params) -> Floats:
        """The location by which states are ordered: the mean, or the median if that is infinite."""
        mean = self.mean(params)
        finite = np.isfinite(mean)
        return mean if finite.all() else np.where(finite, mean, self.quantile(np.array(0.5), params))

    def draw(self, generator: np.random.Generator, params: Params) -> Floats:
        """One random value per entry of the parameters; by default the quantiles of uniform numbers."""
        shape = np.broadcast_shapes(*(np.shape(values) for values in params.values()))
        # random() can return 0, whose quantile may lie outside the domain.
        uniform = np.maximum(generator.random(shape), 2.0**-54)
        return np.clip(self.quantile(uniform, params), self.lowest, self.highest)

    def start(self, mean: Floats, scale: Floats, shift: Floats) -> Params:
        """Start parameters from mean and deviation on the working scale, displaced by `shift` (Eqs. 23–24).

        The default updates from a few points with this mean and deviation, clipped to the domain. Where
        `statistics` depends on the current parameters, it is called with all of them equal to one.
        """
        middle, scale = np.broadcast_arrays(np.asarray(mean + shift, dtype=np.float64), scale)
        points = middle.reshape(-1, 1) + scale.reshape(-1, 1) * POINTS
        margin: Floats | float = 0.0
        if self.on_log_scale:
            points = np.exp(np.clip(points, -700.0, 700.0))
        else:
            margin = np.minimum(INSIDE * scale.reshape(-1, 1), 0.25 * (self.highest - self.lowest))
        points = np.clip(points, self.lowest + margin, self.highest - margin)
        n_cells = len(points)
        ones = {name: np.ones((n_cells + 1, 1)) for name in self.parameters}
        rows, weights = np.repeat(np.arange(n_cells), len(POINTS)), np.ones((points.size, 1))
        stats = self.statistics(points.ravel(), weights, rows, n_cells, ones)
        current = {name: values[:-1] for name, values in ones.items()}
        params, _ = self.update(stats, current, 1e-3 * float(scale.min(initial=1.0)), 0.0)
        return {name: np.reshape(params[name], middle.shape).copy() for name in self.parameters}

    def merge(self, a: Stats, b: Stats) -> Stats:
        """The statistics of two sets of events combined; by default their sums."""
        return {name: a[name] + b[name] for name in a}

    def marginal(self, params: Params, weights: Floats) -> Params:
        """The parameters of one distribution per state, with event types integrated out (Eqs. 29–31).

        `weights` (m, M) add up to one over types. The default averages the parameters, which is valid if the
        family's valid parameters form a convex set. Override it where another average is more meaningful.
        """
        return {name: np.sum(weights * params[name], axis=0) for name in self.parameters}

    def interpolate(self, params: Params, marginal: Params, keep: Floats) -> Params:
        """Smoothed parameters (Eq. 34): a share `keep` (m, 1) of the type's own, the rest from the marginal.

        The default interpolates the parameters linearly.
        """
        return {name: keep * params[name] + (1.0 - keep) * marginal[name] for name in self.parameters}

    def check(self, params: Params) -> None:  # noqa: B027 any finite numbers will do unless a family objects
        """Raise `ValueError` if these arrays, finite and of one shape, are not valid parameters."""

    def free_parameters(self) -> int:
        """The number of parameters estimated for each event type and state."""
        return len(self.parameters)

    def shared_parameters(self) -> int:
        """The number of parameters estimated once for the whole feature."""
        return 0

    def mass(self, stats: Stats) -> Floats:
        """Σγ over the events that have a value, (m, M)."""
        return stats["count"]

    def settings(self) -> dict[str, Any]:
        """The constructor arguments that distinguish this family from others of the same name."""
        return asdict(self)


@dataclass(frozen=True)
class Emission:
    """The emission distributions of one feature: a family and its parameters, one per type and state.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn import HMM
    >>> x = np.random.default_rng(0).normal(100.0, 5.0, (300, 1))
    >>> emission = HMM(n_states=1, emission="normal").fit(x).emission_[0]
    >>> emission.family, sorted(emission.params), emission.loc.shape
    ('normal', ['loc', 'scale'], (1, 1))
    """

    distribution: Family
    params: Params

    __repr__ = short_repr

    @property
    def family(self) -> str:
        return self.distribution.name

    @property
    def loc(self) -> Floats:
        """The location; for the log-normal the log-mean η."""
        return self._of_location_scale("loc")

    @property
    def scale(self) -> Floats:
        """The scale; for the log-normal the standard deviation ρ of ln x."""
        return self._of_location_scale("scale")

    def _of_location_scale(self, name: str) -> Floats:
        if not self.distribution.location_scale:
            raise AttributeError(
                f"{self.family} is not a location-scale family; its params are {', '.join(self.params)}"
            )
        return self.params[name]

    def at(self, index: Any) -> Params:
        """The parameters in the rows that `index` selects."""
        return {name: values[index] for name, values in self.params.items()}

    def log_densities(self, x: Floats, rows: Integers, floor: float | None) -> Floats:
        """ln f of values (N,) under the parameters in their rows, (N, M); 0 where a value is missing.

        `floor` is a lower bound for the density, or None.
        """
        present = ~np.isnan(x)
        everywhere = bool(present.all())
        values, used = (x, rows) if everywhere else (x[present], rows[present])
        density = self.distribution.log_density(values[:, None], self.at(used))
        if floor is not None:
            density = np.maximum(density, math.log(floor))
        if everywhere:
            return density
        total = np.zeros((len(x), density.shape[1]))
        total[present] = density
        return total

    def replace(self, params: Params) -> Emission:
        return Emission(self.distribution, params)


_FAMILIES: dict[str, type[Family]] = {}


def register(family: type[Family]) -> type[Family]:
    """Register a family under its name; usable as a decorator.

    Examples
    --------
    >>> from scipy.stats import laplace
    >>> from keydyn.model import Family, family_names, register
    >>> @register
    ... class Laplace(Family):  # to be fitted, it needs `statistics` and `update` as well
    ...     name, parameters, location_scale = "laplace", ("loc", "scale"), True
    ...     def log_density(self, x, params):
    ...         return laplace.logpdf(x, params["loc"], params["scale"])
    >>> "laplace" in family_names()
    True
    """
    if _FAMILIES.get(family.name, family) is not family:
        raise ValueError(f"there is an emission family {family.name!r} already")
    _FAMILIES[family.name] = family
    return family


def family_names() -> tuple[str, ...]:
    """The names of all registered families, sorted.

    Examples
    --------
    >>> from keydyn.model import family_names
    >>> {"normal", "lognormal", "gamma", "exponential", "student", "logstudent"} <= set(family_names())
    True
    """
    return tuple(sorted(_FAMILIES))


def family(name: str | Family, **settings: Any) -> Family:
    """The family with this name, built with `settings`; a `Family` object is returned as it is."""
    if isinstance(name, Family):
        return name
    if not isinstance(name, str) or name not in _FAMILIES:
        raise ValueError(f"emission {name!r} is not known; families: {', '.join(family_names())}")
    return _FAMILIES[name](**settings)


def families_of(emission: str | Family | Sequence[str | Family], n_features: int) -> tuple[Family, ...]:
    """The family of each feature, from one for all features or a list with one per feature."""
    if isinstance(emission, (str, Family)):
        return (family(emission),) * n_features
    if not isinstance(emission, (list, tuple)):
        raise ValueError(f"emission must be a family's name or a list of them, not {emission!r}")
    if len(emission) != n_features:
        raise ValueError(f"emission names {len(emission)} families, but there are {n_features} features")
    return tuple(family(name) for name in emission)


def sums_by_type(posterior: Floats, rows: Integers, n_rows: int, *values: Floats) -> list[Floats]:
    """Σγ, and Σγv for each of the values, by event type and state: the building blocks of most statistics.

    `posterior` has shape (N, M), `rows` and each of the values (N,), every sum (n_rows, M). Events of unknown
    type (row n_rows) and events where any value is NaN are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from keydyn.model.families import sums_by_type
    >>> posterior = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])  # of two states at three events
    >>> count, total = sums_by_type(posterior, np.array([0, 0, 1]), 2, np.array([10.0, 20.0, 30.0]))
    >>> count.tolist(), total.tolist()
    ([[1.5, 0.5], [0.0, 1.0]], [[20.0, 10.0], [0.0, 30.0]])
    """
    there = ~np.any(np.isnan(values), axis=0)
    rows, weights = rows[there], posterior[there]
    return [
        weighted_sums(rows, n_rows, weights),
        *(weighted_sums(rows, n_rows, weights * v[there, None]) for v in values),
    ]


def not_a_value(place: str, value: float, family: Family) -> ValueError:
    """The error for a value that a family cannot take."""
    return ValueError(
        f"{place}: {value} is not a value of a {family.name} emission, which is {family.domain}"
    )


def at_least(values: Floats, floor: float) -> tuple[Floats, Truths]:
    """Values raised to the floor, and a mask of those that were below it."""
    return np.maximum(values, floor), values < floor


def check_positive(params: Params, *names: str, least: float = 1e-300, most: float = GREATEST) -> None:
    """Raise `ValueError` for the first named parameter that is not positive and within bounds everywhere.

    Beyond these bounds formulas overflow, and may give NaN for values that the family can take.
    """
    for name in names:
        if (params[name] <= 0).any():
            raise ValueError(f"{name} must be greater than zero")
        if (params[name] < least).any() or (params[name] > most).any():
            raise ValueError(f"{name} must be between {least:g} and {most:g}")


def where_some(some: Truths, params: Params, current: Params) -> Params:
    """New parameters in cells with mass, the current ones in the others."""
    return {name: np.where(some, values, current[name]) for name, values in params.items()}
