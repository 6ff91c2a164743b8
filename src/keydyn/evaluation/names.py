"""What datasets and detectors are called in tables and figures."""

from __future__ import annotations

from keydyn.datasets.catalogue import CATALOGUE
from keydyn.detectors import detector_title


def dataset_name(name: object) -> str:
    """The paper's name of a dataset; any other name is shown as it is.

    A plus sign behind the name of a dataset that has sensors means that they are used: "mobile+".
    """
    text = str(name)
    entry = CATALOGUE.get(text.removesuffix("+"))
    if entry is None or (text.endswith("+") and not entry.sensors):
        return text
    return entry.paper_name + ("+" if text.endswith("+") else "")


def detector_name(name: object) -> str:
    """The title of a detector, that of a plug-in included; any other name is shown as it is."""
    return detector_title(str(name)) or str(name)
