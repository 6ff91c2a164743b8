"""What the plots of scores show: lines at the places that the numbers say."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.lab.drawing.panels import Curve
from keydyn.lab.system_scores.figures import (
    PriorErrors,
    ape_figure,
    attacks_figure,
    epc_figure,
    tippett_figure,
)


def test_tippett_lines_are_shares_of_claims_with_at_least_a_score() -> None:
    genuine, impostor = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 1.5])
    figure = tippett_figure({"one": (genuine, impostor)}, ratios=False)
    own, others = figure.axes[0].get_lines()
    assert own.get_xdata() == pytest.approx(genuine)
    assert own.get_ydata() == pytest.approx([100.0, 75.0, 50.0, 25.0])
    assert others.get_ydata() == pytest.approx([100.0, 50.0])
    (axes,) = tippett_figure({"one": (np.log(10) * genuine, impostor)}, ratios=True).axes
    assert axes.get_lines()[0].get_xdata() == pytest.approx(genuine)


def test_errors_at_priors_have_a_line_each_and_none_of_the_ratios_where_there_are_none() -> None:
    odds = np.log(10) * np.array([-1.0, 0.0, 1.0])
    known = np.array([0.09, 0.5, 0.09])
    one = PriorErrors(odds, known / 4, known, known / 2)
    first, second = ape_figure({"one": one, "two": PriorErrors(odds, known / 4, known)}).axes
    assert [line.get_ydata().tolist() for line in first.get_lines()] == [
        (100 * values).tolist() for values in (known, known / 2, known / 4)
    ]
    assert len(second.get_lines()) == 2
    assert first.get_lines()[0].get_xdata() == pytest.approx([-1.0, 0.0, 1.0])


def test_the_line_of_equal_rates_is_where_both_are_equal() -> None:
    curve = Curve(np.array([0.001, 0.1, 1.0]), np.array([0.2, 0.6, 1.0]))
    (axes,) = attacks_figure({"one": {"robot": curve}}).axes
    equal, robot = axes.get_lines()
    assert equal.get_xdata() == pytest.approx(equal.get_ydata())
    # A straight line on a logarithmic axis would be another one.
    assert len(equal.get_xdata()) > 50
    assert robot.get_ydata() == pytest.approx(curve.y)
    assert axes.get_xscale() == "log"


def test_the_expected_performance_has_a_band() -> None:
    y = np.array([0.3, 0.1, 0.4])
    (axes,) = epc_figure({"": {"one": Curve(np.array([0.1, 0.5, 0.9]), y, y - 0.05, y + 0.05)}}).axes
    assert axes.get_lines()[0].get_ydata() == pytest.approx(y)
    assert len(axes.collections) == 1
