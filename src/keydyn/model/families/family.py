"""What a distribution family must offer to serve as an emission, and the families by name.

A family knows one feature. Its parameters are a dict of arrays; in a model each has shape (m, M), one
value an event type and state, and every method works elementwise on whatever shape it is given. Adding a
family is subclassing `Family` and calling `register`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from keydyn.arrays import Floats, Integers
from keydyn.model.engine.maximisation import NO_MASS as NO_MASS

Params = dict[str, Floats]
Stats = dict[str, Floats]


@dataclass(frozen=True)
class Family(ABC):
    """A family of distributions of one feature.

    Class attributes
    ----------------
    name : what it is called in `emission=`
    parameters : names of its parameters
    lowest, highest : the values it takes, bounds included
    domain : the same in words, for messages
    location_scale : whether the parameters `loc` and `scale` are a location and a scale
    on_log_scale : whether statistics are of ln x
    """

    name: ClassVar[str]
    parameters: ClassVar[tuple[str, ...]]
    lowest: ClassVar[float] = -1e100
    highest: ClassVar[float] = 1e100
    domain: ClassVar[str] = "a number between -1e100 and 1e100"
    location_scale: ClassVar[bool] = False
    on_log_scale: ClassVar[bool] = False

    def working(self, x: Floats) -> Floats:
        """x on the scale on which locations and spreads are taken: itself, or ln x."""
        return np.log(x) if self.on_log_scale else x

    def outside(self, x: Floats) -> NDArray[np.bool_]:
        """Which values it cannot take; a NaN is missing, not outside."""
        return (x < self.lowest) | (x > self.highest)

    @abstractmethod
    def log_density(self, x: Floats, params: Params) -> Floats:
        """ln f(x), per unit of x."""

    @abstractmethod
    def cdf(self, x: Floats, params: Params) -> Floats:
        """P(X ≤ x)."""

    @abstractmethod
    def quantile(self, q: Floats, params: Params) -> Floats:
        """The x with P(X ≤ x) = q."""

    @abstractmethod
    def mean(self, params: Params) -> Floats:
        """The expected value; inf where there is none."""

    @abstractmethod
    def location(self, params: Params) -> Floats:
        """What states are ordered by."""

    @abstractmethod
    def draw(self, generator: np.random.Generator, params: Params) -> Floats:
        """One value for each entry of the parameters."""

    @abstractmethod
    def start(self, mean: Floats, scale: Floats, shift: Floats) -> Params:
        """Parameters from mean and deviation on the working scale, displaced by `shift` (Eqs. 23–24)."""

    @abstractmethod
    def statistics(self, x: Floats, posterior: Floats, rows: Integers, n_rows: int, params: Params) -> Stats:
        """What the update needs of these events, each array (n_rows, M).

        `posterior` (N, M) are the weights, `rows` the event types; a NaN in x has no weight. `params` are
        the current ones, (n_rows + 1, M), for families whose statistics depend on them.
        """

    @abstractmethod
    def merge(self, a: Stats, b: Stats) -> Stats:
        """The statistics of two sets of events together."""

    @abstractmethod
    def update(
        self, stats: Stats, current: Params, min_scale: float, count_floor: float
    ) -> tuple[Params, NDArray[np.bool_]]:
        """The parameters that maximise Σγ ln f (Eq. 15), and where the scale floor acted.

        Cells without mass keep their current parameters. `count_floor` is the least divisor of the normal
        and log-normal; in the other families a cell with less mass keeps its parameters.
        """

    @abstractmethod
    def marginal(self, params: Params, weights: Floats) -> Params:
        """One distribution a state, event types integrated out (Eqs. 29–31).

        `weights` (m, M) add up to one over types.
        """

    @abstractmethod
    def interpolate(self, params: Params, marginal: Params, keep: Floats) -> Params:
        """Smoothed parameters (Eq. 34): `keep` (m, 1) of the type's own, the rest of the marginal's."""

    @abstractmethod
    def check(self, params: Params) -> None:
        """`ValueError` if these, finite and of one shape, cannot be this family's parameters."""

    def free_parameters(self) -> int:
        """Parameters estimated for each event type and state."""
        return len(self.parameters)

    def shared_parameters(self) -> int:
        """Parameters estimated once for the feature."""
        return 0

    def mass(self, stats: Stats) -> Floats:
        """Σγ of events with a value, (m, M)."""
        return stats["count"]

    def settings(self) -> dict[str, Any]:
        """What tells this family from others of its name."""
        return asdict(self)


