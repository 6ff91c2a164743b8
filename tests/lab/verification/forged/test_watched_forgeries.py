"""Figures of watched sessions that are judged for a hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.decisions.liveness.hands import typed_beside
from keydyn.lab.forgeries import forgers
from keydyn.lab.transfer.places import load_place
from keydyn.lab.verification.forged import looking
from keydyn.lab.verification.forged.attacked import OWN
from keydyn.lab.verification.forged.watched_forgeries import (
    ATTACKS,
    Session,
    counts_interval,
    figures,
    sessions,
)
from keydyn.population import PopulationModel


@pytest.mark.parametrize(
    ("count", "low", "high"), [(0, 0.0, 3.689), (1, 0.0253, 5.572), (5, 1.623, 11.668), (10, 4.795, 18.390)]
)
def test_intervals_are_those_of_garwoods_table(count, low, high):
    assert counts_interval(count) == pytest.approx((low, high), abs=6e-4)


def test_rates_are_per_key_and_hour_until_the_lock():
    found = pd.DataFrame(
        [
            Session("a", OWN, 600, 0.05, 6, 1, False),
            Session("b", OWN, 200, 0.02, 2, 1, True),
            Session("a", "robot", 100, 0.01, 1, 1, True),
        ]
    )
    own, robot = figures(found).to_dict("records")
    assert (own["by"], own["sessions"], own["keys"]) == (OWN, 2, 800)
    assert own["called forged, of blocks"] == pytest.approx(0.25)
    assert own["locked per 1,000 keys"] == pytest.approx(1.25)
    assert own["locked per hour"] == pytest.approx(1 / 0.07)
    assert (robot["locked, of sessions"], robot["locked per 1,000 keys"]) == (1.0, pytest.approx(10.0))


def test_every_person_has_a_session_and_some_have_forged_ones():
    families = {forger.family for forger in forgers().values()}
    judges = dict.fromkeys([OWN, *families], typed_beside)
    place = load_place("simulated").samples
    found = pd.DataFrame(sessions(place[place.users < 4], PopulationModel.shipped(), judges, 2))
    counts = found["by"].value_counts()
    assert counts[OWN] == 4
    assert {name: counts[name] for name in ATTACKS} == dict.fromkeys(ATTACKS, 2)
    assert (found["keys"] <= 350).all()
    # Times that are always the same are noticed in the first block.
    assert (found.loc[found["by"] == "averages by pair", "blocks"] == 1).all()


def test_windows_lock_at_the_first_look_that_is_rare_enough(monkeypatch):
    """Two people of 250 keys: of one, the second look is rare; of the other, none is."""
    rates = iter([[0.5, 0.004], [0.5, 0.5]])
    both = [(100, 100, 250, np.array(next(rates)), np.array([100, 200])) for _ in range(2)]
    monkeypatch.setattr(looking, "looked_at", lambda *_: iter(both))
    found = looking.figures(None, None, ways=[(100, 100)]).set_index("rate")
    assert found["locked per 1,000 keys"].tolist() == pytest.approx([1000 / 450, 1000 / 450, 0.0])
    assert found["at most"].tolist() == pytest.approx([0.1, 0.05, 0.02])
