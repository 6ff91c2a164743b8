"""The settings of a fit: the estimator's parameters, validated and converted once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from keydyn.arrays import Floats

# Bounds that no sensible setting reaches: memory grows with the square of the number of states, iterations
# are counted in 64 bits, and start values must not lie beyond all data.
MOST_STATES = 1000
MOST_TIMES = 2**62
WIDEST = 1e6


@dataclass(frozen=True)
class FitSettings:
    """The settings of a fit; `POHMM` explains each."""

    n_states: int
    smoothing: Smoothing
    spread: float
    tol: float
    max_iter: int
    n_init: int
    fixed: tuple[str, ...]
    marginals: str
    min_scale: float | None
    order_states: bool
    leading_feature: int
    density_floor: float | None
    count_floor: float
    spread_features: str
    spread_scale: str
    start_estimate: str
    verbose: int
    callback: Callable[..., Any] | None


def check_settings(parameters: dict[str, Any], n_features: int) -> FitSettings:
    """Settings from the dict of `get_params()`; raises `ValueError` naming a parameter that is wrong."""
    given = parameters
    for name in ("n_states", "max_iter", "n_init"):
        _check(given, name, is_whole(given[name]) and given[name] >= 1, "a whole number, 1 or more")
        most = MOST_STATES if name == "n_states" else MOST_TIMES
        _check(given, name, given[name] <= most, f"at most {most}")
    for name in ("spread", "tol", "count_floor"):
        _check(given, name, is_number(given[name]) and given[name] >= 0, "zero or greater")
    _check(given, "spread", given["spread"] <= WIDEST, f"at most {WIDEST:g}")
    scale, leading, callback, verbose = (
        given[name] for name in ("min_scale", "leading_feature", "callback", "verbose")
    )
    right = (isinstance(scale, str) and scale == "auto") or (is_number(scale) and scale > 0)
    _check(given, "min_scale", right, "'auto' or greater than zero")
    _one_of(given, "marginals", ("printed", "exact"))
    _one_of(given, "spread_features", ("all", "leading"))
    _one_of(given, "spread_scale", ("type", "all"))
    _one_of(given, "start_estimate", ("sequence_start", "first_occurrence"))
    _one_of(given, "handle_unknown", ("marginal", "error"))
    right = is_whole(leading) and 0 <= leading < n_features
    _check(given, "leading_feature", right, f"the number of a feature, 0 to {n_features - 1}")
    _check(given, "callback", callback is None or callable(callback), "None or callable")
    for name in ("order_states", "warm_start"):
        _check(given, name, isinstance(given[name], (bool, np.bool_)), "True or False")
    _check(given, "verbose", isinstance(verbose, Integral) and int(verbose) >= 0, "a whole number, 0 or more")
    _check(given, "random_state", _is_seed(given["random_state"]), "None, a seed or a generator")
    fixed = (given["fixed"],) if isinstance(given["fixed"], str) else given["fixed"]
    right = isinstance(fixed, (tuple, list)) and all(part in PARTS for part in fixed)
    _check(given, "fixed", right, f"a tuple of some of {', '.join(PARTS)}")
    return FitSettings(
        n_states=int(given["n_states"]),
        smoothing=Smoothing.of(given["smoothing"], given["transition_weights"]),
        spread=float(given["spread"]),
        tol=float(given["tol"]),
        max_iter=int(given["max_iter"]),
        n_init=int(given["n_init"]),
        fixed=tuple(fixed),
        marginals=given["marginals"],
        min_scale=None if scale == "auto" else float(scale),
        order_states=bool(given["order_states"]),
        leading_feature=int(leading),
        density_floor=checked_floor(given["density_floor"]),
        count_floor=float(given["count_floor"]),
        spread_features=given["spread_features"],
        spread_scale=given["spread_scale"],
        start_estimate=given["start_estimate"],
        verbose=int(verbose),
        callback=callback,
    )


def checked_floor(floor: Any) -> float | None:
    """The density floor, checked on each use because it may be changed after fitting."""
    if floor is not None and not (is_number(floor) and floor > 0):
        raise ValueError(f"density_floor must be None or greater than zero, not {floor!r}")
    return None if floor is None else float(floor)


def _check(given: dict[str, Any], name: str, right: bool, wanted: str) -> None:
    if not right:
        raise ValueError(f"{name} must be {wanted}, not {given[name]!r}")


def _one_of(given: dict[str, Any], name: str, choices: tuple[str, ...]) -> None:
    right = isinstance(given[name], str) and given[name] in choices
    _check(given, name, right, " or ".join(map(repr, choices)))


def _is_seed(value: Any) -> bool:
    if value is None or isinstance(value, (np.random.RandomState, np.random.Generator)):
        return True
    try:
        np.random.default_rng(value)
    except (TypeError, ValueError):
        return False
    return True


def check_number(name: str, value: Any, least: int = 1) -> int:
    """A whole number of at least `least`; raises a `ValueError` that names it otherwise."""
    if not is_whole(value) or value < least:
        raise ValueError(f"{name} must be a whole number, {least} or more, not {value!r}")
    return int(value)


def is_whole(value: Any) -> bool:
    """Whether this is a whole number other than a truth value."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether this is a finite number other than a truth value."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


