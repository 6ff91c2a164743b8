"""The families as the engine knows them."""

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
    """What the engine calls this family; CUSTOM where only its own methods know it.

    A class derived from one of those above may differ from it in anything.
    """
    if isinstance(family, Student) and family.estimate_df:
        return CUSTOM
    return KINDS.get(type(family), CUSTOM)


@lru_cache(maxsize=64)
def features_of(families: tuple[Family, ...]) -> Integers:
    """The features of a model, (K, 4); see `engine.densities`."""
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
    """The variant of loops over features: with two states, and none but normal families, a shorter one."""
    variant = variant_of(n_states, in_lanes=in_lanes)
    is_short = n_states == 2 and all(kind_of(family) in (NORMAL, CUSTOM) for family in families)
    return (*variant, ()) if is_short else variant


@lru_cache(maxsize=64)
def width_of(families: tuple[Family, ...]) -> int:
    """How many numbers the engine keeps of a feature, an event type and a state."""
    sizes = [len(family.parameters) + 1 for family in families if isinstance(family, Categorical)]
    return max([N_COEFFICIENTS, *sizes])


@lru_cache(maxsize=64)
def custom_features(families: tuple[Family, ...]) -> tuple[int, ...]:
    """The features whose family only its own methods know."""
    return tuple(np.flatnonzero(features_of(families)[:, KIND] == CUSTOM).tolist())
