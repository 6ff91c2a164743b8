"""Samples that are still being typed, scored key by key."""

from keydyn.population.stream.streams import PopulationStream, PopulationStreams

__all__ = ["PopulationStream", "PopulationStreams"]
