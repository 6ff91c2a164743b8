"""Simulated typists."""
