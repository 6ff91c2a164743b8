"""Figures in one house style: those of studies, and four for any fitted model and any events."""

from typing import TYPE_CHECKING

from keydyn.on_demand import on_demand

if TYPE_CHECKING:
    from keydyn.figures.any_model import densities_figure, residuals_figure, states_figure, transitions_figure

__all__ = ["densities_figure", "residuals_figure", "states_figure", "transitions_figure"]
__getattr__, __dir__ = on_demand(__name__, {".any_model": " ".join(__all__)})
