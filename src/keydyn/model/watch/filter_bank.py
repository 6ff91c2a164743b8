"""A bank of online filters: S sessions with C filters each, one filter per model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from keydyn.arrays import Floats, Given, Integers, Truths, plain
from keydyn.model.data import vocabulary
from keydyn.model.data.input_forms import as_numbers
from keydyn.model.data.label_codes import LabelCodes, translations
from keydyn.model.data.vocabulary import Types
from keydyn.model.engine.densities import CUSTOM, FIRST, KIND, ON_LOG_SCALE
from keydyn.model.engine.online_step import (
    COUNT,
    EXTRA,
    IN_LOGS,
    LAST,
    TOGETHER,
    TOTAL,
    Members,
    Models,
    check_models,
    update_many,
)
from keydyn.model.families.compiled import features_of, variant_for
from keydyn.model.families.family import Family, Params, not_a_value
from keydyn.model.theta.parameters import SMALL_TABLE, Parameters


class FollowedModel(NamedTuple):
    """A model for filters: θ, its density floor, and whether it refuses event types that it does not know."""

    theta: Parameters
    floor: float | None
    strict: bool


class FilterBank:
    """The state of all filters, and the step that advances them.

    `models` are U models, `types` the vocabulary for labels of events, and `chosen` (S, C) the number of each
    filter's model.
    """

    def __init__(self, models: Sequence[FollowedModel], types: Types, chosen: Integers) -> None:
        thetas = [model.theta for model in models]
        self.thetas = thetas
        self.chosen = chosen
        self.labels = LabelCodes(types)
        self.models = laid_out(thetas)
        self.members = Members(
            translations([theta.event_types for theta in thetas], types),
            np.cumsum([0] + [len(theta.start) for theta in thetas]),
            np.array([-math.inf if model.floor is None else math.log(model.floor) for model in models]),
            feature_table(thetas[0].families),
        )
        self.custom = custom_parameters(thetas, self.members.features)
        named = np.array([not vocabulary.is_single(theta.event_types) for theta in thetas])
        self.rejects = named & np.array([model.strict for model in models])
        self.no_marginal = named & ~np.array([theta.has_marginal for theta in thetas])
        self.takes_all_types = not (self.rejects.any() or self.no_marginal.any())
        self._variant = variant_for(thetas[0].n_states, thetas[0].families)
        self._numbers = np.empty(len(chosen), dtype=np.int64)
        self.filters = np.zeros((chosen.size, thetas[0].n_states + EXTRA))
        check_models(self.models, self.members.features, self.filters)
        self.restart(np.arange(len(chosen)))

    def __len__(self) -> int:
        return len(self.chosen)

    @property
    def counts(self) -> Floats:
        """The number of events that each filter has seen, (S·C,)."""
        return self._column(COUNT)

    @property
    def totals(self) -> Floats:
        """ln P of the events that each filter has seen, (S·C,)."""
        return self._column(TOTAL)

    @property
    def last(self) -> Floats:
        """The code of each filter's last event, (S·C,)."""
        return self._column(LAST)

    @property
    def in_logs(self) -> Truths:
        """Whether each filter's probabilities are kept as logarithms, (S·C,)."""
        return self._column(IN_LOGS) > 0

    @property
    def kept(self) -> Floats:
        """The states' probabilities, or their logarithms, (S·C, M); zeros before the first event."""
        return self.filters[:, :-EXTRA]

    def proba(self) -> Floats:
        """P(z_n | x_1..n, Ω) of each filter, (S·C, M); before its first event the marginal start."""
        probabilities = self.kept.copy()
        probabilities[self.in_logs] = np.exp(probabilities[self.in_logs])
        model = self.chosen.ravel()
        unbegun = self.counts == 0
        for u in np.unique(model[unbegun]).tolist():
            probabilities[unbegun & (model == u)] = self.thetas[u].known_marginal().startprob
        return probabilities

    def restart(self, rows: Integers) -> None:
        """Reset the filters of these sessions."""
        n_filters = self.chosen.shape[1]
        which = (rows[:, None] * n_filters + np.arange(n_filters)).ravel()
        self.filters[which] = 0.0
        sizes = np.diff(self.members.first_row)
        self.filters[which, LAST - EXTRA] = sizes[self.chosen[rows]].ravel() - 1

    def update(self, x: ArrayLike, events: Any, rows: Given, codes: Given) -> Floats:
        """Take the next event of some sessions; return ln P(x_n | x_1..n−1, Ω) of each filter, (B, C).

        On wrong input it raises `ValueError`, and no filter has changed.
        """
        which = np.arange(len(self)) if rows is None else check_rows(rows, len(self))
        if rows is not None:
            self._check_distinct(which)
        values = x if type(x) is np.ndarray and x.dtype == np.float64 else as_numbers("x", x)
        shape = (len(which), len(self.members.features))
        if values.shape != shape:
            raise ValueError(f"x must have shape {shape}, one row per session, not {values.shape}")
        found = self._codes(events, codes, len(which))
        if not self.takes_all_types:
            self._check_known(found, which, events)
        increments = np.empty((len(which), self.chosen.shape[1]))
        given = self._custom_densities(values, which, found)
        bad = update_many(
            self._variant,
            # A copy, because it is overwritten.
            np.array(values.T, order="C"),
            found,
            which,
            given,
            self.chosen,
            self.members,
            self.models,
            self.filters,
            increments.reshape(-1),
        )
        if bad >= 0:
            self._refuse(bad, values, which)
        return increments

    def _check_distinct(self, which: Integers) -> None:
        """Raise `ValueError` if a session is named twice."""
        numbers = np.arange(len(which))
        self._numbers[which] = numbers
        if (self._numbers[which] != numbers).any():
            raise ValueError("a session is named twice; one event each in a call")

    def _codes(self, events: Any, codes: Given, n: int) -> Integers:
        if codes is not None:
            if events is not None:
                raise ValueError("give events or codes, not both")
            return plain(self.labels.check(codes, n, "session"))
        found = np.full(n, self.labels.missing) if events is None else self.labels.many(events)
        if len(found) != n:
            raise ValueError(f"events must be one label per session: {n} sessions, {len(found)} labels")
        return found

    def _check_known(self, codes: Integers, which: Integers, events: Any) -> None:
        """Raise `ValueError` for types unknown to a model that refuses them, or that has no marginals."""
        models = self.chosen[which]
        sizes = np.diff(self.members.first_row) - 1
        unknown = self.members.translation[models, codes[:, None]] == sizes[models]
        rejected = unknown & self.rejects[models] & (codes != self.labels.missing)[:, None]
        if rejected.any():
            row, c = np.argwhere(rejected)[0]
            label = "" if events is None else f" {vocabulary.as_labels(events)[row]!r}"
            place = f"session {which[row]}, model {models[row, c]}"
            raise ValueError(f"{place}: event type{label} was not seen in fitting")
        impossible = np.argwhere(unknown & self.no_marginal[models])
        if len(impossible):
            self.thetas[models[tuple(impossible[0])]].known_marginal()

    def _custom_densities(self, values: Floats, which: Integers, codes: Integers) -> Floats:
        """ln f of the features that are not compiled, (B·C, M); no rows if there are none."""
        if not self.custom:
            return np.empty((0, 0))
        models = self.chosen[which]
        rows = self.members.first_row[models] + self.members.translation[models, codes[:, None]]
        total = np.zeros((*rows.shape, self.thetas[0].n_states))
        for k, table in self.custom.items():
            family = self.thetas[0].families[k]
            if family.outside(values[:, k]).any():
                self._refuse(k, values, which)
            present = np.flatnonzero(~np.isnan(values[:, k]))
            params = {name: of_types[rows[present]] for name, of_types in table.items()}
            density = family.log_density(values[present, k][:, None, None], params)
            total[present] += np.maximum(density, self.members.log_floors[models[present]][..., None])
        return total.reshape(-1, total.shape[2])

    def _refuse(self, k: int, values: Floats, which: Integers) -> NoReturn:
        family = self.thetas[0].families[k]
        row = int(np.argmax(family.outside(values[:, k])))
        raise not_a_value(f"session {which[row]}, column {k}", values[row, k], family)

    def _column(self, column: int) -> Floats:
        values: Floats = self.filters[:, column - EXTRA]
        return values


