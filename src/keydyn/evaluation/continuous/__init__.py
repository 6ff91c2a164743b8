"""Continuous verification: how soon an impostor is noticed, and how often a user is locked out."""

from keydyn.evaluation.continuous.rejection import Actions, Continuous, Times, continuous

__all__ = ["Actions", "Continuous", "Times", "continuous"]
