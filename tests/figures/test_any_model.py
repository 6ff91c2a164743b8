"""Figures of any fitted model: what is drawn is what was given."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn import HMM, POHMM
from keydyn.figures import densities_figure, residuals_figure, states_figure, transitions_figure

TYPES = ["received a long message", "sent $mail$", "meeting"]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    events = rng.choice(TYPES, 120)
    return rng.normal(size=(120, 2)), events


@pytest.fixture(scope="module")
def model(data):
    X, events = data
    return POHMM(emission="normal", tol=0.1).fit(X, events=events)


def test_states_over_time(model, data):
    X, events = data
    figure = states_figure(model, X, events=events, lengths=[20, 100], sequence=1, n_events=30)
    first, second, probabilities = figure.axes
    line = first.lines[0].get_ydata()
    np.testing.assert_array_equal(line, X[20:50, 0])
    np.testing.assert_array_equal(second.lines[0].get_ydata(), X[20:50, 1])
    # Every label in full, upright.
    labels = probabilities.get_xticklabels()
    assert [label.get_text().replace("\\$", "$") for label in labels] == events[20:50].tolist()
    assert {label.get_rotation() for label in labels} == {90.0}
    states = model.predict(X, events=events, lengths=[20, 100])[20:50]
    drawn = [len(dots.get_offsets()) for dots in first.collections]
    assert drawn == np.bincount(states, minlength=2).tolist()
    with pytest.raises(ValueError, match="n_events must be 1 to 200"):
        states_figure(model, X, events=events, n_events=0)


def test_the_others(model, data, tmp_path):
    X, events = data
    for number, figure in enumerate(
        [
            densities_figure(model, X, events=events, title="mine"),
            transitions_figure(model),
            residuals_figure(model, X, events=events, feature=1),
        ]
    ):
        figure.savefig(tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").read_bytes().startswith(b"\x89PNG")
    shown = transitions_figure(model)
    texts = [float(text.get_text()) for text in shown.axes[0].texts]
    np.testing.assert_allclose(texts, model.marginal_.transmat.ravel(), atol=0.005)
    order = np.argsort(-model.event_prob_)
    names = [label.get_text().replace("\\$", "$") for label in shown.axes[1].get_yticklabels()]
    assert names == [str(model.event_types_[w]) for w in order]


def test_a_model_without_event_types(data):
    X, _ = data
    model = HMM(emission="normal", tol=0.1).fit(X)
    assert len(states_figure(model, X).axes) == 3
    assert len(densities_figure(model, X).axes) == 2
    assert len(transitions_figure(model).axes) == 2