Rule = str | float | None
PARTS = ("start", "transitions", "emission")


@dataclass(frozen=True)
class Smoothing:
    """The smoothing of each kind of parameter.

    Each of `start`, `transitions`, `emission` is "frequency" (the paper's weights), a fixed share of the
    marginal between 0 and 1, or None. `weights` selects the handling of transition weights 1/(1 + …) whose
    sum exceeds one: "proper" scales them to one, "published" lets the weight of the estimate itself be
    negative and clips the result at zero.
    """

    start: Rule = "frequency"
    transitions: Rule = "frequency"
    emission: Rule = "frequency"
    weights: str = "proper"

    @classmethod
    def of(cls, smoothing: Any, weights: str = "proper") -> Smoothing:
        """The smoothing from the estimator's parameter: one rule for all kinds, or a dict by kind."""
        if weights not in ("proper", "published"):
            raise ValueError(f"transition_weights must be 'proper' or 'published', not {weights!r}")
        if isinstance(smoothing, Mapping):
            unknown = set(smoothing) - set(PARTS)
            if unknown:
                raise ValueError(f"smoothing has no {sorted(unknown)}; its keys are {', '.join(PARTS)}")
            rules = {part: _rule(smoothing.get(part)) for part in PARTS}
        else:
            rules = dict.fromkeys(PARTS, _rule(smoothing))
        return cls(**rules, weights=weights)

    @property
    def published(self) -> bool:
        return self.weights == "published"

    @property
    def acts(self) -> bool:
        return any(rule is not None for rule in (self.start, self.transitions, self.emission))

    def transition_weights(
        self, pair_count: Floats, leaving: Floats, entering: Floats, limited: bool = True
    ) -> tuple[Floats, Floats]:
        """The weights of a[i, j | ψ] and a[i, j | ω] in ã[i, j | ψ, ω] (Eq. 35, corrected), for each pair.

        `leaving` is f(ψ,·) and `entering` f(·,ω) of each pair. If `limited`, weights whose sum exceeds one
        are scaled to a sum of one, except with the published weights.
        """
        if isinstance(self.transitions, str):
            before, after = 1.0 / (1.0 + pair_count + entering), 1.0 / (1.0 + pair_count + leaving)
        else:
            before = after = np.full(len(pair_count), 0.5 * (self.transitions or 0.0))
        if limited and not self.published:
            excess = np.maximum(before + after, 1.0)
            before, after = before / excess, after / excess
        return before, after


def kept_shares(rule: Rule, counts: Floats) -> Floats:
    """w_ω (Eq. 32), the weight of each estimate, which rests on `counts` events."""
    if isinstance(rule, str):
        return 1.0 - 1.0 / (1.0 + counts)
    return np.full(len(counts), 1.0 - (rule or 0.0))


def _rule(value: Any) -> Rule:
    if value is None or (isinstance(value, str) and value == "frequency"):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 <= value <= 1:
        raise ValueError(
            f"smoothing must be 'frequency', None, a share from 0 to 1, or a dict of these, not {value!r}"
        )
    return float(value) or None


def generator_of(random_state: Any) -> np.random.Generator:
    """A NumPy generator from a seed, a `Generator`, a legacy `RandomState` or None."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint64))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(f"random_state {random_state!r} is not a seed or generator: {error}") from None
