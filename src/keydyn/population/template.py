"""A person as a population model knows one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keydyn.arrays import Floats, Integers


@dataclass(frozen=True, eq=False)
class Template:
    """One person, immutable; only the population that enrolled it can use it.

    Attributes
    ----------
    population : SHA-256 of the population
    mean, scale : (C,) of y in each cell
    slopes : (F, 3); gain : (F,)
    n_samples, n_events : how many it was learnt from
    """

    population: str
    mean: Floats
    scale: Floats
    slopes: Floats
    gain: Floats
    n_samples: int
    n_events: int

    def __post_init__(self) -> None:
        """Nobody can change the arrays."""
        for array in (self.mean, self.scale, self.slopes, self.gain):
            array.flags.writeable = False


def side_by_side(
    templates: Sequence[Template], cells: Integers | None = None
) -> tuple[Floats, Floats, Floats, Floats]:
    """Means, (C, U), one divided by scales, slopes, (F, 3, U), and one divided by gains: as `score` has them.

    Of these cells alone, if they are named. Templates come last, because the machine computes several at a
    time.
    """
    mean, scale = (
        np.stack([values if cells is None else values[cells] for values in several], axis=-1)
        for several in ([one.mean for one in templates], [one.scale for one in templates])
    )
    slopes, gain = (
        np.stack(several, axis=-1)
        for several in ([one.slopes for one in templates], [one.gain for one in templates])
    )
    return mean, 1.0 / scale, slopes, 1.0 / gain
