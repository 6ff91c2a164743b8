"""Estimation of one model, of many at once, and from data in chunks."""
