"""The former name of `keydyn.commands.terminal`, for `keydyn.demo` until its import is changed."""

from keydyn.commands.terminal import progress_bar

__all__ = ["progress_bar"]
