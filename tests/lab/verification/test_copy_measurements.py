"""Copies and robots are counted, and fresh samples are not."""

from __future__ import annotations

import pytest

from keydyn.lab.verification.copy_measurements import COPY, FRESH, JITTERS, ROBOT, copy_rates
from tests.population.simulated import samples_of_people


def test_copies_and_robots_are_noticed_and_fresh_samples_are_not():
    samples = samples_of_people(n_people=5, n_samples=20, n_keys=30)
    table = copy_rates(samples, 12)
    assert len(table) == 5 * (1 + 2 * len(JITTERS))
    total = table.groupby(["kind", "jitter"])[["tries", "copies", "regular"]].sum()
    assert total.loc[(FRESH, 0.0), "tries"] == 5 * 8
    assert total.loc[(FRESH, 0.0), "copies"] == 0
    assert total.loc[(FRESH, 0.0), "regular"] == 0
    for jitter in (0.0, 1.0, 5.0):
        assert total.loc[(COPY, jitter), "copies"] == total.loc[(COPY, jitter), "tries"] == 5 * 10
        assert total.loc[(ROBOT, jitter), "regular"] == total.loc[(ROBOT, jitter), "tries"]
    assert copy_rates(samples[samples.numbers < 12], 12).empty


def test_a_repeated_sample_is_a_copy():
    samples = samples_of_people(n_people=1, n_samples=4, n_keys=30)
    twice = samples[[0, 1, 2, 1]]
    fresh = copy_rates(twice, 3).query(f"kind == '{FRESH}'").iloc[0]
    assert fresh["copies"] == fresh["tries"] == pytest.approx(1)
