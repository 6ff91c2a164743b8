"""The area between the empirical and a model's distribution function, exactly.

Between two neighbouring values the empirical distribution function is constant and the model's rises, so that
they cross once at most. Where they cross is found first; between crossings the difference has one sign, and
the area is a difference of two integrals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.model.check.cdf_integrals import Mixture
from keydyn.model.engine import walks
from keydyn.model.engine.sums import weighted_sums
from keydyn.model.families.family import Emission
from keydyn.model.theta.lattice import EventIndex
from keydyn.model.theta.parameters import Parameters

SCALES = ("auto", "linear", "log")
MARGINALS = ("exact", "printed", "states")
# The area is wrong by the square of the crossing's error.
CROSSING_TOLERANCE = 1e-10


class Stretches(NamedTuple):
    """Stretches of neighbouring values from `first` to `last`, by number, with the sign of F − F_D.

    The sign is 0 where the two cross between a value and the next.
    """

    first: Integers
    last: Integers
    sign: Integers


def area(values: Floats, mixture: Mixture) -> float:
    """∫ |F_D − F| (Eq. 40) over the mixture's scale; `values` (N,) are points of it, in any order."""
    distinct, counts = np.unique(values, return_counts=True)
    level = np.cumsum(counts) / len(values)
    integral, mean = mixture.integral()
    if len(distinct) == 1:
        edge = integral(distinct)[0]
        return float(2.0 * edge - distinct[0] + mean)
    stretches = _stretches(distinct, level, mixture)
    points, empirical, sign = _breaks(distinct, level, stretches, mixture)
    of_model = integral(points)
    between = np.sum(sign * (np.diff(of_model) - np.diff(empirical)))
    above = of_model[-1] - points[-1] + mean
    return float(of_model[0] + between + above)


def _stretches(distinct: Floats, level: Floats, mixture: Mixture) -> Stretches:
    """Halve the range until the sign is known: F rises, so that it is known over most of it at once."""
    first, last = np.array([0]), np.array([len(distinct) - 1])
    low, high = mixture.cdf(distinct[:1]), mixture.cdf(distinct[-1:])
    done: list[tuple[Integers, Integers, Integers]] = []
    while len(first):
        above, below = low >= level[last - 1], high <= level[first]
        known = above | below | (last - first == 1)
        sign = np.where(above, 1, np.where(below, -1, 0))
        done.append((first[known], last[known], sign[known]))
        first, last, low, high = first[~known], last[~known], low[~known], high[~known]
        middle = (first + last) // 2
        at_middle = mixture.cdf(distinct[middle])
        first, last = np.concatenate([first, middle]), np.concatenate([middle, last])
        low, high = np.concatenate([low, at_middle]), np.concatenate([at_middle, high])
    starts, ends, signs = (np.concatenate(parts) for parts in zip(*done, strict=True))
    order = np.argsort(starts)
    return Stretches(starts[order], ends[order], signs[order])


def _breaks(
    distinct: Floats, level: Floats, stretches: Stretches, mixture: Mixture
) -> tuple[Floats, Floats, Integers]:
    """Where the sign changes, ∫ F_D up to there, and the sign between one such point and the next."""
    up_to = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(distinct))])
    crossing = stretches.sign == 0
    place = stretches.first[crossing]
    crossed = _crossings(distinct[place], distinct[place + 1], level[place], mixture)
    # A crossing splits its stretch: below the level before it, above after it.
    points = np.concatenate([distinct[stretches.first], crossed, distinct[-1:]])
    empirical = np.concatenate(
        [up_to[stretches.first], up_to[place] + level[place] * (crossed - distinct[place]), up_to[-1:]]
    )
    sign = np.concatenate([np.where(crossing, -1, stretches.sign), np.ones(len(place), dtype=np.int64)])
    # By number, not by value: a crossing can lie within rounding of the next value.
    order = np.argsort(np.concatenate([stretches.first, place + 0.5]))
    sign = sign[order]
    order = np.append(order, len(points) - 1)
    changes = np.concatenate([[True], sign[1:] != sign[:-1], [True]])
    return points[order][changes], empirical[order][changes], sign[changes[:-1]]


