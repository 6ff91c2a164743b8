"""Figures, in one house style."""
