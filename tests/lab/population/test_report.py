"""The figures of the population study: curves over a number, differences, and who fails."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.evaluation.rates.confidence import Estimate
from keydyn.lab.drawing.curves import labelled, user_curves_figure
from keydyn.lab.drawing.panels import Curve, intervals_figure
from keydyn.lab.population.report import changed_typing_figure
from tests.lab.drawing.test_panels import HOSTILE, drawn, legend_texts, lines_of


def test_a_row_per_figure_and_a_column_per_dataset(tmp_path):
    x = np.array([1.0, 2.0, 5.0])
    panels = {
        dataset: {"accuracy": {"pohmm": Curve(x, x / 10, x / 20, x / 5), "population": Curve(x, x / 5)}}
        | {"equal error rate": {"pohmm": Curve(x, 0.1 / x), "population": Curve(x, 0.05 / x)}}
        for dataset in ("keypad", "fable", "own")
    }
    figure = drawn(user_curves_figure(panels, "samples enrolled"), tmp_path)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Keypad", "Fable", "own", "", "", ""]
    assert [axes.get_ylabel() for axes in figure.axes[::3]] == ["accuracy", "equal error rate"]
    assert [bool(axes.get_xlabel()) for axes in figure.axes] == [False] * 3 + [True] * 3
    np.testing.assert_array_equal(lines_of(figure.axes[1])["POHMM"], np.column_stack([x, x / 10]))
    assert {axes.get_ylim() for axes in figure.axes[:3]} == {figure.axes[0].get_ylim()}
    assert legend_texts(figure) == ["POHMM", "Population model"]
    with pytest.raises(ValueError, match="nothing to draw"):
        user_curves_figure({}, "x")


def test_labels_have_room_and_both_ends_have_one():
    assert labelled([5, 7, 10, 20, 50, 100, 200, 500]) == [5, 20, 50, 200, 500]
    assert labelled([5, 7, 10, 11]) == [5, 7, 11]
    assert labelled([1]) == [1]


def test_differences_may_be_below_zero(tmp_path):
    rows = {"without tempo": Estimate(0.02, 0.01, 0.03), "without slopes": Estimate(-0.01, -0.02, 0.0)}
    figure = drawn(intervals_figure({"own": {"accuracy lost": rows}}, "lost"), tmp_path)
    low, high = figure.axes[0].get_xlim()
    assert low < -0.02
    assert high > 0.03
    assert [0.0, 0.0] in [list(line.get_xdata()) for line in figure.axes[0].lines], "zero is marked"


def test_the_worst_are_named_once_in_each_panel(tmp_path):
    names = ["ann", "bob", *HOSTILE]
    n = np.arange(len(names), dtype=float)
    users = pd.DataFrame({"eer": n / 10, "change": n, "nearest": -n}, index=names)
    figure = drawn(
        changed_typing_figure(users, ["bob", HOSTILE[0]], {"change": "a", "nearest": "b"}), tmp_path
    )
    for axes in figure.axes:
        assert [text.get_text() for text in axes.texts] == ["bob", r"\$x^2\$ and \$y"]
        assert sum(len(line.get_xdata()) for line in axes.lines) == len(names)
