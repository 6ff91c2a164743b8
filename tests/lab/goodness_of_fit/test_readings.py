"""The readings of the test of fit, on simulated typists."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn import POHMM
from keydyn.lab.frame.study_data import intervals_by_user, pattern
from keydyn.lab.goodness_of_fit.readings import (
    READINGS,
    Reading,
    area_by_type,
    fits_of,
    main,
    one_person,
    p_values,
    rates,
    read_as,
    sequences_by_user,
    summary,
    without_ties,
)
from keydyn.model.check import goodness


@pytest.fixture(scope="module")
def table(keystrokes):
    return next(iter(sequences_by_user(keystrokes).values()))


def test_the_first_reading_is_that_of_the_study(keystrokes, table):
    expected = next(iter(intervals_by_user(keystrokes).values()))
    sequences = read_as(table, Reading(), np.random.default_rng(0))
    np.testing.assert_array_equal(sequences.X, expected.X)
    assert (sequences.labels() == expected.labels()).all()
    plan = goodness.SurrogatePlan(20)
    study = goodness.refits(pattern("pohmm", "published"), expected, np.random.default_rng(3), plan)
    ours = fits_of("pohmm", Reading(), sequences, 20, np.random.default_rng(3))
    found = p_values(ours, ["exact", "printed", "states"])
    for marginal in ("exact", "printed", "states"):
        assert found[marginal] == goodness.judged_by_areas(study, 0, "auto", marginal).p_value


def test_the_area_by_type_is_that_of_each_type_alone():
    """By quadrature on a fine grid, of a model with states that differ by type."""
    random = np.random.default_rng(0)
    events = random.choice(["a", "b", "c"], 300)
    slow = random.random(300) < np.where(events == "c", 0.6, 0.2)
    x = np.exp(np.where(slow, 6.0, 5.0) + 0.3 * (events == "b") + 0.2 * random.standard_normal(300))
    sequences = POHMM()._as_sequences(x[:, None], events, None)
    model = POHMM().fit(sequences)
    total = 0.0
    grid = np.linspace(0.0, 4000.0, 400_001)
    for w, name in enumerate(model.event_types_):
        own = np.sort(x[events == name])
        emission = model.emission_[0]
        # The states' shares along these events, from the fitted chain of states.
        share = model.stationary_[w] / model.stationary_[w].sum()
        params = {key: values[w] for key, values in emission.params.items()}
        of_model = emission.distribution.cdf(grid[:, None], params) @ share
        empirical = np.searchsorted(own, grid, side="right") / len(own)
        total += len(own) * np.abs(of_model - empirical).sum() * (grid[1] - grid[0])
    # Steps of 0.01 ms, at each of which the sum is wrong by at most their height.
    assert area_by_type(model._parameters, sequences, 0) == pytest.approx(total / 300, rel=2e-3)


def test_of_one_type_it_is_the_area_of_the_marginal():
    x = np.random.default_rng(1).lognormal(5.0, 0.4, (200, 1))
    sequences = POHMM()._as_sequences(x, None, None)
    model = POHMM().fit(sequences)
    (expected,) = goodness.areas_of(model._parameters, sequences, [False])
    assert area_by_type(model._parameters, sequences, 0) == pytest.approx(expected, rel=1e-12)


def test_ties_are_broken_and_nothing_else_is_moved():
    values = np.array([16.0, 16.0, 31.0, 47.0, 47.0, 47.0, 900.0])
    moved = without_ties(values, np.random.default_rng(0))
    assert len(np.unique(moved)) == len(values)
    assert (moved[[2, 6]] == [31.0, 900.0]).all()
    # Within half the way to the neighbours, 31 below and 900 above.
    assert ((moved[3:6] > 39.0) & (moved[3:6] < 473.5)).all()
    assert (moved[:2] > 8.0).all()
    np.testing.assert_array_equal(without_ties(np.full(3, 5.0), np.random.default_rng(0)), 5.0)


def test_how_long_surrogates_are(table):
    random = np.random.default_rng(0)
    lengths = {}
    for name in ("as in the study", "one sample", "session, surrogates of one sample"):
        sequences = read_as(table, READINGS[name], random)
        found = fits_of("pohmm", READINGS[name], sequences, 2, random)
        lengths[name] = (found.data[1].n_events, found.first[0][1].n_events)
    # Two samples of 40 keys, each without the first.
    assert lengths == {
        "as in the study": (78, 78),
        "one sample": (39, 39),
        "session, surrogates of one sample": (78, 39),
    }


def test_what_is_fitted_again_and_how(table):
    random = np.random.default_rng(0)
    sequences = read_as(table, Reading(), random)
    found = fits_of("pohmm", READINGS["surrogates not fitted again"], sequences, 2, random)
    assert all(one is found.data[0] for one, _ in found.first)
    found = fits_of("pohmm", READINGS["smoothed, but not in the refit"], sequences, 2, random)
    assert [found.data[0].smoothing, found.first[0][0].smoothing] == ["frequency", None]
    found = fits_of("pohmm", READINGS["never smoothed"], sequences, 2, random)
    assert [found.data[0].smoothing, found.first[0][0].smoothing] == [None, None]


def test_both_features_together(table):
    random = np.random.default_rng(0)
    sequences = read_as(table, READINGS["interval and hold"], random)
    assert sequences.n_features == 2
    found = fits_of("pohmm", READINGS["interval and hold"], sequences, 19, random)
    each = goodness.judged_by_areas(found, 0, "linear", "printed")
    surrogates, data = each.surrogate_areas.sum(axis=1), each.areas.sum()
    far = np.abs(surrogates - surrogates.mean()) >= abs(data - surrogates.mean())
    assert p_values(found, ["exact", "printed"])["printed, both"] == (far.sum() + 1) / 20


def test_a_person_has_a_row_for_each_statistic(table):
    labels = {"dataset": "fable", "model": "hmm", "reading": "ties broken", "user": 0}
    rows = pd.DataFrame(one_person(table, labels, 19, 0))
    assert rows["statistic"].tolist() == ["exact"]
    assert rows["p"].between(1 / 20, 1.0).all()


def test_rates_by_hand():
    tests = pd.DataFrame(
        [
            {"reading": "r", "statistic": "exact", "dataset": "fable", "model": model, "p": p}
            for model, ps in (("hmm", [0.01, 0.5]), ("pohmm", [0.05, 0.05, 0.2, 0.9]))
            for p in ps
        ]
    )
    found = rates(tests).set_index("model")
    assert found["rejected"].to_dict() == {"hmm": 0.5, "pohmm": 0.5}
    # Wilson's interval of 2 in 4, as tables have it.
    assert found.loc["pohmm", ["low", "high"]].to_numpy() == pytest.approx([0.1500, 0.8500], abs=1e-4)
    assert found["near"].all()
    line = summary(rates(tests)).iloc[0]
    assert (line["fable pohmm"], line["near"]) == ("0.50 (0.15–0.85)", "2 of 2")


@pytest.mark.slow
def test_the_program_resumes(tmp_path, capsys, made):
    arguments = ["--dataset", "simulated", "--people", "1", "--surrogates", "19", "--jobs", "1"]
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    first, parts = capsys.readouterr().out, len(made)
    assert parts == 2 * len(READINGS) - 2
    assert main([*arguments, "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out == first
    assert len(made) == parts
    assert (tmp_path / "tables" / "readings.csv").exists()
