"""Failures to acquire and to enrol on data with known defects."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.datasets import make_typists
from keydyn.evaluation.protocols.failures import find_failures
from keydyn.keystrokes.samples import Samples


def typed(n_users=3, n_samples=4):
    return Samples.of(make_typists(n_users, n_samples, random_state=1))


def test_sound_samples_have_no_failures():
    samples = typed()
    failures = find_failures(samples, needed=4)
    assert failures.kept.all()
    assert len(failures.to_acquire) == len(failures.to_enrol) == 0
    assert failures.fta.text() == "< 25.0 %"  # 3 of 12 samples
    assert failures.text() == "failure to acquire: 0 of 12 samples; failure to enrol: 0 of 3 users"
    assert failures.of_transactions(0.1, 0.2) == (0.1, 0.2)


def test_too_few_samples_are_a_failure_to_enrol():
    frame = make_typists(3, 4, random_state=1)
    samples = Samples.of(frame[(frame["user"] != 1) | (frame["session"] < 1)])
    failures = find_failures(samples, needed=2)
    assert failures.to_enrol.to_dict("list") == {
        "user": [1],
        "samples": [1],
        "reason": ["1 usable sample; at least 2 are required"],
    }
    assert failures.fte.value == pytest.approx(1 / 3)
    np.testing.assert_array_equal(failures.kept, samples.users != 1)
    # Nothing was wrong with the sample itself.
    assert failures.fta.value == 0.0


def test_a_vector_with_a_hole_fails_only_where_vectors_are_used():
    samples = typed()
    samples.table.iloc[5, 3] = np.nan
    failures = find_failures(samples)
    user, session = samples.index[5]
    assert failures.to_acquire.iloc[0].tolist() == [
        user,
        session,
        f"{samples.table.columns[3]} is missing or infinite",
    ]
    assert failures.fta.value == pytest.approx(1 / 12)
    assert (~failures.kept).sum() == 1
    assert find_failures(samples, vectors=False).kept.all()


def test_short_samples_and_times_of_zero():
    frame = make_typists(2, 3, random_state=1)
    short = (frame["user"] == 0) & (frame["session"] == 2)
    frame = pd.concat([frame[~short], frame[short].iloc[:1]]).sort_values(["user", "session"], kind="stable")
    frame = frame.reset_index(drop=True)
    row = frame.index[(frame["user"] == 1) & (frame["session"] == 0)][0]
    frame.loc[row, "timerelease"] = frame.loc[row, "timepress"]
    index = pd.MultiIndex.from_frame(frame[["user", "session"]].drop_duplicates())
    samples = Samples.of(frame, vectors=pd.DataFrame(index=index))
    failures = find_failures(samples, needed=3, min_keys=5)
    assert failures.to_acquire["reason"].tolist() == [
        "1 key; at least 5 are required",
        "a time of 0 ms or less, which has no logarithm",
    ]
    assert failures.to_enrol["user"].tolist() == [0, 1]
    assert not failures.kept.any()


def test_rates_with_failures_counted_as_rejections():
    """A tenth of samples and a fifth of users fail: worked by hand."""
    samples = typed(5, 2)
    table = samples.table
    table.iloc[0, 0] = np.nan
    failures = find_failures(samples, needed=2)
    assert (failures.fta.value, failures.fte.value) == (pytest.approx(0.1), pytest.approx(0.2))
    accepted, rejected = failures.of_transactions(fmr=0.5, fnmr=0.5)
    assert (accepted, rejected) == (pytest.approx(0.45), pytest.approx(0.55))
    accepted, rejected = failures.generalised(fmr=0.5, fnmr=0.5)
    assert (accepted, rejected) == (pytest.approx(0.36), pytest.approx(0.64))


def test_what_cannot_be_asked():
    samples = typed(2, 2)
    with pytest.raises(ValueError, match="needed must be 1 or more"):
        find_failures(samples, needed=0)
    with pytest.raises(ValueError, match="min_keys must be 1 or more"):
        find_failures(samples, min_keys=0)
