"""Attacks on a running service, each of which has worked once, or might."""
