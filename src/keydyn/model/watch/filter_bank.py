"""Online filters side by side: S sessions, each followed by C filters, each with a model of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keydyn.arrays import Floats, Integers, compiled
from keydyn.model.watch.online_kernels import COUNT, EXTRA, IN_LOGS, LAST, TOTAL, bad_column, update_many
from keydyn.model.watch.online_tables import Tables
from keydyn.model.watch.online_two import update_many_of_two

NONE_GIVEN = np.empty((0, 0, 0))


class FilterBank:
    """The numbers of all filters, and the step that advances them.

    `models` (S, C) tells which model of `tables` each filter has, `translation` (U, V) what an event's code
    is in each model, `what` what a row is called in messages.
    """

    def __init__(self, tables: Tables, models: Integers, translation: Integers, what: str) -> None:
        self.tables = tables
        self.models = models
        self.translation = translation
        self._what = what
        self._called = np.zeros(len(models), dtype=np.int64)
        self._calls = 0
        self.filters = np.zeros((models.size, tables.n_states + EXTRA))
        self.restart(np.arange(len(models)))

    def __len__(self) -> int:
        return len(self.models)

    @property
    def counts(self) -> Floats:
        """Events that each filter has seen, (S·C,)."""
        return self._column(COUNT)

    @property
    def totals(self) -> Floats:
        """ln P of these events, (S·C,)."""
        return self._column(TOTAL)

    @property
    def last(self) -> Floats:
        """The code of each filter's last event, (S·C,)."""
        return self._column(LAST)

    @property
    def in_logs(self) -> Any:
        """Whether a filter's probabilities are kept as logarithms, (S·C,)."""
        return self._column(IN_LOGS) > 0

    @property
    def kept(self) -> Floats:
        """The states' probabilities, or their logarithms, (S·C, M); zeros before the first event."""
        return self.filters[:, :-EXTRA]

    def proba(self) -> Floats:
        """P(z_n | x_1..n, Ω) of each filter, (S·C, M); zeros where it is not known."""
        probabilities = self.kept.copy()
        probabilities[self.in_logs] = np.exp(probabilities[self.in_logs])
        return probabilities

    def restart(self, rows: Integers) -> None:
        """These sessions have seen nothing yet."""
        n_filters = self.models.shape[1]
        which = (rows[:, None] * n_filters + np.arange(n_filters)).ravel()
        self.filters[which] = 0.0
        sizes = np.diff(self.tables.first_row)
        self.filters[which, self.tables.n_states + LAST] = sizes[self.models[rows]].ravel() - 1

    def check(self, x: ArrayLike, rows: ArrayLike | None) -> tuple[Floats, Integers]:
        """The values (B, K) and the rows (B,) of one call; a `ValueError` says what is wrong with them."""
        which = np.arange(len(self)) if rows is None else np.asarray(rows)
        if which.ndim != 1 or which.dtype.kind not in "iu":
            raise ValueError(f"{self._what}s must be a list of whole numbers")
        which = which.astype(np.int64, copy=False)
        values = np.ascontiguousarray(x, dtype=np.float64)
        shape = (len(which), len(self.tables.features))
        if values.shape != shape:
            raise ValueError(f"x must have shape {shape}, one row a {self._what}, not {values.shape}")
        if rows is not None:
            self._check_rows(which)
        bad = first_bad(values, self.tables.features)
        if bad >= 0:
            row, k = divmod(bad, len(self.tables.features))
            family = self.tables.families[k]
            raise ValueError(
                f"{self._what} {which[row]}, column {k}: {values[row, k]} is no value of a {family.name} "
                f"emission, which is {family.domain}"
            )
        return values, which

    def advance(self, values: Floats, which: Integers, codes: Integers) -> Floats:
        """One event in each of these rows: ln P(x_n | x_1..n−1, Ω) of each filter, (B, C)."""
        tables = self.tables
        increments = np.empty((len(which), self.models.shape[1]))
        if tables.n_states == 2 and not tables.custom:
            update_many_of_two(
                values,
                codes,
                which,
                self.models,
                self.translation,
                self.filters,
                tables.types,
                tables.successors,
                tables.steps,
                tables.features,
                tables.rules,
                tables.first_row,
                increments,
            )
            return increments
        update_many(
            values,
            codes,
            which,
            self.models,
            self.translation,
            self._custom_densities(values, which, codes),
            self.filters,
            tables.types,
            tables.successors,
            tables.steps,
            tables.features,
            tables.rules,
            tables.first_row,
            increments,
        )
        return increments

    def _custom_densities(self, values: Floats, which: Integers, codes: Integers) -> Floats:
        if not self.tables.custom:
            return NONE_GIVEN
        models = self.models[which]
        rows = self.tables.first_row[models] + self.translation[models, codes[:, None]]
        return self.tables.custom_densities(values, rows, models)

    def _check_rows(self, which: Integers) -> None:
        self._calls += 1
        wrong = wrong_row(which, self._called, self._calls)
        if wrong == BEYOND:
            raise ValueError(f"{self._what}s are numbered 0 to {len(self) - 1}")
        if wrong == TWICE:
            raise ValueError(f"a {self._what} is named twice; one event each in a call")

    def _column(self, column: int) -> Floats:
        values: Floats = self.filters[:, self.tables.n_states + column]
        return values


FINE, BEYOND, TWICE = range(3)


@compiled
def wrong_row(which: Integers, called: Integers, call: int) -> int:
    """What is wrong with the rows that a call names; `called` remembers each row's last call."""
    for row in which:
        if row < 0 or row >= len(called):
            return BEYOND
    for row in which:
        if called[row] == call:
            return TWICE
        called[row] = call
    return FINE


@compiled
def first_bad(values: Floats, features: Floats) -> int:
    """The place, row by row, of the first value that its family cannot emit; −1 if there is none."""
    for row in range(len(values)):
        k = bad_column(values, row, features)
        if k >= 0:
            return row * len(features) + k
    return -1
