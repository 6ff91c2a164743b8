"""Intervals over people in both roles, against drawing people one by one and against known coverage."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.evaluation.rates.confidence import Claims, user_weights


def test_the_interval_is_that_of_people_drawn_by_hand() -> None:
    random = np.random.default_rng(1)
    claimed, typist = random.integers(0, 6, 200), random.integers(0, 6, 200)
    wrong = random.random(200) < 0.3
    rates = []
    for drawn in user_weights(6, 200, 0):
        times = np.where(claimed == typist, drawn[claimed], drawn[claimed] * drawn[typist])
        rates.append((times * wrong).sum() / times.sum())
    low, high = Claims(claimed, typist, 200).interval(wrong)
    assert (low, high) == pytest.approx(tuple(np.quantile(rates, [0.025, 0.975])), rel=1e-12)
    rate = Claims(claimed, typist, 200).rate(wrong)
    assert rate.value == pytest.approx(wrong.mean())


def test_it_is_wider_where_people_differ() -> None:
    """Whoever is easily mistaken is so in all their claims: few people say less than many claims."""
    random = np.random.default_rng(2)
    n = 20
    claimed, typist = (each.ravel() for each in np.meshgrid(np.arange(n), np.arange(n)))
    alike = random.random(n * n) < 0.1
    differ = random.random(n * n) < np.where(np.isin(typist, [0, 1]), 1.0, 0.0)
    claims = Claims(claimed, typist)
    widths = [high - low for low, high in (claims.interval(alike), claims.interval(differ))]
    assert widths[1] > 2 * widths[0]
