"""Relatives of the POHMM: earlier models of partial observability, computed with the same kernels."""
