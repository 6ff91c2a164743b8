"""A fitted model as a table: what it shows is what the model holds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from keydyn import HMM, POHMM


@pytest.fixture(scope="module")
def model():
    return POHMM.from_parameters(
        event_types=["<b>a</b>", "long name of an event"],
        startprob=[[0.5, 0.5], [0.5, 0.5]],
        transmat=np.full((2, 2, 2, 2), 0.5),
        emission=[("normal", [[1.0, 20.0], [3.0, 40.0]], 1.0), ("lognormal", [[0.0, 1.0], [2.0, 3.0]], 0.5)],
        event_startprob=[0.25, 0.75],
        event_transmat=[[0.25, 0.75], [0.25, 0.75]],
    )


def test_it_shows_shares_and_medians(model):
    """The median of a normal distribution is its mean, that of a log-normal one exp of its log-mean."""
    summary = model.summary()
    assert summary.title == "POHMM with 2 states, normal, lognormal, 2 event types"
    assert summary.columns == [
        *("event type", "share", "state 0", "state 1"),
        *("x0, state 0", "x0, state 1", "x1, state 0", "x1, state 1"),
    ]
    rows = {row[0]: row[1:] for row in summary.rows}
    assert list(rows) == ["long name of an event", "<b>a</b>", "all"]
    assert rows["<b>a</b>"] == ["0.250", "0.500", "0.500", "1", "20", "1", f"{np.e:.4g}"]
    assert rows["long name of an event"][3:] == ["3", "40", f"{np.exp(2):.4g}", f"{np.exp(3):.4g}"]
    text = str(summary)
    assert all(len(line) == len(text.splitlines()[4]) for line in text.splitlines()[5:])


def test_notebooks_take_names_as_text(model):
    html = model.summary()._repr_html_()
    assert "&lt;b&gt;a&lt;/b&gt;" in html
    assert "<b>a</b>" not in html
    assert html.count("<tr>") == 4


def test_how_it_was_fitted():
    X = np.random.default_rng(0).normal(size=(60, 1))
    fitted = HMM(emission="normal", tol=1.0).fit(X)
    summary = fitted.summary()
    assert f"log-likelihood {fitted.log_likelihood_:.6g}" in summary.facts
    assert f"{fitted.n_iter_} iteration" in summary.facts
    assert "60 events;" in summary.facts
    assert [row[0] for row in summary.rows] == ["all"]
    with pytest.raises(NotFittedError):
        HMM().summary()


def test_a_model_with_more_parameters_than_events_says_so():
    X, events = np.random.default_rng(0).lognormal(size=(12, 1)), [*"abcdefghijkl"]
    fitted = POHMM().fit(X, events=events)
    assert fitted.n_parameters_ > 12
    assert "12 events, fewer than parameters" in fitted.summary().facts


def test_many_event_types_are_cut_by_frequency():
    rng = np.random.default_rng(0)
    events = np.concatenate([np.repeat("often", 50), np.arange(20).astype(str)])
    fitted = POHMM(n_states=1, emission="normal").fit(rng.normal(size=(70, 1)), events=events)
    rows = fitted.summary(most=3).rows
    assert rows[0][0] == "often"
    assert rows[3][0] == "… 18 more"
    assert len(rows) == 5
