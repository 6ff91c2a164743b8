"""Formulas as drawings inside the page: they need no network, no JavaScript and no font of the reader's."""

from __future__ import annotations

import html
from typing import Any

import ziamath
from docutils import nodes
from sphinx.application import Sphinx

# Pixels; the page's text has 16.
SIZE = 17
ziamath.config.svg2 = False  # Browsers do not share glyphs between drawings.
ziamath.config.precision = 2


def setup(app: Sphinx) -> dict[str, Any]:
    """Make this the renderer of formulas that html_math_renderer can name."""
    app.add_html_math_renderer("drawn", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def drawing(latex: str, *, inline: bool) -> str:
    """A formula as SVG in the colour of the text around it, with its LaTeX for those who do not see it."""
    formula = ziamath.Latex(latex, size=SIZE, inline=inline, color="currentColor")
    svg = formula.svg()
    label = html.escape(latex, quote=True)
    style = f"vertical-align: {formula.getyofst():.2f}px"
    return svg.replace("<svg ", f'<svg role="img" aria-label="{label}" style="{style}" ', 1)


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(f'<span class="math">{drawing(node.astext(), inline=True)}</span>')
    raise nodes.SkipNode


def _display(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math">{drawing(node.astext(), inline=False)}</div>')
    raise nodes.SkipNode
