"""Limits on error rates: bounds and numbers of people against scipy and against counting upwards."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from keydyn.evaluation import limit_shown, people_needed
from keydyn.evaluation.rates.requirements import upper_bound


@pytest.mark.parametrize(
    ("errors", "people"), [(0, 1), (0, 60), (1, 60), (7, 60), (59, 60), (60, 60), (3, 5000)]
)
def test_the_bound_is_that_of_clopper_and_pearson(errors, people):
    """scipy's interval is two-sided: with a confidence of 90 % its upper end is ours of 95 %."""
    expected = binomtest(errors, people).proportion_ci(0.90, method="exact").high
    assert upper_bound(errors, people) == pytest.approx(expected, rel=1e-9)


def counted_upwards(limit, rate):
    """The least n for which this few errors have a probability of 5 % or less at a rate of `limit`."""
    n = 1
    while binom.cdf(math.ceil(n * rate - 1e-9), n, limit) > 0.05:
        n += 1
    return n


@pytest.mark.parametrize("limit", [0.3, 0.15, 0.07, 0.05, 0.03])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 0.5, 0.6])
def test_people_are_as_many_as_counting_upwards_finds(limit, share):
    assert people_needed(limit, share * limit) == counted_upwards(limit, share * limit)


@pytest.mark.parametrize("limit", [1 / 10_000, 0.03, 0.05, 0.07, 0.15])
def test_without_errors_people_follow_from_a_power(limit):
    """(1 − limit)^n ≤ 5 %; the rule of three asks for 3 / limit, which is a little more."""
    expected = math.ceil(math.log(0.05) / math.log1p(-limit))
    assert people_needed(limit) == expected <= 3 / limit


def test_no_number_of_people_shows_a_rate_at_its_limit():
    assert people_needed(0.05, 0.05) is None
    assert people_needed(0.05, 0.5) is None
    assert people_needed(0.05, 0.05 - 1e-9) is None


def test_the_three_outcomes():
    """NIST's limit of 5 % on genuine samples that are refused."""
    met = limit_shown(np.zeros(59), 0.05)
    assert (met.outcome, met.people, met.text()) == ("met", 59, "met")
    few = limit_shown(np.zeros(58), 0.05)
    assert few.text() == "cannot be shown with 58 people: 59 are needed"
    # 2 % of 50 is one error: 181 people, of whom 4 err, are needed by the test above.
    some = limit_shown(np.r_[np.full(10, 0.1), np.zeros(40)], 0.05)
    assert some.rate == pytest.approx(0.02)
    assert some.needed == counted_upwards(0.05, 0.02)
    assert some.bound == pytest.approx(binomtest(1, 50).proportion_ci(0.90, method="exact").high)
    wrong = limit_shown([0.0, 0.2, 0.0], 0.05)
    assert (wrong.outcome, wrong.needed, wrong.text()) == ("not met", None, "not met")
    at_limit = limit_shown([0.05] * 1000, 0.05)
    assert at_limit.text() == "cannot be shown with 1,000 people: no number is enough at this rate"


def test_as_many_people_as_are_needed_show_it():
    for rate in (0.0, 0.01, 0.02):
        needed = people_needed(0.05, rate)
        errors = math.ceil(needed * rate)
        shares = np.r_[np.ones(errors), np.zeros(needed - errors)]
        assert upper_bound(errors, needed) <= 0.05
        assert limit_shown(shares, 0.05).outcome == "met"
        assert binomtest(math.ceil((needed - 1) * rate), needed - 1).proportion_ci(0.9).high > 0.05


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: upper_bound(3, 2), "3 errors of 2 people"),
        (lambda: upper_bound(0, 0), "0 people"),
        (lambda: people_needed(0.0), "between 0 and 1"),
        (lambda: people_needed(0.05, -0.1), "from 0 to 1"),
        (lambda: limit_shown([], 0.05), "no people"),
        (lambda: limit_shown([0.0, float("nan")], 0.05), "share of errors"),
        (lambda: limit_shown([0.0, 1.1], 0.05), "share of errors"),
    ],
)
def test_what_cannot_be_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
