"""Estimation: one model, many at once, in chunks."""