def _crossings(low: Floats, high: Floats, level: Floats, mixture: Mixture) -> Floats:
    """Where F reaches the level between low and high, by the Illinois variant of the false position."""
    middle, side = low, np.zeros(len(low))
    under, over = mixture.cdf(low) - level, mixture.cdf(high) - level
    for _ in range(100 if len(low) else 0):
        middle = np.clip((low * over - high * under) / (over - under), low, high)
        error = mixture.cdf(middle) - level
        if (np.abs(error) < CROSSING_TOLERANCE).all():
            break
        # An end that stays for the second time counts half, so that both ends move.
        rising = error < 0.0
        over = np.where(rising, np.where(side > 0, 0.5, 1.0) * over, error)
        under = np.where(rising, error, np.where(side < 0, 0.5, 1.0) * under)
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
        side = np.where(rising, 1.0, -1.0)
    return middle


def over_log(emission: Emission, scale: str) -> bool:
    """Whether areas are taken over ln x: as `scale` says, or, "auto", only if x has no finite mean."""
    if scale not in SCALES:
        raise ValueError(f"scale must be {' or '.join(map(repr, SCALES))}, not {scale!r}")
    distribution = emission.distribution
    if scale == "log" and distribution.lowest < 0.0:
        raise ValueError(f"a {distribution.name} emission can be negative: scale cannot be 'log'")
    without_mean = bool(np.isinf(distribution.mean(emission.params)).all())
    if scale == "linear" and without_mean:
        raise ValueError(
            f"a {distribution.name} emission has no finite mean, so that the area over x is infinite: "
            "take it over ln x, scale='log'"
        )
    return scale == "log" or (without_mean and distribution.lowest > 0.0)


def check_marginal(marginal: str) -> None:
    """`ValueError` if this is no way to make the model's distribution."""
    if marginal not in MARGINALS:
        raise ValueError(f"marginal must be {' or '.join(map(repr, MARGINALS))}, not {marginal!r}")


def feature_mixture(
    parameters: Parameters,
    index: EventIndex,
    present: Floats,
    feature: int,
    over_log: bool,
    marginal: str = "exact",
) -> Mixture:
    """g (Eq. 41) of one feature as a mixture.

    "exact" is the corrected equation, Σ Π[ω] Π[j | ω] f(x; b[j | ω]); "printed" has Π[j] for Π[j | ω];
    "states" has one distribution per state, Σ Π[j] f(x; b[j]). Π is taken along these event sequences;
    `present` (N,) is 1 where the feature has a value, else 0.
    """
    occupancy = np.empty((len(index.codes), parameters.n_states))
    walks.propagate(
        index.offsets,
        index.start_rows,
        parameters.start_table,
        index.steps,
        parameters.transmat_of(index.before, index.after),
        occupancy,
    )
    emission = parameters.emission_tables[feature]
    n_rows = len(next(iter(emission.params.values())))
    shares = weighted_sums(index.codes, n_rows, occupancy * present[:, None])
    if marginal == "states":
        emission = parameters.known_marginal().emission[feature]
        shares = shares.sum(axis=0)
    elif marginal == "printed":
        shares = shares.sum(axis=1, keepdims=True) * shares.sum(axis=0) / shares.sum()
    used = shares > 0.0
    return Mixture(emission.distribution, emission.at(used), shares[used] / shares.sum(), over_log)


def feature_area(
    parameters: Parameters,
    index: EventIndex,
    x: Floats,
    feature: int,
    over_log: bool,
    marginal: str = "exact",
) -> float:
    """The area between the values (N,) of a feature, NaN where missing, and the model's marginal."""
    present = ~np.isnan(x)
    if not present.any():
        raise ValueError(f"there is no value of feature {feature}: no area can be taken")
    mixture = feature_mixture(parameters, index, present.astype(np.float64), feature, over_log, marginal)
    return area(mixture.points(x[present]), mixture)
