"""The longest context that was recorded often enough, found a second time by looking at every key."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.decisions.liveness.not_typed import times_of
from keydyn.lab.forgeries.key_contexts import contexts_of, grouped
from tests.lab.forgeries.recordings import random_recording, typed


def looked_up(recorded, texts, values, longest, least):
    """For every key of the texts the recorded values of its context, by comparing keys one by one."""
    theirs, row = [], 0
    for one in recorded.sequences:
        keys = one.labels().tolist()
        theirs += [(keys[: n + 1], values[row + n]) for n in range(len(keys))]
        row += len(keys)
    found = []
    for one in texts.sequences:
        keys = one.labels().tolist()
        for n in range(len(keys)):
            serving = [value for _, value in theirs if np.isfinite(value)]
            for length in range(1, min(longest, n + 1) + 1):
                wanted = keys[n + 1 - length : n + 1]
                same = [value for run, value in theirs if run[-length:] == wanted and np.isfinite(value)]
                if len(same) >= least:
                    serving = same
            found.append(serving)
    return found


@pytest.mark.parametrize("longest", [1, 2, 3, 50])
@pytest.mark.parametrize("least", [1, 2, 5])
def test_every_key_has_the_values_of_its_longest_context(longest, least):
    recorded, texts = random_recording(seed=1), random_recording(3, 30, seed=2, keys="abcd")
    contexts = contexts_of(recorded, texts, longest, least)
    for column in times_of(recorded).T:
        groups = grouped(column, contexts, least)
        expected = looked_up(recorded, texts, column, longest, least)
        for n, values in enumerate(expected):
            g = groups.group[n]
            assert groups.values[groups.starts[g] :][: groups.sizes[g]].tolist() == values


def test_a_repeated_text_has_contexts_as_long_as_itself():
    recorded = random_recording(2, 12, seed=3, keys="abcdefgh")
    contexts = contexts_of(recorded, recorded, 50, 1)
    assert len(contexts.forged) == 1 + 12
    assert contexts_of(recorded, recorded, 5, 1).forged.shape == (6, 24)


def test_values_stand_in_the_order_recorded_with_the_samples_since():
    recorded = typed(("ab", [0, 10], [1, 2]), ("ab", [0, 20], [3, 4]), ("ab", [0, 30], [5, 6]))
    groups = grouped(times_of(recorded)[:, 0], contexts_of(recorded, recorded[:1], 2, 1), 1)
    b = groups.group[1]
    rows = slice(groups.starts[b], groups.starts[b] + groups.sizes[b])
    assert groups.values[rows].tolist() == [10, 20, 30]
    assert groups.age[rows].tolist() == [2, 1, 0]


def test_nothing_recorded_is_an_error():
    recorded = random_recording()
    with pytest.raises(ValueError, match="nothing was recorded"):
        contexts_of(recorded[:0], recorded, 2, 1)
    # A single key has no interval.
    single = typed(("a", [0], [80]))
    contexts = contexts_of(single, recorded, 2, 1)
    with pytest.raises(ValueError, match="nothing was recorded"):
        grouped(times_of(single)[:, 0], contexts, 1)
    with pytest.raises(ValueError, match="1 key or more"):
        contexts_of(recorded, recorded, 0, 1)
    with pytest.raises(ValueError, match="seen once or more"):
        contexts_of(recorded, recorded, 2, 0)


def test_no_texts_have_no_groups():
    recorded = random_recording()
    groups = grouped(times_of(recorded)[:, 1], contexts_of(recorded, recorded[:0], 3, 1), 1)
    assert len(groups.group) == len(groups.values) == 0
