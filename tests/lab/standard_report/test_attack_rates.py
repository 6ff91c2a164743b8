"""Attacks on people who are enrolled: every instrument is tried on every victim, and counted by person."""

from __future__ import annotations

import pandas as pd
import pytest

from keydyn.datasets import make_typists
from keydyn.decisions import Verifier
from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.lab.forgeries import FORGERS
from keydyn.lab.standard_report import attack_rates
from keydyn.lab.standard_report.attack_rates import TRIES, accepted_by_person, attacks_table, forged_claims


@pytest.fixture(scope="module")
def claims():
    samples = recorded_samples(make_typists(3, 5, text="copied", n_keys=60, random_state=0))
    verifier, victims = Verifier.shipped(), {}
    for user in (0, 1, 2):
        own = samples[samples.users == user]
        verifier.enrol(str(user), own[:3])
        victims[str(user)] = (own[:3], own[3:])
    few = {"robot": FORGERS["robot"], "drawn from the model": FORGERS["drawn from the model"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attack_rates, "forgers", lambda population: few)
        yield forged_claims(verifier, victims)


def test_every_instrument_meets_every_victim(claims):
    names = ["replay", "replay, jitter 5 ms", "robot", "drawn from the model"]
    assert claims["attack"].unique().tolist() == names
    assert claims.groupby("attack")["user"].agg("".join).eq("012").all()
    assert (claims["tries"] == TRIES).all()
    assert claims["accepted"].between(0, TRIES).all()


def test_the_attacker_has_what_the_instrument_can_use(claims):
    knowledge = claims.groupby("attack")["knowledge"].first()
    assert knowledge["drawn from the model"] == "the template"
    assert knowledge["replay"] == "the enrolled samples"


def test_a_replay_is_noticed(claims):
    """The enrolled samples sent again, to the bit: liveness refuses every one."""
    assert claims.loc[claims["attack"] == "replay", "accepted"].sum() == 0


def test_rates_are_means_over_people():
    rows = [("robot", "robots", "x", "ann", 2, 1), ("robot", "robots", "x", "bob", 4, 0)]
    rows += [("a", "model", "y", "ann", 2, 2), ("b", "robots", "x", "ann", 1, 1)]
    attacks = accepted_by_person(pd.DataFrame(rows, columns=attack_rates.COLUMNS))
    assert [(one["attack"], one["attempts"], one["shares"]) for one in attacks] == [
        ("robot", 6, [0.5, 0.0]),
        ("a", 2, [1.0]),
        ("b", 1, [1.0]),
    ]
    frame = attacks_table(attacks).frame
    assert frame["attack"].tolist() == ["robot", "b", "a"]
    assert frame["iapar"].tolist() == [0.25, 1.0, 1.0]
