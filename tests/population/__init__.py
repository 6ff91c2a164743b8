"""Tests of keydyn.population."""
