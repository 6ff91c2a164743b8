"""What families with a location and a scale have in common."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from keydyn.arrays import Floats
from keydyn.model.families.family import GREATEST, Family, Params, check_positive
from keydyn.model.moments import mixture_moments


class LocationScale(Family):
    """Location `loc` and scale `scale`; the marginal has the mixture's location and squared scale."""

    parameters: ClassVar[tuple[str, ...]] = ("loc", "scale")
    location_scale: ClassVar[bool] = True

    def location(self, params: Params) -> Floats:
        return params["loc"]

    def start(self, mean: Floats, scale: Floats, shift: Floats) -> Params:
        loc = mean + shift
        return {"loc": loc, "scale": scale + np.zeros(loc.shape)}

    def within(self, drawn: Floats) -> Floats:
        """Draws as near as the values that a family on the linear scale takes."""
        return np.clip(drawn, Family.lowest, Family.highest)

    def marginal(self, params: Params, weights: Floats) -> Params:
        loc, square = mixture_moments(params["loc"], params["scale"] ** 2, weights)
        return {"loc": loc, "scale": np.sqrt(square)}

    def check(self, params: Params) -> None:
        check_positive(params, "scale")
        if (np.abs(params["loc"]) > GREATEST).any():
            raise ValueError(f"loc must be between -{GREATEST:g} and {GREATEST:g}")
