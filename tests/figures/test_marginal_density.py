"""The densities of states add up and lie on the histogram."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import trapezoid

from keydyn.figures.marginal_density import Typist, marginal_density_figure, state_densities, state_order
from keydyn.figures.style import save_figure
from keydyn.model import POHMM, Sequences


@pytest.fixture(scope="module")
def typist() -> Typist:
    """Two keys; state 1 is the faster one in the second feature, as published settings may leave it."""
    scale = np.full((2, 2), 0.3)
    model = POHMM.from_parameters(
        ["a", "b"],
        startprob=[[0.5, 0.5], [0.5, 0.5]],
        transmat=np.full((2, 2, 2, 2), 0.5),
        emission=[
            ("lognormal", np.log([[80.0, 120.0], [90.0, 130.0]]), scale),
            ("lognormal", np.log([[900.0, 150.0], [800.0, 200.0]]), scale),
        ],
        event_startprob=[0.5, 0.5],
        event_transmat=[[0.5, 0.5], [0.5, 0.5]],
    )
    model._state = replace(model._state, feature_names=("duration", "tau"))
    X, events, _ = model.sample(n_events=4000, random_state=0)
    encoded = Sequences.from_arrays(X, events, [4000])
    sequences = Sequences(
        encoded.X, encoded.codes, encoded.event_types, encoded.offsets, ("duration", "tau"), encoded.names
    )
    return Typist("Own, user $1", model, sequences)


def test_densities_are_the_mixture_over_keys_and_add_up_to_one(typist):
    x = np.geomspace(1.0, 1e5, 4001)
    density = state_densities(typist.model, 1, x)
    assert trapezoid(density.sum(axis=0), x) == pytest.approx(1.0, abs=1e-5)
    # Each state has half of the events here, each key half of those.
    own = [np.exp(-0.5 * (np.log(x / m) / 0.3) ** 2) / (x * 0.3 * np.sqrt(2 * np.pi)) for m in (150.0, 200.0)]
    np.testing.assert_allclose(density[1], (own[0] + own[1]) / 4, rtol=1e-9)


def test_the_faster_state_is_the_active_one(typist):
    assert state_order(typist.model, 1).tolist() == [1, 0]
    assert state_order(typist.model, 0).tolist() == [0, 1]


def test_lines_lie_on_the_bars(typist):
    """4000 events drawn from the model itself: a share's standard deviation is below 0.008."""
    figure = marginal_density_figure([typist])
    assert len(figure.axes) == 2
    for axes in figure.axes:
        lines = {line.get_label(): line.get_xydata() for line in axes.lines}
        assert list(lines) == ["active state", "passive state"]
        for points, bars in zip(lines.values(), axes.containers, strict=True):
            middle = [bar.get_x() * np.sqrt(1.2) for bar in bars]
            heights = np.array([bar.get_height() for bar in bars])
            np.testing.assert_allclose(np.interp(middle, *points.T), heights, atol=0.02)
            assert heights.sum() == pytest.approx(0.5, abs=0.03)
    active, passive = figure.axes[0].lines
    assert active.get_xdata()[active.get_ydata().argmax()] < passive.get_xdata()[passive.get_ydata().argmax()]


def test_density_figure_is_the_same_each_time_and_names_are_text(typist, tmp_path):
    figures = [marginal_density_figure([typist, typist]) for _ in range(2)]
    files = [save_figure(figure, tmp_path / at, "d") for figure, at in zip(figures, "ab", strict=True)]
    first, second = ([path.read_bytes() for path in paths] for paths in files)
    assert first == second


def test_what_cannot_be_drawn_is_reported(typist):
    with pytest.raises(ValueError, match="nothing to draw"):
        marginal_density_figure([])
    with pytest.raises(ValueError, match="no feature 'pressure'; there are duration, tau"):
        marginal_density_figure([typist], ["pressure"])
