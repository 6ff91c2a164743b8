"""Sphinx's configuration: python -m sphinx -W -b html docs docs/_build/html."""

import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import keydyn

sys.path.insert(0, str(Path(__file__).parent))
from command_pages import write_pages
from docstrings import as_written
from http_pages import write_http_pages
from search_excerpts import load_excerpts, write_excerpts

project = "keydyn"
author = "The keydyn developers"
copyright = "2026, The keydyn developers"
release = keydyn.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "formulas",
]
exclude_patterns = ["_build", "figures", "examples"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "drawn"

# The gallery's pages are made by running the scripts in examples; unchanged ones are not run again.
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "nested_sections": False,
    "within_subsection_order": "gallery_pages.Order",
    "image_scrapers": ("gallery_pages.save_figures",),
    "reset_modules": ("gallery_pages.house_style",),
    "capture_repr": (),
    "abort_on_example_error": True,
    "write_computation_times": False,
    "min_reported_time": 1e9,
    "show_signature": False,
    "download_all_examples": False,
    "thumbnail_size": (600, 420),
    "remove_config_comments": True,
}

html_theme = "furo"
html_title = f"keydyn {release}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["pages.css", "gallery.css"]

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
# Without it a trailing underscore of an attribute is lost.
strip_signature_backslash = True
# A single backquote is code, as everywhere in the docstrings.
default_role = "code"

napoleon_custom_sections = [("Class attributes", "params_style")]


def skip_foreign(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Methods that come from scikit-learn are documented there."""
    foreign = str(getattr(obj, "__module__", "")).startswith("sklearn.")
    return True if foreign or name.endswith("_request") else None


def leave_out_of_search(app: Sphinx, doctree: Any) -> None:
    """Design decisions answer questions that readers of the guides do not ask; the map leads to them."""
    if app.env.docname.startswith("decisions/"):
        app.env.metadata[app.env.docname]["nosearch"] = True


def setup(app: Sphinx) -> None:
    write_pages()
    write_http_pages()
    # Before napoleon, which has the default priority of 500.
    app.connect("autodoc-process-docstring", as_written, priority=400)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("doctree-read", leave_out_of_search)
    app.connect("html-page-context", load_excerpts)
    app.connect("build-finished", write_excerpts)
