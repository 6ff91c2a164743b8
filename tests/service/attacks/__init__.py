"""Attacks on a running service, and their results."""
