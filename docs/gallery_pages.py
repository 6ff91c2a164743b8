"""How the gallery's pages are made from the scripts in docs/examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from cycler import cycler
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst  # type: ignore[import-untyped]

from keydyn.figures.style import COLOURS, SETTINGS

DPI = 200
# Examples in the order in which they are shown; others come after them.
ORDER = (
    "who_is_typing",
    "is_it_who_they_say",
    "is_it_still_them",
    "how_much_typing",
    "one_sample",
    "strangers",
    "operating_point",
    "hidden_states",
    "many_models",
    "how_many_states",
    "which_family",
    "does_the_model_fit",
    "bad_recordings",
    "lost_keys",
    "commits",
    "mail",
    "clinic",
    "machine",
    "clicks",
)


def figures_in(names: dict[str, Any]) -> list[Figure]:
    """The figures that a script has given names to, each once, in this order."""
    return list({id(value): value for value in names.values() if isinstance(value, Figure)}.values())


def save_figures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the figures that a block has drawn, for sphinx-gallery: those of pyplot and all others alike."""
    names, paths = block_vars["example_globals"], block_vars["image_path_iterator"]
    shown: set[int] = block_vars.setdefault("shown", set())
    pages = []
    for figure in figures_in(names):
        if id(figure) not in shown:
            shown.add(id(figure))
            path = Path(next(paths))
            figure.savefig(path, dpi=DPI)
            pages.append(figure_rst([path], gallery_conf["src_dir"], _titles(figure)))
    return "\n".join(pages)


def house_style(gallery_conf: dict[str, Any], name: str) -> None:
    """Draw every example in the house style."""
    plt.close("all")
    mpl.use("Agg")
    mpl.rcdefaults()
    mpl.rcParams.update(SETTINGS | {"axes.prop_cycle": cycler(color=COLOURS)})


class Order:
    """The key by which sphinx-gallery sorts the examples of a section."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        stem = Path(name).stem
        return (ORDER.index(stem) if stem in ORDER else len(ORDER)), stem


def _titles(figure: Figure) -> str:
    """What a figure shows, for those who cannot see it."""
    return "; ".join(
        title for axes in figure.axes if (title := axes.get_title(loc="left") or axes.get_title())
    )
