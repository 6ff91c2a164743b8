"""The emission families."""

from keydyn.model.families.categorical import Categorical
from keydyn.model.families.exponential import Exponential
from keydyn.model.families.gamma import Gamma
from keydyn.model.families.normal import LogNormal, Normal
from keydyn.model.families.student import LogStudent, Student

# Those that are compiled as they are; one derived from them may differ in anything.
COMPILED = (Normal, LogNormal, Student, LogStudent)

__all__ = ["COMPILED", "Categorical", "Exponential", "Gamma", "LogNormal", "LogStudent", "Normal", "Student"]
