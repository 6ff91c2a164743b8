"""What a fit from one start found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keydyn.model.arrays import Floats
from keydyn.model.parameters import Parameters
from keydyn.model.statistics import Statistics


@dataclass(frozen=True)
class FitResult:
    """A finished run of Algorithm 1 from one start.

    Attributes
    ----------
    parameters : the result; statistics : of the last E-step, under the result unless it was `max_iter`
    log_likelihood : of the result
    history : (n_iter,) log-likelihood at each E-step
    stop_reason : "tol", "max_iter", "decrease" or "callback"
    floored : for each feature, where the scale floor acted in the last M-step, (m, M)
    """

    parameters: Parameters
    statistics: Statistics
    log_likelihood: float
    history: Floats
    stop_reason: str
    floored: list[NDArray[np.bool_]]
