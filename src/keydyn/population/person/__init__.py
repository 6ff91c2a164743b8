"""Fitting a person to samples, starting from the population."""
