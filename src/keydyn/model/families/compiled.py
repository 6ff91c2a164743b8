"""The mapping from emission families to the codes and table layouts of the compiled engine."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from keydyn.arrays import Integers
from keydyn.model.engine.densities import (
    CATEGORICAL,
    CUSTOM,
    EXPONENTIAL,
    GAMMA,
    KIND,
    N_COEFFICIENTS,
    NORMAL,
    STUDENT,
)
from keydyn.model.engine.layout import Variant, variant_of
from keydyn.model.families.categorical import Categorical
from keydyn.model.families.family import Family
from keydyn.model.families.gamma import Exponential, Gamma
from keydyn.model.families.location_scale import LogNormal, LogScale, Normal
from keydyn.model.families.student import LogStudent, Student

KINDS: dict[type[Family], int] = {
    Normal: NORMAL,
    LogNormal: NORMAL,
    Student: STUDENT,
    LogStudent: STUDENT,
    Gamma: GAMMA,
    Exponential: EXPONENTIAL,
    Categorical: CATEGORICAL,
}


def kind_of(family: Family) -> int:
    """The engine's code for this family; CUSTOM if the engine must call the family's own methods.

    A subclass that is not in `KINDS` itself is custom too, because it may override anything.
    """
    if isinstance(family, Student) and family.estimate_df:
        return CUSTOM
    return KINDS.get(type(family), CUSTOM)


@lru_cache(maxsize=64)
def features_of(families: tuple[Family, ...]) -> Integers:
    """The table that describes a model's features to the engine, (K, 4); see `engine.densities`."""
    end = np.cumsum([len(family.parameters) for family in families])
    columns = (
        [kind_of(family) for family in families],
        [isinstance(family, LogScale) for family in families],
        end - [len(family.parameters) for family in families],
        end,
    )
    return np.ascontiguousarray(np.stack(columns, axis=1), dtype=np.int64)


@lru_cache(maxsize=64)
def variant_for(n_states: int, families: tuple[Family, ...], *, in_lanes: bool = False) -> Variant:
    """The compiled variant for a model; two states with only normal or custom families get a shorter one."""
    variant = variant_of(n_states, in_lanes=in_lanes)
    is_short = n_states == 2 and all(kind_of(family) in (NORMAL, CUSTOM) for family in families)
    return (*variant, ()) if is_short else variant


@lru_cache(maxsize=64)
def width_of(families: tuple[Family, ...]) -> int:
    """The number of values that the engine keeps for each feature, event type and state."""
    sizes = [len(family.parameters) + 1 for family in families if isinstance(family, Categorical)]
    return max([N_COEFFICIENTS, *sizes])


@lru_cache(maxsize=64)
def custom_features(families: tuple[Family, ...]) -> tuple[int, ...]:
    """The indices of features whose family the engine does not implement."""
    return tuple(np.flatnonzero(features_of(families)[:, KIND] == CUSTOM).tolist())
