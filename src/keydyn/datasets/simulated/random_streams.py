"""Random numbers of each user, which do not depend on who else is simulated or in which order."""

from __future__ import annotations

from typing import Any

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.model.data.settings import generator_of

# Each purpose has numbers of its own, so that the person does not change with what is typed.
PERSON, TIMES, PREFERENCES, WORDS, MISTAKES = range(5)


class Streams:
    """One stream of numbers for each user and purpose.

    Philox is a function of a key and a counter: the key comes from the seed, and the user and the purpose are
    the counter's upper half, so that streams never overlap (2¹²⁸ blocks each) and none has to be stored.
    """

    def __init__(self, random_state: Any) -> None:
        key = generator_of(random_state).integers(0, 2**64, size=2, dtype=np.uint64)
        self._philox = np.random.Philox(key=key)
        self._state: Any = self._philox.state
        self._generator = np.random.Generator(self._philox)

    def normals(self, users: Integers, purpose: int, shape: tuple[int, ...]) -> Floats:
        """(U, *shape) standard normal numbers; a smaller first dimension gives the first of the same."""
        drawn = np.empty((len(users), *shape))
        for row, user in zip(drawn, users.tolist(), strict=True):
            self._turn_to(user, purpose).standard_normal(out=row)
        return drawn

    def uniforms(self, users: Integers, purpose: int, shape: tuple[int, ...]) -> Floats:
        """(U, *shape) numbers between 0 and 1; a smaller first dimension gives the first of them."""
        drawn = np.empty((len(users), *shape))
        for row, user in zip(drawn, users.tolist(), strict=True):
            self._turn_to(user, purpose).random(out=row)
        return drawn

    def _turn_to(self, user: int, purpose: int) -> np.random.Generator:
        self._state["state"]["counter"][:] = 0, 0, user, purpose
        self._philox.state = self._state
        return self._generator
