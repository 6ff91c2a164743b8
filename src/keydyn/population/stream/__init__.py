"""Streams that score samples key by key while they are being typed."""

from keydyn.population.stream.streams import PopulationStream, PopulationStreams

__all__ = ["PopulationStream", "PopulationStreams"]
