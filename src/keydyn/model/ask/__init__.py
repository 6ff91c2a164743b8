"""Queries of a fitted model: likelihood, hidden states, the next emission, joint likelihood, samples."""
