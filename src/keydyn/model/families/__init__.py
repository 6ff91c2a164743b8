"""The families of emission distributions."""

from keydyn.model.families.categorical import Categorical
from keydyn.model.families.family import sums_by_type
from keydyn.model.families.gamma import Exponential, Gamma
from keydyn.model.families.location_scale import LogNormal, Normal
from keydyn.model.families.student import LogStudent, Student

__all__ = [
    "Categorical",
    "Exponential",
    "Gamma",
    "LogNormal",
    "LogStudent",
    "Normal",
    "Student",
    "sums_by_type",
]
