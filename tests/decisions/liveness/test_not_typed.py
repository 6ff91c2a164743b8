"""Robots are too regular, people are not, whatever their clock."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from keydyn.datasets import load_dataset, make_typists
from keydyn.decisions.decision import Evidence
from keydyn.decisions.liveness.not_typed import regularity_reason, remarks, spreads
from keydyn.keystrokes.samples import Samples
from tests.decisions.typing import samples, times


def test_robots_are_too_regular():
    random = np.random.default_rng(0)
    tau, hold = times(20, random)
    for steady in (np.full_like(tau, 180.0), 180.0 + random.normal(0.0, 5.0, tau.shape)):
        robot = spreads(samples(steady, hold))
        assert (robot[:, 0] < 1).all()
        assert (robot[:, 1] > 1).all()
        assert all("intervals between keys vary" in regularity_reason(one) for one in robot)
    held = spreads(samples(tau, np.full_like(hold, 50.0)))
    assert all("keys are held vary" in regularity_reason(one) for one in held)
    both = spreads(samples(np.full_like(tau, 180.0), np.full_like(hold, 50.0)))
    assert "between keys and the times" in regularity_reason(both[0])


def test_people_are_not():
    typists = Samples.of(make_typists(20, 5, random_state=0), kind="long text")
    found = spreads(typists)
    assert not (found < 1).any()
    assert regularity_reason(found[0]) is None


@pytest.mark.parametrize("tick", [10.0, 15.625])
def test_a_coarse_clock_is_no_robot(tick):
    """Most holds of a steady typist fall on the same tick; a robot on that clock is a robot all the same."""
    random = np.random.default_rng(1)
    tau, hold = times(200, random, spread=(0.15, 0.06), degrees=20)
    coarse = [
        np.maximum(np.round(x / tick), 1.0) * tick for x in (tau, hold.mean() + 0.2 * (hold - hold.mean()))
    ]
    assert not (spreads(samples(*coarse)) < 1).any()
    phase = random.uniform(0.0, 1.0, (50, 1))
    press = np.round((np.arange(11) * 183.0) / tick + phase) * tick
    steady = np.concatenate([np.full((50, 1), 183.0), np.diff(press, axis=1)], axis=1)
    assert (spreads(samples(steady, coarse[1][:50]))[:, 0] < 1).all()


def test_few_times_say_nothing():
    found = spreads(samples(np.full((1, 8), 100.0), np.full((1, 8), 50.0), keys=list("abcdefgh")))
    assert np.isnan(found[0, 0])
    assert found[0, 1] < 1


@pytest.mark.parametrize(("known", "is_said"), [(8, False), (6, False), (5, True), (0, True)])
def test_keys_never_seen_are_remarked_on_above_a_quarter(known, is_said):
    tau, hold = times(1, np.random.default_rng(2))
    found = remarks(samples(tau, hold), Evidence(8, known))
    assert [f"{8 - known} of 8 keystrokes are of keys never seen" in one for one in found] == [True] * is_said


@pytest.mark.parametrize("absent", ["tau", "duration"])
def test_intervals_and_holds_are_needed(absent):
    typed = Samples.of(make_typists(1, 1))
    names = typed.sequences.feature_names
    assert absent in names
    renamed = tuple("other" if name == absent else name for name in names)
    other = replace(typed, sequences=replace(typed.sequences, feature_names=renamed))
    with pytest.raises(ValueError, match=f"the samples have no feature '{absent}'"):
        spreads(other)


@pytest.mark.parametrize("name", ["keypad", "fable"])
def test_recorded_people_are_not(name, recordings):
    keystrokes = load_dataset(name, recordings).keystrokes
    found = spreads(Samples.of(keystrokes, kind="long text"))
    assert (found < 1).any(axis=1).mean() < 0.005
