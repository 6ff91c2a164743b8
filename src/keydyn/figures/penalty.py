"""The former name of `keydyn.figures.penalty_over_time`, for `keydyn.demo` until its import is changed."""

from keydyn.figures.penalty_over_time import draw_penalty

__all__ = ["draw_penalty"]
