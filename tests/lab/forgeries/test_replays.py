"""Replays have recorded times, in pieces that were recorded together."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.decisions.liveness.not_typed import times_of
from keydyn.lab.forgeries import CutTogether, replayed
from keydyn.lab.forgeries.replays import in_the_rhythm_of, pieces_of, shuffled
from tests.lab.forgeries.recordings import random_recording, typed

KEYS = ["a", "b", "space"]
VICTIM, OTHER = random_recording(8, 30, seed=1, keys=KEYS), random_recording(8, 30, seed=2, keys=KEYS)


def test_jitter_displaces_presses_and_releases():
    """The difference of two displacements has √2 times their deviation; a press moves both times."""
    many = np.concatenate(
        [
            times_of(replayed(VICTIM, 5.0, np.random.default_rng(seed))) - times_of(VICTIM)
            for seed in range(20)
        ]
    )
    np.testing.assert_allclose(np.nanstd(many, axis=0), np.sqrt(2) * 5.0, rtol=0.05)
    both = many[np.isfinite(many[:, 0])]
    assert np.corrcoef(both.T)[0, 1] == pytest.approx(-0.5, abs=0.05)
    np.testing.assert_array_equal(times_of(replayed(VICTIM)), times_of(VICTIM))


def test_shuffled_and_borrowed_times_are_the_ones_there_were():
    for made, source in (
        (shuffled(VICTIM, np.random.default_rng(0)), VICTIM),
        (in_the_rhythm_of(VICTIM, OTHER), OTHER),
    ):
        for f in range(2):
            there = times_of(made)[:, f]
            assert np.isin(there[np.isfinite(there)], times_of(source)[:, f]).all()
    one = shuffled(VICTIM, np.random.default_rng(0))[:1]
    np.testing.assert_array_equal(np.sort(times_of(one), axis=0), np.sort(times_of(VICTIM[:1]), axis=0))


def test_pieces_are_words_or_runs():
    texts = typed(
        ([*"ab", "space", "a"], [0] * 4, [1] * 4), (["space", "space", *"aba"], [0, 1, 1, 1, 1], [1] * 5)
    )
    assert pieces_of(texts, None).tolist() == [3, 1, 1, 1, 3]
    assert pieces_of(texts, 3).tolist() == [3, 1, 3, 2]
    assert pieces_of(texts, 1).tolist() == [1] * 9
    with pytest.raises(ValueError, match="1 key or more"):
        pieces_of(texts, 0)


@pytest.mark.parametrize("run", [None, 1, 4, 7])
def test_pieces_that_were_recorded_are_copied_whole(run):
    """Times are all different, so that each tells its place: neighbours in a piece are neighbours there."""
    times = times_of(CutTogether(run).forge(VICTIM, OTHER, np.random.default_rng(0)))
    theirs, keys = times_of(VICTIM), VICTIM.sequences.labels()
    place = {hold: n for n, hold in enumerate(theirs[:, 1].tolist())}
    source = np.array([place[hold] for hold in times[:, 1].tolist()])
    assert (keys[source] == OTHER.sequences.labels()).all()
    texts = [one.labels().tolist() for one in VICTIM.sequences]

    def was_recorded(piece):
        n = len(piece)
        return any(text[i : i + n] == piece for text in texts for i in range(len(text) - n + 1))

    begin, whole = 0, 0
    for length in pieces_of(OTHER, run).tolist():
        mine = slice(begin, begin + length)
        if was_recorded(OTHER.sequences.labels()[mine].tolist()):
            assert (np.diff(source[mine]) == 1).all()
            whole += length > 1
        rest = slice(begin + 1, begin + length)
        copied = np.isfinite(theirs[source[rest], 0]) & (np.diff(source[mine]) == 1)
        np.testing.assert_array_equal(times[rest, 0][copied], theirs[source[rest], 0][copied])
        begin += length
    assert run == 1 or whole > 5


def test_another_person_without_times_is_an_error():
    with pytest.raises(ValueError, match="no intervals"):
        in_the_rhythm_of(VICTIM, typed(("a", [0], [80])))
