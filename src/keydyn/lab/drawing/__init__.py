"""Figures that several studies share."""
