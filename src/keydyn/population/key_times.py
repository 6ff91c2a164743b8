"""How long a person's keys take beside anyone's: densities of single times, as scores have them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keydyn.arrays import Floats
from keydyn.population.features import HOLD, INTERVAL
from keydyn.population.model import PopulationModel
from keydyn.population.shared_parameters import Template

# Times that are scored together: each has the whole template beside it.
AT_A_TIME = 128


@dataclass(frozen=True)
class Time:
    """One time of two keys in a row: "tau", press to press, or "duration", for which the first is held."""

    feature: str
    first: str
    second: str


def densities(model: PopulationModel, template: Template, time: Time, at: Floats) -> Floats:
    """(G, 2) density per millisecond, at each of G times, of a person and of anyone, as scored."""
    if time.feature not in (INTERVAL, HOLD):
        raise ValueError(f"there are densities of {INTERVAL} and {HOLD}, not of {time.feature!r}")
    n, F = min(len(at), AT_A_TIME), len(model.parameters.features)
    streams, found = model.online_many([template] * n, [model.anyone()]), np.empty((len(at), 2))
    # The interval ends with the second key, the hold is the first one's; a term comes with the next event.
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
