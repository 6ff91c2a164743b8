"""The penalty figure shows what it is given."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.figures.penalty_over_time import draw_suspicion, penalty_figure
from keydyn.figures.style import text_of


def test_penalty_shows_the_user_the_impostors_and_the_threshold():
    genuine = np.array([0.0, 2.0, 1.0, 2.0])
    # Above 2 at indices 1, 2 and never: mean (1 + 2 + 4) / 3.
    impostors = np.array([[1, 0, 0], [3, 1, 0], [4, 5, 1], [5, 6, 2]], dtype=float)
    figure = penalty_figure(genuine, impostors, 2.0)
    (axes,) = figure.axes
    lines = {line.get_label(): line.get_xydata() for line in axes.lines}
    np.testing.assert_array_equal(lines["genuine user"], np.column_stack([[1, 2, 3, 4], genuine]))
    np.testing.assert_allclose(lines["impostors, mean"][:, 1], impostors.mean(axis=1))
    assert lines["threshold, 2"][:, 1].tolist() == [2.0, 2.0]
    np.testing.assert_allclose(lines["impostors rejected after 2 keys on average"], [[7 / 3, 2.0]])
    band = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(np.quantile(impostors[3], 0.975))
    assert len(figure.legends[0].get_texts()) == 5


def test_penalties_of_another_length_are_refused():
    with pytest.raises(ValueError, match="4 penalties of the genuine user"):
        penalty_figure(np.zeros(4), np.zeros((3, 2)), 1.0)
    with pytest.raises(ValueError, match=r"shape \(4, 0\)"):
        penalty_figure(np.zeros(4), np.zeros((4, 0)), 1.0)


def test_one_key_one_impostor(tmp_path):
    draw_suspicion(np.zeros(1), np.ones((1, 1)), 0.0, tmp_path / "penalty.png")
    assert [path.name for path in tmp_path.iterdir()] == ["penalty.png"]


def test_the_title_of_suspicions_is_not_cut(tmp_path, monkeypatch):
    titles = []
    monkeypatch.setattr(
        "keydyn.figures.penalty_over_time.penalty_figure",
        lambda *given, **more: titles.append(given[3]) or penalty_figure(*given, **more),
    )
    draw_suspicion(np.zeros(3), np.ones((3, 2)), 0.5, tmp_path / "suspicion.png")
    assert text_of(titles[0]) == titles[0]
