"""Disturbances: still keystrokes in the schema, as many as asked for, and nothing else is touched."""

import numpy as np
import pandas as pd
import pytest

from keydyn.datasets import make_typists
from keydyn.keystrokes import check_keystrokes
from keydyn.lab.transfer.disturbed import (
    BURST,
    CLOCKS,
    DISTURBANCES,
    LOCK_HOLD,
    REPEAT_DELAY,
    REPEAT_STEP,
    REPEATS,
    bursts,
    caps_lock,
    coarse_clock,
    missing_releases,
    repeated_keys,
    short_holds,
    stuck_keys,
)

TYPING = make_typists(6, 4, "free", 100, random_state=2)
ALL = {**DISTURBANCES, **CLOCKS}


def disturbed(disturbance, share, seed=0):
    return disturbance(TYPING, share, np.random.default_rng(seed))


def holds(frame):
    return (frame["timerelease"] - frame["timepress"]).to_numpy()


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("share", [0.02, 0.3, 1.0])
def test_the_schema_is_kept(name, share):
    found = disturbed(ALL[name], share)
    pd.testing.assert_frame_equal(check_keystrokes(found), found)
    samples = [frame[["user", "session"]].drop_duplicates().to_numpy() for frame in (found, TYPING)]
    np.testing.assert_array_equal(*samples)
    # A clock disturbs whole samples, of which there are too few for a small share.
    assert found.equals(TYPING) == (name in CLOCKS and share < 0.1)


@pytest.mark.parametrize("name", ALL)
def test_no_share_changes_nothing_and_a_seed_decides(name):
    pd.testing.assert_frame_equal(disturbed(ALL[name], 0.0), TYPING, check_dtype=False)
    pd.testing.assert_frame_equal(disturbed(ALL[name], 0.5, 3), disturbed(ALL[name], 0.5, 3))


def test_the_share_is_that_of_each_sample():
    """Ten of a hundred keys; with a fraction the number is that above or below it."""
    for share, allowed in ((0.1, {10}), (0.025, {2, 3})):
        lost = disturbed(missing_releases, share)["timerelease"].isna()
        counts = lost.groupby([TYPING["user"], TYPING["session"]]).sum()
        assert set(counts) == allowed
    assert (holds(disturbed(short_holds, 0.1)) == LOCK_HOLD).sum() == 0.1 * len(TYPING)
    longer = holds(disturbed(stuck_keys, 0.1)) - holds(TYPING)
    assert (longer != 0).sum() == 0.1 * len(TYPING)


def test_caps_lock_is_added():
    found = disturbed(caps_lock, 0.1)
    added = found["keyname"] == "caps_lock"
    np.testing.assert_allclose(holds(found[added]), LOCK_HOLD)
    pd.testing.assert_frame_equal(found[~added].reset_index(drop=True), TYPING)
    between = found["timepress"].diff()[added].to_numpy()
    np.testing.assert_allclose(between, -found["timepress"].diff(-1)[added].to_numpy())


def test_repetitions_are_presses_of_the_key_that_is_down():
    found = disturbed(repeated_keys, 0.1)
    assert len(found) == len(TYPING) * (1 + 0.1 * REPEATS)
    down = found["timerelease"].isna()
    assert (found["keyname"].shift(-1)[down] == found["keyname"][down]).all()
    assert down.sum() == 0.1 * len(TYPING) * REPEATS
    # Each key that is held delays what follows by as long; the last one of a sample, nothing.
    spans = [frame.groupby(["user", "session"])["timepress"].agg(np.ptp) for frame in (found, TYPING)]
    held = REPEAT_DELAY + REPEAT_STEP * REPEATS
    assert (spans[0] - spans[1] <= 10 * held + 1e-6).all()
    assert (spans[0] - spans[1] >= 9 * held).all()


@pytest.mark.parametrize("tick", [1.0, 8.0, 16.0, 100.0])
def test_a_clock_has_its_tick(tick):
    found = coarse_clock(TYPING, 1.0, np.random.default_rng(0), tick)
    for name in ("timepress", "timerelease"):
        np.testing.assert_allclose(found[name] / tick, np.round(found[name] / tick), atol=1e-9)
        assert (np.abs(found[name] - TYPING[name]) <= tick).all()


def test_bursts_arrive_late_and_together():
    found = disturbed(bursts, 0.2)
    late = (found["timepress"] != TYPING["timepress"]).to_numpy()
    assert 0.1 < late.mean() < 0.3
    delay = (found["timepress"] - TYPING["timepress"]).to_numpy()
    assert (delay[late] > 0).all()
    assert delay.max() < 2 * BURST
