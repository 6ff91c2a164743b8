"""Training data: checked, weighted, and laid out for a fit."""

from __future__ import annotations

import numpy as np

from keydyn.arrays import Floats, Given
from keydyn.model.data import vocabulary
from keydyn.model.data.sequences import Sequences, check_weights
from keydyn.model.data.settings import Settings
from keydyn.model.data.vocabulary import Types
from keydyn.model.families.family import Family, not_a_value
from keydyn.model.fit.batch import Batch
from keydyn.model.theta.parameters import Parameters


def training_data(
    sequences: Sequences,
    families: tuple[Family, ...],
    sample_weight: Given,
    known: Types | None = None,
    closed: bool = False,
) -> Batch:
    """Sequences with weights and codes into a vocabulary: the known types, then new ones unless it is closed.

    Sequences of weight zero are left out: they count as if they were not there. Data without any event
    type have a single one.
    """
    sequences, weights = weighted(sequences, sample_weight)
    if known is not None:
        seen = sequences.event_types[np.unique(sequences.codes[sequences.codes >= 0])]
        if vocabulary.is_single(known) and len(seen):
            raise ValueError(
                "the model was fitted without event types and cannot learn them now: fit it again"
            )
        known = known if closed else vocabulary.union(known, seen)
    check_values_present(sequences)
    return Batch.of([sequences], [weights], families, known)


def weighted(sequences: Sequences, sample_weight: Given) -> tuple[Sequences, Floats]:
    """Sequences and their weights, those of weight zero left out."""
    if sample_weight is None:
        return sequences, np.ones(len(sequences))
    weights = check_weights(sample_weight, len(sequences))
    if (weights == 0).any():
        return sequences[weights > 0], weights[weights > 0]
    return sequences, weights


def check_unchanged(current: Parameters, settings: Settings, families: tuple[Family, ...]) -> None:
    """`ValueError` if a model is to learn further with other states or families than it began with."""
    if settings.n_states != current.n_states:
        raise ValueError(f"the model has {current.n_states} states, but n_states is {settings.n_states}")
    for k, (family, wanted) in enumerate(zip(current.families, families, strict=True)):
        if family != wanted:
            raise ValueError(f"the model has {family} for feature {k}, but emission says {wanted}")


def check_domain(sequences: Sequences, families: tuple[Family, ...]) -> None:
    """`ValueError` naming the first value that its feature's family cannot emit."""
    least, largest = sequences.extremes.tolist()
    for k, family in enumerate(families):
        if type(family).outside is Family.outside and not (
            least[k] < family.lowest or largest[k] > family.highest
        ):
            continue
        outside = family.outside(sequences.X[:, k])
        if outside.any():
            row = int(np.argmax(outside))
            raise not_a_value(sequences.place(row, k), sequences.X[row, k], family)


def check_values(batch: Batch) -> None:
    """`ValueError` if some value of several models is none of its family, or a column has no value at all."""
    for k, family in enumerate(batch.families):
        if family.outside(batch.values[:, k]).any():
            raise ValueError("there are values that a family cannot emit")
    if not (batch.overall[0].weight > 0.0).all():
        raise ValueError("there are columns without a value")


def check_values_present(sequences: Sequences) -> None:
    """`ValueError` naming a column without a single value."""
    nothing = np.isnan(sequences.extremes[0])
    if nothing.any():
        k = int(np.argmax(nothing))
        name = f" ({sequences.feature_names[k]!r})" if sequences.feature_names else ""
        raise ValueError(f"column {k}{name} has no value at all: every entry is NaN")
