"""Around a fit: training data before it, and what is told of the result after it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from keydyn.arrays import Floats
from keydyn.model.ask.lattice import EventIndex
from keydyn.model.data import vocabulary
from keydyn.model.data.sequences import Sequences, check_weights
from keydyn.model.data.settings import Settings
from keydyn.model.data.smoothing_rules import normalised
from keydyn.model.data.vocabulary import SINGLE_TYPE, Types
from keydyn.model.engine import walks
from keydyn.model.engine.sums import first_outside, weighted_sums
from keydyn.model.estimation import exchange
from keydyn.model.families.family import Family
from keydyn.model.fit.result import FitResult
from keydyn.model.fit.statistics import Data
from keydyn.model.theta.parameters import Parameters


def training_data(
    sequences: Sequences,
    families: list[Family],
    sample_weight: ArrayLike | None,
    known: Types | None = None,
    closed: bool = False,
) -> Data:
    """Sequences with weights and codes into a vocabulary: the known types, then new ones unless it is closed.

    Sequences of weight zero are left out: they count as if they were not there. Data without any event
    type have a single one.
    """
    sequences, weights = weighted(sequences, sample_weight)
    seen = sequences.event_types[np.unique(sequences.codes[sequences.codes >= 0])]
    if known is not None and vocabulary.is_single(known) and len(seen):
        raise ValueError("the model was fitted without event types and cannot learn them now: fit it anew")
    if closed and known is not None:
        types = known
    elif known is not None:
        types = vocabulary.union(known, seen)
    else:
        types = seen if len(seen) else np.array([SINGLE_TYPE])
    codes, _ = vocabulary.find(sequences.codes, sequences.event_types, types)
    check_values_present(sequences)
    index = EventIndex.of(codes, sequences.offsets, len(types))
    return Data(sequences.X, index, weights, types, families)


def weighted(sequences: Sequences, sample_weight: ArrayLike | None) -> tuple[Sequences, Floats]:
    """Sequences and their weights, those of weight zero left out."""
    if sample_weight is None:
        return sequences, np.ones(len(sequences))
    weights = check_weights(sample_weight, len(sequences))
    if (weights == 0).any():
        return sequences[weights > 0], weights[weights > 0]
    return sequences, weights


def fit_at_once(
    items: Sequence[Sequences],
    families: list[Family],
    sample_weight: Sequence[ArrayLike | None],
    settings: Settings,
) -> list[FitResult | None]:
    """Fits from data alone in compiled code, states numbered.

    None where that is not possible, or where something is wrong that the other way names.
    """
    if settings.n_init > 1 or not exchange.is_covered(settings, families):
        return [None] * len(items)
    together = [weighted(item, weights) for item, weights in zip(items, sample_weight, strict=True)]
    return exchange.fit_each([item for item, _ in together], [own for _, own in together], families, settings)


def check_unchanged(current: Parameters, settings: Settings, families: list[Family]) -> None:
    """`ValueError` if a model is to go on learning with other states or families than it began with."""
    if settings.n_states != current.n_states:
        raise ValueError(
            f"the model goes on with {current.n_states} states, but n_states is {settings.n_states}"
        )
    for k, (emission, wanted) in enumerate(zip(current.emission, families, strict=True)):
        if emission.distribution != wanted:
            raise ValueError(
                f"the model goes on with {emission.distribution} for feature {k}, but emission says {wanted}"
            )


def check_domain(sequences: Sequences, families: list[Family]) -> None:
    """`ValueError` naming the first value that its feature's family cannot emit."""
    row, k = first_outside(sequences.X, *_bounds(tuple(families)))
    for place, family in enumerate(families):
        # A family with a rule of its own, such as whole numbers.
        if row < 0 and type(family).outside is not Family.outside:
            bad = np.flatnonzero(family.outside(sequences.X[:, place]))
            row, k = (int(bad[0]), place) if len(bad) else (row, k)
    if row >= 0:
        raise ValueError(
            f"{sequences.place(row, k)}: {sequences.X[row, k]} is no value of a {families[k].name} emission, "
            f"which is {families[k].domain}"
        )


@lru_cache(maxsize=64)
def _bounds(families: tuple[Family, ...]) -> tuple[Floats, Floats]:
    """The least and the largest value of each feature."""
    return np.array([family.lowest for family in families]), np.array([family.highest for family in families])


def check_values_present(sequences: Sequences) -> None:
    """`ValueError` naming a column without a single value."""
    nothing = np.isnan(sequences.X).all(axis=0)
    if nothing.any():
        k = int(np.argmax(nothing))
        name = f" ({sequences.feature_names[k]!r})" if sequences.feature_names else ""
        raise ValueError(f"column {k}{name} has no value at all: every entry is NaN")


def stationary(parameters: Parameters, data: Data) -> Floats:
    """Π[j | ω]: the share of each state among events of a type, propagated along the event sequences."""
    index = data.index
    occupancy = np.empty((len(index.codes), parameters.n_states))
    walks.propagate(
        index.offsets,
        index.start_index,
        parameters.start_table,
        index.trans_index,
        parameters.transmat_of(index.before, index.after),
        occupancy,
    )
    return normalised(weighted_sums(index.codes, parameters.n_types, occupancy * data.event_weights))
