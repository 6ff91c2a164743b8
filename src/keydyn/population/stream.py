"""A sample that is still being typed, followed key by key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keydyn.arrays import Floats, Integers
from keydyn.model.data.vocabulary import places_of
from keydyn.population.features import HOLD, INTERVAL, Observations
from keydyn.population.parameters import Parameters
from keydyn.population.scoring import PER_EVENT, score
from keydyn.population.states import classes_of
from keydyn.population.template import Template, side_by_side
from keydyn.population.wide_effects import LAST_POSITION

# So many events are remembered: beyond, neither the position nor an earlier key matters.
REMEMBERED = LAST_POSITION + 5


class PopulationStream:
    """The terms of `PopulationModel.event_log_likelihoods`, each as soon as it is known.

    An event's term needs the next key, so that `update` gives the term of the event before. Neither memory
    nor the time of an update grows with the sample.
    """

    def __init__(self, known: Parameters, templates: Sequence[Template]) -> None:
        self._known = known
        self._places = places_of(known.cells.vocabulary)
        self._classes = classes_of(known.cells.vocabulary)
        self._times = np.array([name in (INTERVAL, HOLD) for name in known.features])
        self._templates = side_by_side(templates)
        self._n_templates = len(templates)
        self.restart()

    def restart(self) -> None:
        """The next event is the first of another sample."""
        U, F, S = self._n_templates, len(self._known.features), self._known.chain.n_states
        self._values: Floats = np.empty((0, F))
        self._codes: Integers = np.empty(0, dtype=np.int64)
        self._count = 0
        self._state = (np.zeros((3, F, U)), np.zeros((F, U)), np.zeros((F, U)), np.zeros((S, U)))

    def update(self, values: ArrayLike, key: Any) -> Floats | None:
        """(U,) the terms of the event before, now that the next key is known; None at a sample's first event.

        `values` are those of this event: interval and hold in milliseconds, then further features, in the
        order of the population's features; NaN where one is missing.
        """
        row = np.array(values, dtype=np.float64)
        if row.shape != (len(self._times),):
            raise ValueError(f"an event has {len(self._times)} values, not {row.shape}")
        if np.isinf(row).any() or (row[self._times] <= 0).any():
            raise ValueError(f"times must be positive and finite, or NaN if missing; they are {row.tolist()}")
        row[self._times] = np.log(row[self._times])
        if self._count == 0:
            row[0] = np.nan
        self._values = np.vstack([self._values[-REMEMBERED:], row])
        self._codes = np.append(self._codes[-REMEMBERED:], self._places.get(key, len(self._places)))
        self._count += 1
        return None if self._count == 1 else self._terms(len(self._codes) - 2)

    def end(self) -> Floats:
        """(U,) the terms of the last event, after which no key comes; then `restart`."""
        if self._count == 0:
            raise ValueError("there was no event")
        self._count += 1
        terms = self._terms(len(self._codes) - 1)
        self.restart()
        return terms

    def _terms(self, n: int) -> Floats:
        """The terms of the event n among those remembered, with which `count` − 2 events have gone before."""
        known, chain = self._known, self._known.chain
        jacobian = np.where(self._times, -self._values, 0.0)
        seen = Observations(self._values, self._codes, np.array([0, len(self._codes)]), jacobian)
        y, cell = known.standardised(seen)
        before = self._count - 2
        # The event before is there for the class of its key alone.
        rows = slice(max(n - 1, 0), n + 1)
        own = rows.stop - rows.start - 1
        out = np.empty((own + 1, self._n_templates))
        # Where its residuals are counts modulo 3; 0 would be another sample.
        begun = before - own + 3 if before else 0
        score(
            PER_EVENT, y[rows], cell[rows], np.array([own, own + 1]), self._classes[self._codes[rows]],
            *self._templates, known.strengths.tempo, known.parents, chain.start, chain.transitions,
            chain.location, chain.scale, chain.degrees, chain.constant, out, begun, self._state,
        )  # fmt: skip
        terms: Floats = out[own] + known.shift(seen, y, cell)[n].sum()
        return terms
