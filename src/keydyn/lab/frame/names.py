"""What datasets and detectors are called in tables and figures."""

from __future__ import annotations

from keydyn.datasets.published.catalogue import CATALOGUE
from keydyn.detectors import detector_title


def dataset_name(name: object) -> str:
    """The paper's name of a dataset; any other name is shown as it is.

    A plus sign behind the name of a dataset that has sensors means that they are used: "mobile+". What stands
    behind a comma is kept: "fable, open set".
    """
    text, comma, rest = str(name).partition(",")
    entry = CATALOGUE.get(text.removesuffix("+"))
    if entry is None or (text.endswith("+") and not entry.sensors):
        return str(name)
    return entry.paper_name + ("+" if text.endswith("+") else "") + comma + rest


def detector_name(name: object) -> str:
    """The title of a detector, that of a plug-in included; any other name is shown as it is."""
    return detector_title(str(name)) or str(name)
