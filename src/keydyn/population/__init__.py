"""A model of many people: what they share, how they differ, and one person in milliseconds."""

from keydyn.population.model import PopulationModel
from keydyn.population.shared_parameters import Template

__all__ = ["PopulationModel", "Template"]