def check_rows(rows: ArrayLike, n: int) -> Integers:
    """The numbers of the sessions in a call, checked; there are n sessions."""
    which = np.asarray(rows)
    if which.ndim != 1 or which.dtype.kind not in "iu":
        raise ValueError("sessions must be a list of whole numbers")
    if len(which) and (which.min() < 0 or which.max() >= n):
        raise ValueError(f"sessions are numbered 0 to {n - 1}")
    return plain(which.astype(np.int64, copy=False))


def feature_table(families: tuple[Family, ...]) -> Floats:
    """The table of features for the online step, (K, 4), with the columns in `engine.online_step`.

    A family that is not compiled gets no bounds here, as its own `outside` checks its values.
    """
    features = features_of(families)
    bounds = np.array([[family.lowest, family.highest] for family in families])
    bounds[features[:, KIND] == CUSTOM] = -np.inf, np.inf
    return np.column_stack([features[:, KIND], features[:, ON_LOG_SCALE], bounds])


def laid_out(thetas: Sequence[Parameters], most_pairs: int = SMALL_TABLE) -> Models:
    """The tables of models with equal states and features, one after the other.

    The transitions of all pairs of types are laid out if there are no more than `most_pairs`; otherwise
    pairs are looked up by search.
    """
    start = _joined([theta.start for theta in thetas])[..., None]
    cells = _joined([theta.cells for theta in thetas])
    n_codes = np.array([len(theta.start) for theta in thetas])
    if (n_codes**2).sum() <= most_pairs:
        sizes = np.repeat(n_codes, n_codes)
        transitions = _joined([theta.all_steps for theta in thetas])
        return Models(start, cells, transitions, np.cumsum(sizes) - sizes, np.empty((0, 3)))
    n_steps = [len(theta.transitions) for theta in thetas]
    spare = np.empty((TOGETHER, *thetas[0].transitions.shape[1:]))
    indices = [theta.pair_index for theta in thetas]
    steps = np.concatenate([index.steps[:n] for index, n in zip(indices, n_codes, strict=True)])
    steps += np.repeat(np.cumsum([0, *n_steps[:-1]]), n_codes)
    later = [index.steps[n:] for index, n in zip(indices, n_codes, strict=True)]
    return Models(
        start,
        cells,
        np.concatenate([*(theta.transitions for theta in thetas), spare])[..., None],
        np.concatenate([steps, *later]),
        _joined([index.weights for index in indices]),
    )


def custom_parameters(thetas: Sequence[Parameters], features: Floats) -> dict[int, Params]:
    """The parameters of features whose family is not compiled, (R, M) each, by feature number."""
    found = {}
    for k in np.flatnonzero(features[:, KIND] == CUSTOM).tolist():
        family, first = thetas[0].families[k], features_of(thetas[0].families)[k, FIRST]
        found[k] = {
            name: np.concatenate([theta.emissions[:, first + p] for theta in thetas])
            for p, name in enumerate(family.parameters)
        }
    return found


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """The concatenated arrays; a single one is copied only if it is read-only or not contiguous."""
    return plain(arrays[0]) if len(arrays) == 1 else np.concatenate(arrays)
