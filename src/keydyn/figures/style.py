"""The house style: colours that stay apart for colour-blind eyes and in grey, thin axes, no boxes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

# Okabe and Ito's palette: states and series in this order.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GREY = "#6b6b6b"

SETTINGS: Any = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}


def label_log_axis(axis: Axis) -> None:
    """Label a logarithmic axis 1, 2, 5, 10 … in plain numbers."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


@contextmanager
def drawing(width: float, height: float, path: Path) -> Iterator[Figure]:
    """A figure of this size in inches, written to `path` when drawn; no window, no global state."""
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(width, height))
        FigureCanvasAgg(figure)
        yield figure
        figure.savefig(path, dpi=150)
