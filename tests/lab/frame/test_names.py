"""What datasets and detectors are called in tables and figures: their titles, wherever they come from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.datasets.published.catalogue import CATALOGUE
from keydyn.detectors import Detector, detector_names, make_detector, register
from keydyn.detectors import detector as registry
from keydyn.detectors.detector import detector_title
from keydyn.lab.drawing.curves import roc_figure
from keydyn.lab.drawing.panels import Curve
from keydyn.lab.frame.names import dataset_name, detector_name
from keydyn.lab.frame.table_text import latex, markdown
from keydyn.lab.frame.tables import published_beside
from tests.detectors.test_detectors import install


class Rhythm(Detector):
    """A third party's detector, which is registered by the test that needs it."""

    name, title = "rhythm-v2", "Rhythm (second version)"

    def fit(self, samples):
        return self

    def score(self, samples):
        return np.zeros(len(samples))


class Untitled(Rhythm):
    name, title = "untitled", None


@pytest.fixture
def clean_registry(monkeypatch):
    # A module that registers its detectors while the copy is in place would not do so again.
    registry.detector_names()
    monkeypatch.setattr(registry, "_DETECTORS", dict(registry._DETECTORS))


def recognition_table(*detectors):
    columns = ["dataset", "detector", "acc_mean", "acc_std", "published_acc_mean", "published_acc_std"]
    rows = [("keypad", detector, 0.5, 0.1, np.nan, np.nan) for detector in detectors]
    return published_beside("accuracy", "Accuracy", "", pd.DataFrame(rows, columns=columns), "acc")


def test_a_plug_in_shows_its_title_in_tables_and_legends(clean_registry):
    register(Rhythm)
    table = recognition_table("pohmm", "rhythm-v2")
    assert table.shown.columns.tolist() == ["Dataset", "Source", "POHMM", "Rhythm (second version)"]
    assert "| Rhythm (second version)" in markdown(table)
    assert "Rhythm (second version)" in latex(table)
    assert table.frame["detector"].tolist() == ["pohmm", "rhythm-v2"], "the CSV file keeps names"
    rates = np.linspace(0.0, 1.0, 5)
    figure = roc_figure({"keypad": {"rhythm-v2": Curve(rates, rates, rates, rates)}})
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["Rhythm (second version)"]


def test_a_plug_in_through_an_entry_point_has_its_title(clean_registry, monkeypatch, tmp_path):
    """Also in a process that has not made a detector yet, as where figures are drawn from stored scores."""
    install(tmp_path, "toy_detector:Toy")
    monkeypatch.syspath_prepend(tmp_path)
    assert detector_name("toy") == "Toy"


def test_a_plug_in_that_cannot_be_loaded_spoils_no_table(clean_registry, monkeypatch, tmp_path):
    install(tmp_path, "no_such_module:Toy")
    monkeypatch.syspath_prepend(tmp_path)
    assert detector_name("POHMM, three states") == "POHMM, three states"
    with pytest.raises(ValueError, match="cannot be loaded"):
        detector_names()


def test_every_detector_is_shown_by_its_own_title(clean_registry):
    for name in detector_names():
        assert detector_name(name) == make_detector(name).title


def test_a_detector_that_is_not_registered_has_a_title():
    """A study is given detectors as objects too."""
    assert "rhythm-v2" not in detector_names()
    assert detector_name("rhythm-v2") == Rhythm.title


def test_other_names_are_shown_as_they_are():
    assert detector_title("magic") is None
    assert detector_name("magic") == "magic"
    assert detector_name("untitled") == "untitled"
    assert detector_name(3) == "3"
    assert dataset_name("my recordings") == "my recordings"
    assert dataset_name("C++") == "C++"
    assert dataset_name("typing, 2024") == "typing, 2024"
    assert dataset_name("fable, open set") == "Fable, open set", "what was added to a known name stays"
    assert dataset_name("keypad+") == "keypad+", "there are no sensors to add"


def test_datasets_are_called_as_in_the_paper():
    names = [*CATALOGUE, "mobile+"]
    assert [dataset_name(name) for name in names] == [
        "Password",
        "Keypad",
        "Mobile",
        "Fable",
        "Essay",
        "Aalto",
        "Mobile+",
    ]