@dataclass(frozen=True)
class Emission:
    """The emission distributions of one feature: a family and its parameters, one a type and state."""

    distribution: Family
    params: Params

    @property
    def family(self) -> str:
        return self.distribution.name

    @property
    def loc(self) -> Floats:
        """Location; for the log-normal the log-mean η."""
        return self._of_location_scale("loc")

    @property
    def scale(self) -> Floats:
        """Scale; for the log-normal the log-standard deviation ρ."""
        return self._of_location_scale("scale")

    def _of_location_scale(self, name: str) -> Floats:
        if not self.distribution.location_scale:
            raise AttributeError(
                f"{self.family} is no location-scale family; its params are {', '.join(self.params)}"
            )
        return self.params[name]

    def at(self, index: Any) -> Params:
        """The parameters of some rows."""
        return {name: values[index] for name, values in self.params.items()}

    def log_densities(self, x: Floats, rows: Integers, floor: float | None) -> Floats:
        """ln f of values (N,) under the parameters in their rows, (N, M); 0 where a value is missing.

        `floor` is the least density, or None.
        """
        present = ~np.isnan(x)
        everywhere = bool(present.all())
        values, used = (x, rows) if everywhere else (x[present], rows[present])
        density = self.distribution.log_density(values[:, None], self.at(used))
        if floor is not None:
            density = np.maximum(density, np.log(floor))
        if everywhere:
            return density
        total = np.zeros((len(x), density.shape[1]))
        total[present] = density
        return total

    def replace(self, params: Params) -> Emission:
        return Emission(self.distribution, params)


_FAMILIES: dict[str, type[Family]] = {}


def register(family: type[Family]) -> type[Family]:
    """Make a family known by its name; usable as a decorator."""
    if _FAMILIES.get(family.name, family) is not family:
        raise ValueError(f"there is an emission family {family.name!r} already")
    _FAMILIES[family.name] = family
    return family


def family_names() -> tuple[str, ...]:
    """Names of all known families."""
    return tuple(sorted(_FAMILIES))


def family(name: str | Family, **settings: Any) -> Family:
    """A family by its name, or itself."""
    if isinstance(name, Family):
        return name
    if not isinstance(name, str) or name not in _FAMILIES:
        raise ValueError(f"emission {name!r} is not known; families: {', '.join(family_names())}")
    return _FAMILIES[name](**settings)


def families_of(emission: str | Family | Sequence[str | Family], n_features: int) -> tuple[Family, ...]:
    """The family of each feature, from one name for all or one a feature."""
    if isinstance(emission, (str, Family)):
        return (family(emission),) * n_features
    if not isinstance(emission, (list, tuple)):
        raise ValueError(f"emission must be a family's name or a list of them, not {emission!r}")
    if len(emission) != n_features:
        raise ValueError(f"emission names {len(emission)} families, but there are {n_features} features")
    return tuple(family(name) for name in emission)


def at_least(values: Floats, floor: float) -> tuple[Floats, NDArray[np.bool_]]:
    """Values raised to the floor, and where it acted."""
    return np.maximum(values, floor), values < floor


def check_positive(params: Params, *names: str) -> None:
    """`ValueError` naming the first of these parameters that is not greater than zero everywhere."""
    for name in names:
        if (params[name] <= 0).any():
            raise ValueError(f"{name} must be greater than zero")
