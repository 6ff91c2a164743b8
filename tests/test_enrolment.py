"""Enrolled users: thresholds from held-out samples, and the folder that keeps them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from keydyn.detectors import make_detector
from keydyn.enrolment import Enrolled, _crossing, enrol, load_enrolled, n_fits
from keydyn.evaluation.penalty import rank_penalty
from keydyn.evaluation.scores import min_max
from keydyn.keystrokes.schema import check_keystrokes


def typed(seed=0, users=("ann", "bob", "eve"), n_samples=6, n_keys=8):
    """People who type the same eight keys at tempos of their own."""
    rng = np.random.default_rng(seed)
    rows = []
    for u, user in enumerate(users):
        for session in range(n_samples):
            press = np.cumsum(rng.lognormal(4.8 + 0.5 * u, 0.15, n_keys)).round(3)
            hold = rng.lognormal(4.2 + 0.2 * u, 0.15, n_keys).round(3)
            rows += [(user, session, "abcdefgh"[k], press[k], press[k] + hold[k]) for k in range(n_keys)]
    return check_keystrokes(
        pd.DataFrame(rows, columns=["user", "session", "keyname", "timepress", "timerelease"])
    )


@pytest.fixture(scope="module")
def enrolled():
    return enrol(typed())


def test_it_recognises_them_again(enrolled):
    later = enrolled.samples(typed(1))
    scores = enrolled.scores(later)
    assert (enrolled.users[np.argmax(scores, axis=1)] == later.users).all()
    for u, user in enumerate(enrolled.users):
        accepted = min_max(scores)[:, u] >= enrolled.thresholds[u]
        assert accepted[later.users == user].mean() > 0.8
        assert accepted[later.users != user].mean() < 0.2


@pytest.mark.parametrize(
    ("genuine", "impostor", "expected"),
    [
        ([0.9, 1.0], [0.0, 0.1], 0.5),
        ([0.2, 0.6, 1.0], [0.0, 0.4, 0.8], 0.5),
        ([0.5], [0.5], 0.5),
    ],
)
def test_a_threshold_lies_between_scores(genuine, impostor, expected):
    assert _crossing(np.array(genuine), np.array(impostor)) == pytest.approx(expected)


def test_progress_counts_every_fit():
    seen = []
    enrol(typed(n_samples=3), progress=seen.append)
    assert seen == list(range(1, n_fits(typed(n_samples=3)) + 1))
    assert len(seen) == 3 * (3 + 1)


@pytest.mark.parametrize("detector", ["hmm", "pohmm", "pohmm-recommended"])
def test_thresholds_and_scores_are_those_of_models_fitted_one_by_one(detector):
    """The definition a second time: three folds, a model for each user of each, a sample at a time."""
    frame = typed(n_samples=3)
    enrolled = enrol(frame, detector)
    samples = enrolled.samples(frame)
    scaled, penalties = np.empty((9, 3)), np.zeros(3)
    for fold in range(3):
        held_out, known = samples[samples.numbers == fold], samples[samples.numbers != fold]
        templates = [make_detector(detector).fit(known[known.users == user]) for user in enrolled.users]
        scaled[samples.numbers == fold] = min_max(
            np.stack([one.score(held_out) for one in templates], axis=1)
        )
        for n, user in enumerate(held_out.users):
            sample, u = held_out[[n]], enrolled.users.tolist().index(user)
            events = np.stack([one.score_events(sample) for one in templates], axis=1)
            penalties[u] = max(penalties[u], rank_penalty(events, sample.sequences.offsets)[:, u].max())
    thresholds = [
        _crossing(scaled[samples.users == user, u], scaled[samples.users != user, u])
        for u, user in enumerate(enrolled.users)
    ]
    np.testing.assert_allclose(enrolled.thresholds, thresholds, rtol=1e-10)
    np.testing.assert_array_equal(enrolled.penalties, penalties)
    later = enrolled.samples(typed(1))
    alone = [make_detector(detector).fit(samples[samples.users == user]) for user in enrolled.users]
    expected = np.stack([one.score(later) for one in alone], axis=1)
    np.testing.assert_allclose(enrolled.scores(later), expected, rtol=1e-10)


def test_a_folder_round_trip(enrolled, tmp_path):
    enrolled.save(tmp_path / "models")
    again = load_enrolled(tmp_path / "models")
    assert again.users.tolist() == enrolled.users.tolist()
    np.testing.assert_array_equal(again.thresholds, enrolled.thresholds)
    np.testing.assert_array_equal(again.penalties, enrolled.penalties)
    later = enrolled.samples(typed(1))
    np.testing.assert_array_equal(again.scores(later), enrolled.scores(later))
    np.testing.assert_array_equal(again.event_penalties(later), enrolled.event_penalties(later))
    assert isinstance(again, Enrolled)


def test_a_user_alone_has_no_threshold(tmp_path):
    alone = enrol(typed(users=("ann",)))
    assert np.isnan(alone.thresholds).all()
    alone.save(tmp_path)
    assert np.isnan(load_enrolled(tmp_path).thresholds).all()


def test_what_is_refused(enrolled, tmp_path):
    with pytest.raises(ValueError, match="user 'zoe' is not enrolled; enrolled are ann, bob, eve"):
        enrolled.number("zoe")
    with pytest.raises(ValueError, match="user ann has 6 samples, fewer than the 7 that are needed"):
        enrol(typed(), min_samples=7)
    with pytest.raises(ValueError, match="manhattan cannot enrol users here; hmm, pohmm"):
        enrol(typed(), detector="manhattan")
    with pytest.raises(ValueError, match=r"there is no models\.json in it"):
        load_enrolled(tmp_path)
    (tmp_path / "models.json").write_text("{}")
    with pytest.raises(ValueError, match="cannot be read"):
        load_enrolled(tmp_path)
    enrolled.save(tmp_path)
    manifest = json.loads((tmp_path / "models.json").read_text())
    for change in (
        {"version": 9},
        {"users": []},
        {"users": [manifest["users"][0] | {"file": "../elsewhere.keydyn"}]},
        {"users": [manifest["users"][0] | {"threshold": "high"}]},
    ):
        (tmp_path / "models.json").write_text(json.dumps(manifest | change))
        with pytest.raises(ValueError, match=r"cannot be read|lists no users"):
            load_enrolled(tmp_path)


def test_the_order_of_samples_changes_no_threshold(enrolled):
    frame = typed()
    session = frame["session"].to_numpy()
    backwards = pd.concat(
        [
            frame[(session == s) & (frame["user"] == u)]
            for s in range(6)
            for u in ("ann", "bob", "eve")[:: 1 - 2 * (s % 2)]
        ]
    )
    other = enrol(check_keystrokes(backwards))
    assert other.users.tolist() == enrolled.users.tolist()
    np.testing.assert_allclose(other.thresholds, enrolled.thresholds)
    np.testing.assert_allclose(other.penalties, enrolled.penalties)


def test_no_threshold_has_rates_nearer_to_each_other():
    rng = np.random.default_rng(0)
    for _ in range(200):
        genuine, impostor = (rng.integers(0, 6, rng.integers(1, 9)) / 5 for _ in range(2))

        def gap(level, genuine=genuine, impostor=impostor):
            return abs(np.mean(impostor >= level) - np.mean(genuine < level))

        least = min(map(gap, [*genuine, *impostor]))
        assert gap(_crossing(genuine, impostor)) == pytest.approx(least)


def test_an_earlier_enrolment_leaves_nothing(enrolled, tmp_path):
    enrolled.save(tmp_path)
    enrol(typed(users=("zoe", "ann"))).save(tmp_path)
    assert load_enrolled(tmp_path).users.tolist() == ["zoe", "ann"]
    assert len(list(tmp_path.glob("*.keydyn"))) == 2


def test_a_time_of_zero_is_reported_with_its_place():
    frame = typed()
    frame.loc[11, "timepress"] = frame.loc[10, "timepress"]
    with pytest.raises(ValueError, match=r"user ann, session 1, keystroke 4: tau is 0 ms.*--clean"):
        enrol(frame)
