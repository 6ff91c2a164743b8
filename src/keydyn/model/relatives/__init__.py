"""Relatives of the POHMM, earlier models of partial observability, on the same kernels."""
