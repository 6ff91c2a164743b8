"""What users of other libraries give: lengths in the place of y, dates, scikit-learn's scalers."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from keydyn import HMM, POHMM, ContextHMM, Sequences, intervals

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 1))


@pytest.mark.parametrize("kind", [HMM, POHMM, ContextHMM])
@pytest.mark.parametrize("lengths", [[50, 50], (99, 1), np.array([10] * 10)])
def test_lengths_in_the_place_of_y_are_recognised(kind, lengths):
    with pytest.raises(ValueError, match=r"as the lengths of sequences.*give it by name: lengths="):
        kind(emission="normal").fit(X, lengths)
    model = kind(emission="normal", tol=10.0).fit(X, lengths=lengths)
    for ask in {"score", "partial_fit"} & set(dir(kind)):
        with pytest.raises(ValueError, match="give it by name: lengths="):
            getattr(model, ask)(X, lengths)


@pytest.mark.parametrize("y", [None, np.ones(100), np.ones(100, dtype=int), [1, 2], [0] * 100, ["a", "b"]])
def test_other_values_of_y_are_ignored(y):
    """Labels of rows too, even if they add up to the number of rows."""
    model = HMM(emission="normal", tol=10.0).fit(X, y)
    assert model.score(X, y) == HMM(emission="normal", tol=10.0).fit(X).score(X)


DATES = pd.date_range("2026-01-01", periods=100, freq="250ms")


@pytest.mark.parametrize(
    "times",
    [
        DATES.to_numpy()[:, None],
        [DATES.to_numpy()[:50, None], DATES.to_numpy()[50:, None]],
        pd.DataFrame({"time": DATES, "value": 1.0}),
        [[dt.datetime(2026, 1, 1)], [dt.datetime(2026, 1, 2)]],
        [[np.datetime64("2026-01-01")], [np.datetime64("2026-01-02")]],
    ],
)
def test_dates_are_not_numbers(times):
    with pytest.raises(ValueError, match=r"holds dates; a model takes the intervals between them: keydyn\."):
        HMM(emission="normal").fit(times)


def test_neither_are_durations():
    with pytest.raises(ValueError, match="holds durations; give them as numbers"):
        HMM(emission="normal").fit((DATES - DATES[0]).to_numpy()[:, None])
    with pytest.raises(ValueError, match="holds dates"):
        Sequences.from_frame(pd.DataFrame({"time": DATES}), features=["time"])


@pytest.mark.parametrize(
    "times",
    [
        DATES,
        DATES.to_numpy(),
        DATES.to_pydatetime().tolist(),
        [str(date) for date in DATES],
        pd.Series(DATES),
    ],
)
def test_intervals_of_dates(times):
    found = intervals(times, lengths=[60, 40], unit="ms")
    assert found.shape == (100, 1)
    assert np.flatnonzero(np.isnan(found)).tolist() == [0, 60]
    assert np.nanmin(found) == np.nanmax(found) == 250.0
    assert intervals(times)[1, 0] == 0.25
    assert np.isfinite(HMM(emission="lognormal", n_states=1).fit(found, lengths=[60, 40]).log_likelihood_)


def test_intervals_of_numbers():
    np.testing.assert_array_equal(intervals([1, 4, 9, 20]), [[np.nan], [3], [5], [11]])
    for times, options, message in [
        ([2, 1], {}, "time 1 is before the one above it"),
        ([1, 2], {"lengths": [3]}, "lengths add up to 3, but there are 2 times"),
        ([1, 2], {"unit": "fortnight"}, "unit must be one of s, ms"),
        (["soon"], {}, "times cannot be read as dates"),
        ([[1, 2]], {}, "one per event"),
        ([DATES[0], pd.NaT], {}, "time 1 is missing"),
    ]:
        with pytest.raises(ValueError, match=message):
            intervals(times, **options)


LIST = [RNG.normal(loc=[5, -3], scale=[2, 9], size=(n, 2)) for n in (20, 30, 40)]
EVENTS = [RNG.choice(["a", "b"], len(x)).tolist() for x in LIST]


def test_scaling_sequences():
    """By hand: every row less the mean of all rows, by their standard deviation."""
    rows = np.concatenate(LIST)
    scaled = [(x - rows.mean(axis=0)) / rows.std(axis=0) for x in LIST]
    expected = POHMM(emission="normal").fit(scaled, events=EVENTS).score(scaled, events=EVENTS)
    data = Sequences.from_arrays(LIST, EVENTS)
    data = data.with_values(StandardScaler().fit_transform(data.X))
    assert POHMM(emission="normal").fit(data).score(data) == pytest.approx(expected)


def test_a_scaler_alone_says_what_to_do():
    model = make_pipeline(StandardScaler(), POHMM(emission="normal"))
    with pytest.raises(TypeError, match="with_values takes others, such as scaled ones"):
        model.fit(Sequences.from_arrays(LIST, EVENTS))
