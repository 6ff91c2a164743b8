"""What online filters need of one model or many, laid out for compiled loops.

All models stand one after the other. Each has a row a event type, and one more for events of unknown type;
a row holds all that is needed when an event of its type comes, side by side in memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.model.families.family import Family, Params
from keydyn.model.theta.parameters import Parameters
from keydyn.model.watch.densities import COEFFICIENTS, CUSTOM, coefficients_of, kind_of

# Columns of a row before the matrices: π[j | ω] follows them, then a[i, j | ψ], a[i, j | ω], the emissions.
FIRST_PAIR, END_PAIR, LEAVING, ENTERING, HEAD = range(5)
# Columns of a feature.
KIND, LOWEST, HIGHEST = range(3)
# Columns of a model's rules, and the values of SHARE that are no share.
LOG_FLOOR, SHARE, PROPER = range(3)
NO_SMOOTHING, BY_FREQUENCY = -1.0, -2.0
# Up to so many transition matrices, two megabytes for two states, those of all pairs are laid out.
DENSE = 1 << 16


@dataclass(frozen=True)
class Tables:
    """Models in a row.

    Attributes
    ----------
    types : (R, W) a row an event type: where its pairs are in `steps`, f(ψ,·), f(·,ω), start
        probabilities, marginal steps from and to it, coefficients of its emissions
    successors : (P + 1,) the later type ω of each observed pair, ascending for each ψ, and −1; empty if
        `steps` has all pairs, in order
    steps : (P, M·M) a[i, j | ψ, ω] of each observed pair, or of all pairs with the unknown type
    features : (K, 3) kind of density, lowest and highest value
    rules : (U, 3) ln of the density floor, how unseen pairs are smoothed, whether weights are proper
    first_row : (U + 1,) where each model's types begin
    families : the family of each feature
    params : the emission parameters of each feature, (R, M) each, for families that are not compiled
    """

    types: Floats
    successors: Integers
    steps: Floats
    features: Floats
    rules: Floats
    first_row: Integers
    families: list[Family]
    params: list[Params]

    @classmethod
    def of(
        cls, models: Sequence[Parameters], floors: Sequence[float | None], for_many: bool = True
    ) -> Tables:
        """Lay out these models, which have the same states and features.

        `for_many` events all pairs are laid out if they are few, so that none has to be searched for.
        """
        families = list(models[0].families)
        sizes = np.array([0] + [parameters.n_types + 1 for parameters in models])
        params = [_stacked(models, k) for k in range(len(families))]
        n_states = models[0].n_states
        dense = for_many and int((sizes**2).sum()) <= DENSE
        listed = [_all_steps(p) if dense else p.transmat for p in models]
        firsts = np.cumsum([0] + [len(steps) for steps in listed])[:-1]
        types = np.concatenate([_rows(p, first, dense) for p, first in zip(models, firsts, strict=True)])
        successors = np.concatenate([*(p.pairs[:, 1] for p in models), [-1]]).astype(np.int64)
        return cls(
            np.ascontiguousarray(np.hstack([types, _coefficients(families, params, len(types), n_states)])),
            successors[:0] if dense else successors,
            np.concatenate([steps.reshape(-1, n_states * n_states) for steps in listed]),
            np.array([[kind_of(family), family.lowest, family.highest] for family in families]),
            np.array([_rules(p, floor) for p, floor in zip(models, floors, strict=True)]),
            np.cumsum(sizes),
            families,
            params,
        )

    @property
    def n_states(self) -> int:
        return math.isqrt(self.steps.shape[1])

    @property
    def custom(self) -> list[int]:
        """Features whose family is known to NumPy only."""
        return np.flatnonzero(self.features[:, KIND] == CUSTOM).tolist()

    def custom_densities(self, values: Floats, rows: Integers, models: Integers) -> Floats:
        """ln f of the features that are not compiled, (B, C, M).

        `values` (B, K) are the events, `rows` (B, C) their types' rows, `models` (B, C) whose rows they are.
        """
        total = np.zeros((*rows.shape, self.n_states))
        for k in self.custom:
            present = np.flatnonzero(~np.isnan(values[:, k]))
            params = {name: table[rows[present]] for name, table in self.params[k].items()}
            density = self.families[k].log_density(values[present, k][:, None, None], params)
            total[present] += np.maximum(density, self.rules[models[present], LOG_FLOOR][..., None])
        return total


def _all_steps(parameters: Parameters) -> Floats:
    """a[i, j | ψ, ω] of all pairs, the unknown type last, ((m + 1)², M, M)."""
    m, n_states = parameters.n_types, parameters.n_states
    before, after = np.divmod(np.arange((m + 1) ** 2), m + 1)
    if parameters.marginal is not None:
        return parameters.transmat_of(before, after)
    # Without marginals the unknown type is refused, and its places are not used.
    table = np.zeros((len(before), n_states, n_states))
    known = (before < m) & (after < m)
    table[known] = parameters.transmat_of(before[known], after[known])
    return table


def _rows(parameters: Parameters, first_pair: int, dense: bool) -> Floats:
    """All columns but the emissions' of one model, (m + 1, HEAD + M + 2M²)."""
    m, n_states = parameters.n_types, parameters.n_states
    square = n_states * n_states
    rows = np.zeros((m + 1, HEAD + n_states + 2 * square))
    if dense:
        rows[:, FIRST_PAIR] = first_pair + np.arange(m + 1) * (m + 1)
    else:
        before = parameters.pairs[:, 0]
        rows[:m, FIRST_PAIR] = first_pair + np.searchsorted(before, np.arange(m))
        rows[:m, END_PAIR] = first_pair + np.searchsorted(before, np.arange(m), side="right")
    rows[:m, LEAVING] = parameters.chain.leaving
    rows[:m, ENTERING] = parameters.chain.entering
    start = parameters.start_table
    rows[: len(start), HEAD : HEAD + n_states] = start
    if parameters.marginal is not None:
        marginal = parameters.marginal
        both = marginal.transmat.reshape(1, square)
        rows[:, HEAD + n_states : HEAD + n_states + square] = np.vstack(
            [marginal.transmat_from.reshape(m, square), both]
        )
        rows[:, HEAD + n_states + square :] = np.vstack([marginal.transmat_to.reshape(m, square), both])
    return rows


def _rules(parameters: Parameters, floor: float | None) -> tuple[float, float, float]:
    rule = parameters.smoothing.transitions
    share = BY_FREQUENCY if isinstance(rule, str) else rule
    if share is None or parameters.marginal is None:
        share = NO_SMOOTHING
    return -math.inf if floor is None else math.log(floor), share, parameters.smoothing.weights == "proper"


def _stacked(models: Sequence[Parameters], feature: int) -> Params:
    """The parameters of one feature in all models; a model without marginals repeats its last type."""
    tables = [parameters.emission_tables[feature].params for parameters in models]
    rows = [np.minimum(np.arange(p.n_types + 1), len(p.start_table) - 1) for p in models]
    return {
        name: np.concatenate([table[name][row] for table, row in zip(tables, rows, strict=True)])
        for name in tables[0]
    }


def _coefficients(families: list[Family], params: list[Params], n_rows: int, n_states: int) -> Floats:
    """(R, K·M·COEFFICIENTS); zeros for families that are not compiled."""
    table = np.zeros((n_rows, len(families), n_states, COEFFICIENTS))
    for k, family in enumerate(families):
        if kind_of(family) != CUSTOM:
            table[:, k] = coefficients_of(family, params[k])
    return table.reshape(n_rows, -1)
