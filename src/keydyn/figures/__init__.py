"""Figures, in one house style: those of studies, and four for any fitted model on any events."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keydyn.figures.any_model import densities_figure, residuals_figure, states_figure, transitions_figure

__all__ = ["densities_figure", "residuals_figure", "states_figure", "transitions_figure"]


def __getattr__(name: str) -> Any:
    """Import matplotlib only when a figure is asked for."""
    if name in __all__:
        return getattr(import_module("keydyn.figures.any_model"), name)
    raise AttributeError(f"module 'keydyn.figures' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
