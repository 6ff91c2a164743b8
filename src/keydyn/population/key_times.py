"""Densities of single times of a person and of anyone, as scores use them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keydyn.arrays import Floats
from keydyn.population.features import HOLD, INTERVAL
from keydyn.population.model import PopulationModel
from keydyn.population.shared_parameters import Template

# The number of times scored together; a copy of the whole template is kept for each.
AT_A_TIME = 128


@dataclass(frozen=True)
class Time:
    """A time of two successive keys: "tau", from press to press, or "duration", the hold of the first."""

    feature: str
    first: str
    second: str


def densities(model: PopulationModel, template: Template, time: Time, at: Floats) -> Floats:
    """(G, 2) density per millisecond at each of G times, of a person and of anyone."""
    if time.feature not in (INTERVAL, HOLD):
        raise ValueError(f"there are densities of {INTERVAL} and {HOLD}, not of {time.feature!r}")
    n, F = min(len(at), AT_A_TIME), len(model.parameters.features)
    streams, found = model.online_many([template] * n, [model.anyone()]), np.empty((len(at), 2))
    # The interval belongs to the second key and the hold to the first; a term comes with the next event.
    f = (INTERVAL, HOLD).index(time.feature)
    event = 1 - f
    for begin in range(0, len(at), n):
        some = at[begin : begin + n]
        values = np.full((3, len(some), F), np.nan)
        values[event, :, f] = some
        which = np.arange(len(some))
        streams.restart(which)
        keys = (time.first, time.second, "")
        terms = [streams.update(values[e], [keys[e]] * len(some), which) for e in range(3)]
        found[begin : begin + n] = np.exp(terms[event + 1])
    return found
