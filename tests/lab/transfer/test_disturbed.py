"""What disturbed keys cost, on outcomes made by hand and on keys that are not disturbed at all."""

from __future__ import annotations

import pandas as pd
import pytest

from keydyn.datasets import make_typists
from keydyn.decisions import shipped_background
from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.lab.transfer import disturbed
from keydyn.lab.transfer.claims import claims_of
from keydyn.lab.transfer.disturbed import BOTH, CLEAN, STATED, Case, cases, disturbed_frame


def test_differences_are_of_the_same_people():
    """Three people with two samples each; the second person loses one of two."""
    rows = [(person, sample != 1, CLEAN, 0.0) for person in range(3) for sample in range(2)]
    rows += [
        (person, person != 1 and sample != 1, "bursts", 0.02) for person in range(3) for sample in range(2)
    ]
    frame = disturbed_frame(
        pd.DataFrame(rows, columns=["person", "accepted", "case", "share"]).assign(side=BOTH)
    )
    assert frame["disturbance"].tolist() == [CLEAN, "bursts"]
    assert frame["genuine"].tolist() == pytest.approx([0.5, 1 / 3])
    assert frame["difference"].tolist() == pytest.approx([0.0, -1 / 6])
    assert frame["difference_low"].tolist() == pytest.approx([0.0, -0.5])
    assert frame["difference_high"].tolist() == pytest.approx([0.0, 0.0])
    assert set(frame["people"]) == {3}


def test_nothing_that_happens_costs_nothing(monkeypatch):
    """Keys as they are: what is accepted is what the claims of the study say."""
    nothing = Case("as it was", 0.05, BOTH, lambda typed, share, rng: typed)
    monkeypatch.setattr(disturbed, "cases", lambda: iter([nothing]))
    typed = make_typists(4, 8, "free", 40, random_state=3)
    found = disturbed.disturbed(shipped_background(), typed)
    claims = claims_of(shipped_background(), recorded_samples(typed), 5)
    own = claims[claims["claimed"] == claims["typist"]]
    for name in (CLEAN, nothing.name):
        assert found[found["case"] == name]["accepted"].tolist() == (own["rate"] <= STATED).tolist()


def test_every_case_is_there_once():
    labels = [case[:3] for case in cases()]
    assert len(set(labels)) == len(labels) > 20
