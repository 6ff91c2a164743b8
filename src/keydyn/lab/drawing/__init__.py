"""Figures that several studies draw."""
