"""Figures of panels and lines: the data, labels and bands that they must show, whatever names they get."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from scipy.stats import norm

from keydyn.evaluation.rates.confidence import Estimate
from keydyn.figures.style import save_figure
from keydyn.lab.continuous.report import rejection_figure
from keydyn.lab.drawing.curves import cmc_figure, det_figure, roc_figure
from keydyn.lab.drawing.panels import PENS, Curve, intervals_figure, pens_of

DETECTORS = tuple(PENS)
HOSTILE = ["$x^2$ and $y", "_hidden", "a very long name of a detector " * 5, "[/b]\n<b>", "100 % & more"]
RATES = np.linspace(0.0, 1.0, 21)


def curve(power: float = 0.3) -> Curve:
    y = RATES**power
    return Curve(RATES, y, np.clip(y - 0.1, 0, 1), np.clip(y + 0.1, 0, 1))


def panels(datasets, detectors=DETECTORS):
    return {name: {d: curve(0.1 + 0.1 * n) for n, d in enumerate(detectors)} for name in datasets}


def drawn(figure: Figure, folder) -> Figure:
    """Drawn without a warning; both files are there."""
    assert all(path.stat().st_size > 1000 for path in save_figure(figure, folder, "figure"))
    return figure


def lines_of(axes) -> dict[str, np.ndarray]:
    return {line.get_label(): line.get_xydata() for line in axes.lines if line.get_label()[0] != "_"}


def legend_texts(figure: Figure) -> list[str]:
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


@pytest.mark.parametrize("n", [1, 2, 4, 7])
def test_one_panel_per_dataset_and_nothing_else(n, tmp_path):
    names = [f"set {k}" for k in range(n)]
    figure = drawn(roc_figure(panels(names)), tmp_path)
    assert [axes.get_title(loc="left") for axes in figure.axes] == names


def test_labels_stand_left_and_at_the_foot_of_each_column():
    figure = roc_figure(panels([f"set {k}" for k in range(5)]))
    assert [bool(axes.get_ylabel()) for axes in figure.axes] == [True, False, False, True, False]
    assert [bool(axes.get_xlabel()) for axes in figure.axes] == [False, False, True, True, True]


def test_panels_with_a_label_show_their_numbers():
    """A panel above an empty place has its own numbers, though it shares its axis."""
    figure = roc_figure(panels([f"set {k}" for k in range(5)]))
    figure.canvas.draw()
    shown = [any(tick.label1.get_visible() for tick in axes.xaxis.get_major_ticks()) for axes in figure.axes]
    assert shown == [False, False, True, True, True]


def test_roc_has_every_detector_with_its_values_and_band():
    figure = roc_figure(panels(["keypad", "fable"]))
    for axes in figure.axes:
        lines = lines_of(axes)
        assert list(lines)[:3] == ["Manhattan", "Manhattan (scaled)", "SVM (one-class)"]
        assert list(lines)[3:] == ["HMM", "POHMM", "POHMM (recommended)", "Population model"]
        np.testing.assert_array_equal(lines["POHMM"], np.column_stack([RATES, RATES**0.5]))
        bands = [c for c in axes.collections if isinstance(c, PolyCollection)]
        assert len(bands) == len(DETECTORS)
        box = bands[4].get_paths()[0].vertices
        assert box[:, 1].max() == pytest.approx(1.0)
        assert box[:, 1].min() == pytest.approx(0.0)
    assert legend_texts(figure) == list(lines)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Keypad", "Fable"]


def test_det_is_on_normal_deviates():
    figure = det_figure({"own": {"hmm": Curve(np.array([0.01, 0.1, 1.0]), np.array([0.2, 0.05, 0.0]))}})
    (axes,) = figure.axes
    points = lines_of(axes)["HMM"]
    np.testing.assert_allclose(points[:2], norm.ppf([[0.01, 0.2], [0.1, 0.05]]))
    # A rate of 0 or 1 is finite, and outside.
    assert np.isfinite(points).all()
    assert points[2, 0] > axes.get_xlim()[1]
    assert points[2, 1] < axes.get_ylim()[0]
    figure.canvas.draw()
    labels = [tick.get_text() for tick in axes.get_xticklabels()]
    np.testing.assert_allclose(axes.get_xticks(), norm.ppf([float(label) / 100 for label in labels]))


def test_cmc_stops_at_the_tenth_rank():
    ranks = np.arange(1.0, 31.0)
    figure = cmc_figure({"own": {"pohmm": Curve(ranks, 1 - 0.5**ranks)}})
    (axes,) = figure.axes
    np.testing.assert_array_equal(lines_of(axes)["POHMM"][:, 0], np.arange(1, 11))
    assert 1 in axes.get_xticks()
    with pytest.raises(ValueError, match="no rank up to 10"):
        cmc_figure({"own": {"pohmm": Curve(ranks + 10, ranks)}})


def test_cmc_of_one_candidate(tmp_path):
    drawn(cmc_figure({"own": {"pohmm": Curve(np.ones(1), np.ones(1))}}), tmp_path)


def test_rejection_is_the_empirical_distribution_and_ends_below_one():
    times = np.array([3.0, 1.0, 3.0, np.inf])
    figure = rejection_figure({"own": {"pohmm": times}})
    points = lines_of(figure.axes[0])["POHMM"]
    np.testing.assert_allclose(points[:-1], [[0, 0], [1, 0.25], [3, 0.75]])
    assert points[-1, 1] == 0.75
    with pytest.raises(ValueError, match="no rejection times"):
        rejection_figure({"own": {"pohmm": np.array([])}})
    with pytest.raises(ValueError, match="infinite where there was none"):
        rejection_figure({"own": {"pohmm": np.array([1.0, np.nan])}})


def test_rejection_when_nobody_is_or_all_are_at_once(tmp_path):
    drawn(rejection_figure({"a": {"pohmm": np.array([np.inf])}, "b": {"pohmm": np.zeros(3)}}), tmp_path)


def test_intervals_show_both_series_and_say_what_has_no_number(tmp_path):
    known, none = Estimate(0.1, 0.05, 0.2), Estimate(np.nan, np.nan, np.nan)
    data = {"own": {"closed set": {"hmm": known, "pohmm": known}, "open set": {"hmm": none}}}
    figure = drawn(intervals_figure(data, "equal error rate"), tmp_path)
    (axes,) = figure.axes
    spans = [line.get_xdata() for line in axes.lines]
    assert sum(list(span) == [0.05, 0.2] for span in spans) == 2
    assert sum(list(span) == [0.1] for span in spans) == 2
    assert [text.get_text() for text in axes.texts] == ["not supported"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["HMM", "POHMM"]
    assert legend_texts(figure) == ["closed set", "open set"]


def test_labels_of_intervals_do_not_lie_over_each_other(tmp_path):
    """Long names of detectors make panels narrower than the label below them."""
    rows = {"manhattan-scaled": Estimate(0.1, 0.05, 0.2), "pohmm-recommended": Estimate(0.1, 0.05, 0.2)}
    for names in (["a"], ["a", "b"], [f"d{n}" for n in range(6)]):
        label = "equal error rate, mean over users"
        figure = drawn(intervals_figure({name: {"closed set": rows} for name in names}, label), tmp_path)
        figure.canvas.draw()
        boxes = [axes.xaxis.label.get_window_extent() for axes in figure.axes if axes.get_xlabel()]
        assert len(boxes) == min(len(names), 3)
        for place, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[:place])


def test_no_interval_is_cut_off(tmp_path):
    """The second panel reaches further than the first."""
    one, other = ({"hmm": Estimate(0.1, 0.05, high)} for high in (0.2, 0.5))
    figure = drawn(intervals_figure({"a": {"closed set": one}, "b": {"closed set": other}}, "rate"), tmp_path)
    assert all(axes.get_xlim()[0] == 0.0 and axes.get_xlim()[1] > 0.5 for axes in figure.axes)


@pytest.mark.parametrize("draw", [roc_figure, det_figure])
def test_names_are_shown_as_they_are(draw, tmp_path):
    figure = drawn(draw(panels(HOSTILE, HOSTILE)), tmp_path)
    texts = legend_texts(figure)
    assert [text.replace(r"\$", "$").strip()[:8] for text in texts] == [
        " ".join(name.split())[:8] for name in HOSTILE
    ]
    assert all(len(text) < 50 for text in texts)


def test_names_in_other_scripts_do_not_stop_the_work(tmp_path):
    drawn(roc_figure(panels(["李"], ["检测器"])), tmp_path)


def test_a_detector_has_the_same_pen_alone_and_among_others():
    assert pens_of(["hmm"])["hmm"] == pens_of(["own", *DETECTORS])["hmm"]
    assert pens_of(["own", "hmm"])["own"] != PENS["hmm"]
    many = list(pens_of([*DETECTORS, *(f"own {n}" for n in range(30))]).values())
    for kind in ("dash", "marker"):
        assert len({(pen.colour, getattr(pen, kind)) for pen in many}) == len(many) == len(DETECTORS) + 30


@pytest.mark.parametrize("draw", [roc_figure, det_figure, cmc_figure, rejection_figure])
def test_nothing_to_draw_is_reported(draw):
    with pytest.raises(ValueError, match="nothing to draw"):
        draw({})
    with pytest.raises(ValueError, match="nothing to draw"):
        draw({"own": {}})


def test_no_interval_to_draw_is_reported():
    with pytest.raises(ValueError, match="nothing to draw"):
        intervals_figure({}, "x")
    with pytest.raises(ValueError, match="nothing to draw"):
        intervals_figure({"own": {"closed set": {}}}, "x")


def test_a_curve_of_unequal_arrays_is_refused():
    with pytest.raises(ValueError, match="one length above 0"):
        Curve(RATES, RATES[1:])
    with pytest.raises(ValueError, match="two ends"):
        Curve(RATES, RATES, RATES)


def test_same_figure_same_bytes(tmp_path):
    first = [path.read_bytes() for path in save_figure(roc_figure(panels(["fable"])), tmp_path / "a", "roc")]
    second = [path.read_bytes() for path in save_figure(roc_figure(panels(["fable"])), tmp_path / "b", "roc")]
    assert first == second
    assert b"CreationDate" not in first[0]
    assert first[1].startswith(b"\x89PNG")


def test_an_error_while_saving_leaves_the_old_figure(tmp_path):
    save_figure(roc_figure(panels(["fable"])), tmp_path, "roc")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    figure = roc_figure(panels(["keypad"]))

    def fail(renderer):
        raise RuntimeError("midway")

    figure.axes[0].draw = fail
    with pytest.raises(RuntimeError, match="midway"):
        save_figure(figure, tmp_path, "roc")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
