"""What a test shows of the limits of standards, at operating points whose errors are known."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from keydyn.evaluation import ScoredClaims, Scores
from keydyn.lab.standard_report.standard_limits import (
    LIMITS,
    Point,
    limits_table,
    point_of_claims,
    point_of_scores,
    points_table,
)


def test_the_limits_are_those_of_the_documents():
    """SP 800-63B-4, Section 3.2.3; SP 800-63A-4 for remote proofing; FIDO's biometric requirements."""
    assert {(limit.rate, limit.most, limit.below) for limit in LIMITS} == {
        ("fmr", 1e-4, False),
        ("fnmr", 0.05, True),
        ("far", 1e-4, False),
        ("frr", 0.03, False),
        ("iapar", 0.15, True),
        ("iapar", 0.07, True),
    }


def test_failures_to_acquire_are_rejections():
    """ISO/IEC 19795-1: FAR = FMR · (1 − FTA), FRR = FTA + FNMR · (1 − FTA)."""
    point = Point("p", "", {"fmr": [0.0, 0.5], "fnmr": [0.1, 0.2]}).with_failures(0.2)
    assert point.shares["far"] == pytest.approx([0.0, 0.4])
    assert point.shares["frr"] == pytest.approx([0.28, 0.36])


def test_every_outcome_of_every_limit():
    """n people without an error show a limit L if (1 − L)^n ≤ 5 %; with errors in half the cases, never."""
    for limit in LIMITS:
        least = math.ceil(math.log(0.05) / math.log1p(-limit.most))
        for people, share, words in (
            (least, 0.0, "met"),
            (least - 1, 0.0, f"cannot be shown with {least - 1:,} people: {least:,} are needed"),
            (20, 0.5, "not met"),
        ):
            shares = {limit.rate: [share] * people}
            attacks = {"robot": [share] * people} if limit.rate == "iapar" else {}
            frame = limits_table([Point("here", "", shares)], attacks).frame
            outcomes = frame.loc[(frame["limit"] == limit.text), "outcome"].tolist()
            assert words in outcomes, (limit, people)


def test_claims_are_about_the_worst_attack():
    frame = limits_table([], {"robot": [0.0] * 50, "replay": [0.0, 1.0] * 25}).frame
    assert frame["point"].tolist() == ["worst attack: replay"] * 2
    assert frame["observed"].tolist() == [0.5, 0.5]
    assert len(limits_table([], {}).frame) == 0


def scores_of(raw, owners, users):
    raw = np.array(raw, dtype=float)
    queries = len(owners)
    numbers = np.arange(queries)
    trials = np.ones(raw.shape, dtype=bool)
    return Scores(np.array(owners), numbers, np.zeros(queries, int), np.array(users), raw, trials, "none")


def test_the_point_of_scores_lets_no_more_impostors_in():
    """a is refused once at the threshold above b's best attempt, 6; with one in four let in, not at all."""
    scores = scores_of([[9, 1], [5, 2], [3, 9], [6, 8]], ["a", "a", "b", "b"], ["a", "b"])
    strict = point_of_scores("strict", scores)
    assert strict.shares == {"fmr": [0.0, 0.0], "fnmr": [0.5, 0.0]}
    lax = point_of_scores("lax", scores, most=0.25)
    assert lax.shares == {"fmr": [0.0, 0.5], "fnmr": [0.0, 0.0]}
    assert points_table([strict]).shown["Observed"].tolist() == ["< 100.00 %", "25.00 % (0.00–50.00)"]


def test_claims_of_any_system_have_a_point_and_attacks():
    """As above; a robot is accepted as a in one of two attempts, and never as b."""
    columns = ["claimed", "real", "sample", "score"]
    rows = [("a", "a", 0, 9.0), ("b", "a", 0, 1.0), ("a", "a", 1, 5.0), ("b", "a", 1, 2.0)]
    rows += [("a", "b", 0, 3.0), ("b", "b", 0, 9.0), ("a", "b", 1, 6.0), ("b", "b", 1, 8.0)]
    robots = [("a", "c", 2, 8.5), ("a", "c", 3, 1.0), ("b", "c", 4, 1.0)]
    frame = pd.DataFrame(rows + robots, columns=columns).assign(attack=[""] * 8 + ["robot"] * 3)
    point, attacks = point_of_claims("mine", ScoredClaims.of(frame))
    assert point.shares == {"fmr": [0.0, 0.0], "fnmr": [0.5, 0.0]}
    assert [(one["attack"], one["attempts"], one["shares"]) for one in attacks] == [
        ("robot (mine)", 3, [0.5, 0.0])
    ]


def test_where_no_threshold_is_strict_enough_everybody_is_refused():
    scores = scores_of([[1, 9], [9, 1]], ["a", "b"], ["a", "b"])
    assert point_of_scores("none", scores).shares == {"fmr": [0.0, 0.0], "fnmr": [1.0, 1.0]}
