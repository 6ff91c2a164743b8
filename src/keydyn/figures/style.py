"""The house style: colours that colour-blind readers can tell apart, also in grey, thin axes, no boxes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from keydyn.atomic import replacing

# Okabe and Ito's palette, for states and series in this order.
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
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.fontsize": 8.5,
    # Text as text, so that a PDF can be searched and edited.
    "pdf.fonttype": 42,
    "svg.hashsalt": "keydyn",
}
DPI = 200
LONGEST = 40


def label_log_axis(axis: Axis, wide: bool = False) -> None:
    """Label a logarithmic axis 1, 2, 5, 10 … in plain numbers; a `wide` one 1, 10, 100 …."""
    axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


@contextmanager
def house_style() -> Iterator[None]:
    """Apply the house style to everything drawn or saved in the block."""
    with mpl.rc_context(SETTINGS):
        yield


def blank(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, without a window or global state."""
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


def text_of(name: object, longest: int = LONGEST) -> str:
    """A name as a label: one line of limited length, never read as mathematics and never hidden."""
    text = " ".join(str(name).split())
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    return text.replace("$", r"\$") if not text.startswith("_") else " " + text.replace("$", r"\$")


def save_figure(figure: Figure, folder: str | Path, name: str) -> tuple[Path, Path]:
    """Write `<name>.pdf` and `<name>.png`, with the same bytes for the same figure; return both paths."""
    pdf, png = (Path(folder) / f"{name}{ending}" for ending in (".pdf", ".png"))
    with house_style(), warnings.catch_warnings():
        # Letters that the font lacks are drawn as boxes; the tables show them correctly.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        with replacing(pdf) as temporary:
            figure.savefig(temporary, metadata={"CreationDate": None})
        with replacing(png) as temporary:
            # Without this entry, the file would contain Matplotlib's version.
            figure.savefig(temporary, dpi=DPI, metadata={"Software": None})
    return pdf, png


@contextmanager
def drawing(width: float, height: float, path: Path) -> Iterator[Figure]:
    """Yield a figure of this size in inches, which is written to `path` after the block."""
    with house_style():
        figure = blank(width, height)
        yield figure
    write_figure(figure, path)


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure to one file, completely or not at all."""
    # A date would make the bytes of a PDF differ every time.
    metadata = {"CreationDate": None} if Path(path).suffix == ".pdf" else None
    with house_style(), replacing(path) as temporary:
        figure.savefig(temporary, dpi=150, metadata=metadata)
