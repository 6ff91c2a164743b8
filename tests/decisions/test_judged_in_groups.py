"""People who are judged in groups are ranked as if they had been judged together."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.datasets import make_typists
from keydyn.decisions import Targets, Verifier
from keydyn.decisions.calibration.background import shipped_background
from keydyn.decisions.decision import together


@pytest.mark.parametrize("split", [(0, 1, 2, 3), (0, 0, 1, 1), (0, 1, 0, 1)])
def test_groups_are_ranked_as_a_whole(split):
    typing = make_typists(4, 4, "free", 60, random_state=2)

    def of(user, *sessions):
        return typing[(typing["user"] == user) & typing["session"].isin(sessions)]

    def among(people):
        return Verifier.of(
            shipped_background(), Targets(0.01), secret=b"s" * 32, people=people, learning=False
        )

    enrolled = {user: among({}).enrolled(of(user, 0, 1, 2)) for user in range(4)}
    people = {f"user-{user}": one for user, one in enrolled.items()}
    for user in range(4):
        whole = among(people).identify(of(user, 3))
        groups = [
            {name: one for (name, one), part in zip(people.items(), split, strict=True) if part == number}
            for number in sorted(set(split))
        ]
        found = together([among(group).identify(of(user, 3)) for group in groups])
        assert [one.user for one in found.candidates] == [one.user for one in whole.candidates]
        # The same sums in another order.
        for name in ("probability", "llr", "false_match_rate"):
            values = ([getattr(one, name) for one in each.candidates] for each in (found, whole))
            np.testing.assert_allclose(*values, rtol=1e-9)
        assert found.nobody_probability == pytest.approx(whole.nobody_probability, rel=1e-9)
        assert (found.nobody, found.evidence, found.reasons) == (whole.nobody, whole.evidence, whole.reasons)
