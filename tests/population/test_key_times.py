"""Densities of single times: they are densities, and those by which samples are scored."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import trapezoid

from keydyn.datasets import make_typists
from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.population import PopulationModel
from keydyn.population.key_times import Time, densities

TIMES = [Time("tau", "t", "h"), Time("duration", "t", "h"), Time("tau", "h", "no such key")]


@pytest.fixture(scope="module")
def known():
    model = PopulationModel.shipped()
    typed = make_typists(1, 4, text="free", n_keys=120, random_state=3)
    return model, model.enrol(recorded_samples(typed))


@pytest.mark.parametrize("time", TIMES, ids=str)
def test_they_integrate_to_one(known, time):
    """Over logarithms of milliseconds, from a microsecond to ten million hours: the tails are heavy."""
    at = np.exp(np.linspace(np.log(1e-3), np.log(3.6e13), 8_001))
    # Held to the largest value that a session may have.
    at = at[at <= 1e12]
    for column in densities(*known, time, at).T:
        assert trapezoid(column * at, np.log(at)) == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize("feature", ["tau", "duration"])
def test_they_are_those_of_samples_that_differ_in_one_time(known, feature):
    model, template = known
    at = np.array([40.0, 90.0, 170.0, 420.0])
    found = densities(model, template, Time(feature, "t", "h"), at)
    rows = []
    for session, ms in enumerate(at):
        hold = np.nan if feature == "tau" else ms
        rows.append(("", session, "t", 0.0, hold))
        # Of a hold, the interval after it is another event's.
        rows.append(("", session, "h", ms if feature == "tau" else 200.0, np.nan))
        rows.append(("", session, "no such key", 1000.0, np.nan))
    columns = ["user", "session", "keyname", "timepress", "timerelease"]
    samples = recorded_samples(pd.DataFrame(rows, columns=columns))
    terms = model.event_log_likelihoods([template, model.anyone()], samples)
    event = 1 if feature == "tau" else 0
    np.testing.assert_allclose(np.log(found), terms[event::3], rtol=1e-9, atol=1e-9)


def test_a_slow_person_is_seen_to_be_slow(known):
    model, _ = known
    typed = make_typists(1, 4, text="free", n_keys=120, random_state=3)
    slow = typed.assign(timepress=2.5 * typed["timepress"], timerelease=2.5 * typed["timerelease"])
    at = np.linspace(1.0, 3000.0, 3000)
    means = []
    for frame in (typed, slow):
        own = densities(model, model.enrol(recorded_samples(frame)), Time("tau", "t", "h"), at)[:, 0]
        means.append(np.average(np.log(at), weights=own))
    assert means[1] - means[0] == pytest.approx(np.log(2.5), rel=0.3)


def test_other_features_have_none(known):
    with pytest.raises(ValueError, match="tau and duration"):
        densities(*known, Time("pressure", "t", "h"), np.ones(1))
