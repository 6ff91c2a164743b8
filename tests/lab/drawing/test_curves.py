"""Reliability diagrams."""

from __future__ import annotations

import numpy as np
import pandas as pd

from keydyn.lab.drawing.curves import reliability_figure


def test_dots_lie_where_the_ratios_are_and_the_axes_hold_them_all():
    ten = np.log(10.0)
    table = pd.DataFrame({"stated": [-2 * ten, 0.0, 1.2 * ten], "observed": [-1 * ten, 0.1 * ten, 3.1 * ten]})
    figure = reliability_figure({"fable": table, "essay": table * 0.5})
    axes = figure.axes[0]
    np.testing.assert_allclose(axes.lines[1].get_xdata(), [-2, 0, 1.2])
    np.testing.assert_allclose(axes.lines[1].get_ydata(), [-1, 0.1, 3.1])
    assert axes.get_xlim() == (-3.5, 3.5)
    assert axes.get_ylim() == axes.get_xlim()
