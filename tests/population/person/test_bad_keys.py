"""A few keys that were recorded wrongly: how far they can move what a person's normal samples score."""

import numpy as np
import pytest

from keydyn.datasets import make_typists
from keydyn.keystrokes.one_sample import LONGEST_HOLD, SHORTEST, recorded_samples
from keydyn.lab.transfer.disturbed import caps_lock, short_holds
from keydyn.population import PopulationModel

TYPING = make_typists(6, 8, "copied", 50, random_state=4)
USERS = range(6)


@pytest.fixture(scope="module")
def people():
    return PopulationModel.shipped()


def parts(user):
    own = TYPING[TYPING["user"] == user]
    enrolled = own[own["session"] < 5].reset_index(drop=True)
    return enrolled, recorded_samples(own[own["session"] >= 5].reset_index(drop=True))


def mean_scores(people, enrolments, asked):
    """Nats of a normal sample under each enrolment."""
    templates = [people.enrol(recorded_samples(one)) for one in enrolments]
    return people.log_likelihoods(templates, asked).mean(axis=0)


@pytest.mark.parametrize("user", USERS)
def test_one_hold_has_a_bounded_influence(people, user):
    """From a tenth of a millisecond to ten minutes, on every fiftieth key of the enrolment.

    A sample of 50 keys scores tens of nats more under its own template than under another's. One key of 250
    may move that by less than one nat, and by less than three where its hold changes by a factor of e.
    """
    enrolled, asked = parts(user)
    log_holds = np.linspace(np.log(0.1), np.log(600_000.0), 79)
    for row in range(5, len(enrolled), 50):
        frames = []
        for hold in np.exp(log_holds):
            frame = enrolled.copy()
            frame.loc[row, "timerelease"] = frame.loc[row, "timepress"] + hold
            frames.append(frame)
        scores = mean_scores(people, frames, asked)
        assert np.ptp(scores) < 1.0
        possible = (log_holds > np.log(SHORTEST)) & (log_holds < np.log(LONGEST_HOLD))
        assert np.abs(np.gradient(scores[possible], log_holds[possible])).max() < 3.0


@pytest.mark.parametrize("hold", [0.5, 6.0, 12.0, 600.0, 1900.0, 60_000.0])
@pytest.mark.parametrize("user", USERS)
def test_four_presses_of_a_lock_key(people, user, hold):
    """The key is rare, so that its four presses are all that is known of it; no other key may suffer.

    Before a key's share in the person's noise was bounded, samples lost up to eight nats.
    """
    enrolled, asked = parts(user)
    rng = np.random.default_rng(1)
    pressed = caps_lock(enrolled, 4 / len(enrolled), rng)
    pressed = pressed.assign(
        timerelease=np.where(
            pressed["keyname"] == "caps_lock", pressed["timepress"] + hold, pressed["timerelease"]
        )
    )
    usual = pressed.assign(timerelease=pressed["timerelease"].where(pressed["keyname"] != "caps_lock"))
    without, with_them = mean_scores(people, [usual, pressed], asked)
    assert with_them > without - 1.0


@pytest.mark.parametrize("user", USERS)
def test_holds_that_no_hand_makes_are_as_if_not_seen(people, user):
    enrolled, asked = parts(user)
    short = short_holds(enrolled, 0.02, np.random.default_rng(2))
    lost = short.assign(
        timerelease=short["timerelease"].where(short["timerelease"] - short["timepress"] >= 10)
    )
    scores = mean_scores(people, [short, lost], asked)
    assert scores[0] == scores[1]
