"""Parameters given by the caller: checks, and conversion to θ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keydyn.arrays import Floats, Given
from keydyn.files import probabilities
from keydyn.model.data import vocabulary
from keydyn.model.data.fit_settings import Smoothing
from keydyn.model.data.input_forms import as_numbers
from keydyn.model.families.family import Emission, family
from keydyn.model.theta.marginals import (
    exact_marginal,
    joint_transmat,
    printed_marginal,
    stationary_distribution,
)
from keydyn.model.theta.parameters import ByType, EventChain, Marginal, Parameters


def given_parameters(
    event_types: Sequence[Any],
    startprob: ArrayLike,
    transmat: ArrayLike,
    emission: Sequence[Any],
    event_chain: tuple[Given, Given],
    marginals: str,
) -> Parameters:
    """θ from arrays: `startprob` (m, M), `transmat` (m, m, M, M), `emission` a list, one item per feature.

    An item of `emission` is `(family, loc, scale)` or `(family, {name: (m, M) array})`. `event_chain` has the
    start and transition probabilities of types; where None, types are equally likely. All m² pairs count as
    known.
    """
    types = vocabulary.check_types(event_types)
    m = len(types)
    start = distribution("startprob", startprob, (m, None))
    n_states = start.shape[1]
    steps = distribution("transmat", transmat, (m, m, n_states, n_states))
    uniform, (event_startprob, event_transmat) = np.full((m, m), 1.0 / m), event_chain
    event_start, event_steps = uniform[0], uniform
    if event_startprob is not None:
        event_start = distribution("event_startprob", event_startprob, (m,))
    if event_transmat is not None:
        event_steps = distribution("event_transmat", event_transmat, (m, m))
    emissions = given_emissions(emission, (m, n_states))
    before, after = np.divmod(np.arange(m * m), m)
    prob = stationary_distribution(event_steps)
    unlimited = np.full(m, np.inf)
    known = np.full(m, np.nan) if prob is None else prob
    chain = EventChain(known, unlimited, unlimited, event_start, event_steps.reshape(-1))
    pairs = np.stack([before, after], axis=1)
    flat = steps.reshape(m * m, n_states, n_states)
    marginal = None
    if prob is not None:
        start_all = event_start @ start
        if marginals == "exact":
            marginal = _exact(start_all, pairs, steps, event_steps, emissions)
        else:
            marginal = printed_marginal(start_all, pairs, flat, emissions, chain)
    by_type = ByType(start, pairs, flat, emissions)
    return Parameters.of(types, by_type, marginal, chain, Smoothing.of(None))


def _exact(
    start_all: Floats, pairs: Any, steps: Floats, event_steps: Floats, emissions: list[Emission]
) -> Marginal | None:
    m, _, n_states, _ = steps.shape
    joint = joint_transmat(steps, event_steps)
    together = stationary_distribution(joint)
    if together is None:
        return None
    flow = (together[:, None] * joint).reshape(m, n_states, m, n_states).transpose(0, 2, 1, 3)
    masses = [together.reshape(m, n_states)] * len(emissions)
    return exact_marginal(start_all, pairs, flow.reshape(m * m, n_states, n_states), emissions, masses)


def distribution(name: str, values: ArrayLike, shape: tuple[int | None, ...]) -> Floats:
    """Probabilities, checked for shape and for a last axis that adds up to one; errors name the place."""
    array = as_numbers(name, values)
    fits = array.ndim == len(shape) and all(
        want is None or have == want for have, want in zip(array.shape, shape, strict=True)
    )
    if not fits or 0 in array.shape:
        wanted = ", ".join("M" if want is None else str(want) for want in shape)
        raise ValueError(f"{name} must have shape ({wanted}), not {array.shape}")
    probabilities(name, array)
    return array


def check_emission(emission: Emission, name: str, shape: tuple[int, ...]) -> None:
    """Raise `ValueError` unless the parameters are finite, of this shape, and valid for the family."""
    for parameter, values in emission.params.items():
        if values.shape != shape:
            raise ValueError(f"{name}, {parameter} must have shape {shape}, not {values.shape}")
        if not np.isfinite(values).all():
            raise ValueError(f"{name}, {parameter} has values that are not finite")
    try:
        emission.distribution.check(emission.params)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def given_emissions(emission: Any, shape: tuple[int, int]) -> list[Emission]:
    """The checked items of `emission` in `from_parameters`."""
    if not isinstance(emission, (list, tuple)):
        raise ValueError(f"emission must be a list with an item per feature, not {emission!r}")
    if not emission:
        raise ValueError("emission is empty: give one item per feature")
    return [given_emission(k, item, shape) for k, item in enumerate(emission)]


def given_emission(feature: int, item: Any, shape: tuple[int, int]) -> Emission:
    """A checked item of `emission`, `(family, loc, scale)` or `(family, {name: array})`."""
    name = f"emission of feature {feature}"
    with_dict = isinstance(item, (tuple, list)) and len(item) == 2 and isinstance(item[1], Mapping)
    if not with_dict and not (isinstance(item, (tuple, list)) and len(item) == 3):
        raise ValueError(f"{name} must be (family, loc, scale) or (family, {{name: array}}), not {item!r}")
    kind = family(item[0])
    if not with_dict:
        if not kind.location_scale:
            raise ValueError(f"{name}: {kind.name} needs a dict of {', '.join(kind.parameters)}")
        given = {"loc": item[1], "scale": item[2]}
    else:
        given = dict(item[1])
    if "df" in kind.parameters and "df" not in given:
        given["df"] = getattr(kind, "df", np.nan)
    if set(given) != set(kind.parameters):
        raise ValueError(
            f"{name}: {kind.name} has the parameters {', '.join(kind.parameters)}, not {sorted(given)}"
        )
    params = {key: as_numbers(f"{name}, {key}", given[key]) for key in kind.parameters}
    params = {key: np.full(shape, values) if values.ndim == 0 else values for key, values in params.items()}
    emission = Emission(kind, params)
    check_emission(emission, name, shape)
    return emission
