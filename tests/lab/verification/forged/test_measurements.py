"""Who is judged by whom."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.lab.transfer.places import SIMULATED, Place, free_places
from keydyn.lab.verification.forged import measurements
from keydyn.lab.verification.forged.measurements import forged_pieces

NOTHING = pd.DataFrame({"user": [], "session": [], "keyname": [], "timepress": [], "timerelease": []})


def place(name):
    return Place(name, NOTHING, NOTHING, {name: "checksum"})


@pytest.mark.parametrize(
    ("here", "judged"),
    [
        (("fable", "essay", "aalto"), {"fable": ["essay"], "essay": ["fable"], "aalto": ["fable", "essay"]}),
        (("fable", "essay"), {"fable": ["essay"], "essay": ["fable"]}),
        (("fable", "aalto"), {}),
        (SIMULATED, {SIMULATED[0]: [SIMULATED[1]], SIMULATED[1]: [SIMULATED[0]]}),
        ((), {}),
    ],
)
def test_nobody_is_judged_by_their_own_place(here, judged):
    pieces = forged_pieces([place(name) for name in here], 0)
    found = {}
    for piece in pieces:
        target, sources, _ = piece.calls[0].args
        found[target.name] = [source.name for source in sources]
        assert list(piece.inputs["data"]) == [target.name, *found[target.name]]
    assert found == judged


def test_only_the_shipped_background_judges_aalto(monkeypatch):
    asked = []
    monkeypatch.setattr(
        measurements, "shipped", lambda samples, seed: asked.append(("shipped", len(samples)))
    )
    monkeypatch.setattr(measurements, "elsewhere", lambda samples, seed: asked.append(("elsewhere", 1)))
    monkeypatch.setattr(Place, "known", None)
    monkeypatch.setattr(Place, "samples", None)
    frame = pd.DataFrame({"user": np.arange(2)})
    monkeypatch.setattr(measurements, "judged", lambda *_: (frame, frame))
    for piece in forged_pieces([place(name) for name in ("fable", "essay", "aalto")], 0):
        for made in piece.calls[0]():
            assert made["user"].tolist() == ["0", "1"]
            assert len(set(made["dataset"])) == 1
    assert sorted(asked) == [("elsewhere", 1), ("elsewhere", 1), ("shipped", 2)]


def test_places_of_free_text_among_the_datasets_chosen(tmp_path):
    assert free_places(["password"], tmp_path) == ([], [])
    places, messages = free_places(None, tmp_path)
    assert places == []
    assert len(messages) == 3
    assert [one.name for one in free_places(["simulated"], None)[0]] == list(SIMULATED)
