"""The population model: what people share and how they differ, and enrolment of a person in milliseconds."""

from keydyn.population.model import PopulationModel
from keydyn.population.shared_parameters import Template

__all__ = ["PopulationModel", "Template"]
