"""Places: pieces of long texts, keys by position, and nobody who is both learnt from and tried."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.datasets import make_typists, reported_people
from keydyn.exit_codes import UsageError
from keydyn.lab.transfer import places
from keydyn.lab.transfer.places import Place, chosen_places, load_place, pieces, with_keys_of


def test_pieces_are_cut_from_each_sample_and_numbered_within_users():
    typed = make_typists(2, 3, "free", 23)
    cut = pieces(typed, 10)
    sizes = cut.groupby(["user", "session"]).size()
    assert (sizes == 10).all()
    assert sizes.index.tolist() == [(user, session) for user in (0, 1) for session in range(6)]
    # The first twenty keystrokes of each sample, in their order; the rest of three is left out.
    kept = typed.groupby(["user", "session"]).head(20)
    for column in ("keyname", "timepress", "timerelease"):
        assert cut[column].tolist() == kept[column].tolist()


def test_pieces_of_samples_of_different_lengths():
    short, long = make_typists(1, 1, "free", 12), make_typists(1, 1, "free", 31)
    both = pd.concat([short, long.assign(session=1)], ignore_index=True)
    assert pieces(both, 10).groupby("session").size().tolist() == [10, 10, 10, 10]


def test_keys_get_the_names_of_another_place_by_position():
    one, other = (make_typists(2, 2, phrase=phrase) for phrase in ("abca", "wxyw"))
    renamed = with_keys_of(Place("mobile", one, one, {}), Place("keypad", other, other, {}))
    for typed in (renamed.learnt, renamed.tried):
        assert typed["keyname"].tolist() == list("wxyw") * 4
        assert typed["timepress"].tolist() == one["timepress"].tolist()
    longer = make_typists(2, 2, phrase="abcab")
    with pytest.raises(ValueError, match="different lengths"):
        with_keys_of(Place("mobile", one, one, {}), Place("keypad", longer, longer, {}))


def test_nobody_of_aalto_who_is_reported_is_learnt_from():
    typed = make_typists(325, 1, "free", 3)
    place = places._of_aalto(typed, {}, most=7)
    reported = reported_people(range(325))
    assert set(place.tried["user"]) == reported
    assert place.learnt["user"].nunique() == 7
    assert not set(place.learnt["user"]) & reported
    assert not place.same_people
    fresh = set(place.fresh_samples.users.tolist())
    assert len(fresh) == 7
    assert not fresh & (reported | set(place.learnt["user"]))


def test_simulated_places_have_different_people():
    one, other = chosen_places(["simulated"], None)[0]
    assert one.same_people
    assert not set(one.tried["user"]) & set(other.tried["user"])
    held = [float(np.median(place.tried["timerelease"] - place.tried["timepress"])) for place in (one, other)]
    assert held[1] > held[0]


def test_unknown_and_absent_places(tmp_path, monkeypatch):
    monkeypatch.setenv("KEYDYN_DATA", str(tmp_path))
    with pytest.raises(UsageError, match="no dataset 'nowhere'"):
        chosen_places(["nowhere"], None)
    with pytest.raises(FileNotFoundError):
        chosen_places(None, tmp_path)
    with pytest.raises(FileNotFoundError):
        load_place("fable", tmp_path)
