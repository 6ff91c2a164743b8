"""Random numbers from whatever a caller gives as `random_state`."""

from __future__ import annotations

from typing import Any

import numpy as np


def generator_of(random_state: Any) -> np.random.Generator:
    """A NumPy generator from a seed, a `Generator`, a legacy `RandomState` or None."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=4, dtype=np.uint64))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(f"random_state {random_state!r} is not a seed or generator: {error}") from None
