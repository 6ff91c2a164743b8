"""The choice of models, small, on simulated typists."""

from __future__ import annotations

import pytest

from keydyn.lab.frame.study_data import intervals_by_user, pattern
from keydyn.lab.model_choice.measurements import (
    MAX_ITERATIONS,
    TOLERANCE,
    choice_calls,
    choice_table,
    left_out,
)
from keydyn.lab.model_choice.report import draw_model_choice
from tests.lab.rows import called


def test_model_choice(keystrokes, tmp_path):
    found = called(choice_calls(keystrokes, "mine", states=(1, 2), families=("lognormal", "gamma")))
    assert len(found) == 2 * 2 * 2 * 2
    # BIC and held-out likelihood again, by hand, of one of them.
    user, sequences = next(iter(intervals_by_user(keystrokes).items()))
    settings = {"n_states": 2, "emission": "gamma", "tol": TOLERANCE, "max_iter": MAX_ITERATIONS}
    model = pattern("pohmm", "recommended", **settings)
    held_out = sum(
        pattern("pohmm", "recommended", **settings).fit(sequences[1 - s]).score(sequences[s]) for s in (0, 1)
    )
    chosen = (found["user"] == user) & (found["states"] == 2) & (found["family"] == "gamma")
    row = found[chosen & (found["smoothing"] == "frequency")].iloc[0]
    assert row["bic"] == pytest.approx(float(model.fit(sequences).bic(sequences)), rel=1e-6)
    assert row["held_out"] == pytest.approx(held_out / sequences.n_events, rel=1e-6)
    table = choice_table(found)
    paper = table.query("states == 2 and family == 'lognormal' and smoothing == 'frequency'").iloc[0]
    assert (paper["bic"], paper["held_out"]) == (0.0, 0.0)
    assert table["best_by_bic"].sum() == pytest.approx(1.0)
    draw_model_choice(table, tmp_path / "choice.png")
    assert (tmp_path / "choice.png").stat().st_size > 5000
    with pytest.raises(ValueError, match="the paper's choice"):
        choice_table(found[found["states"] == 1])


def test_which_samples_are_left_out():
    assert [left_out(n) for n in (1, 2, 3, 4, 6)] == [[], [0, 1], [0, 1, 2], [0, 2, 3], [0, 2, 5]]


def test_a_user_with_one_sample_has_nothing_held_out(keystrokes):
    one = keystrokes[keystrokes["session"] == 0]
    calls = choice_calls(one, "mine", states=(2,), families=("lognormal",), smoothing=("frequency",))
    found = called(calls)
    assert found["held_out"].isna().all()
    assert found["bic"].notna().all()
