"""The table of relatives."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.evaluation.continuous.rejection import Times
from keydyn.lab.relatives.report import relatives_table


def test_the_table_tests_each_against_the_best_over_users():
    users = [f"u{n}" for n in range(12)]
    better, worse = np.linspace(0.8, 0.9, 12), np.linspace(0.5, 0.6, 12)
    figures = {"pohmm": pd.Series(better, users), "hmm": pd.Series(worse, users)}
    # Two samples a user: the test is over users, mean and deviation over samples.
    samples = {name: pd.concat([10 - 10 * of, 12 - 10 * of]) for name, of in figures.items()}
    times = {("fable", name): Times(of.mean(), of.std(), None, None, 24) for name, of in samples.items()}
    means = {name: of.groupby(level=0).mean() for name, of in samples.items()}
    errors = {name: 1 - of for name, of in figures.items()}
    table = relatives_table({"fable": {"acc": figures, "eer": errors, "amrt": means}}, times).frame
    of = table.set_index("detector")
    assert of["acc_best"].to_dict() == {"pohmm": True, "hmm": False}
    assert of["eer_best"].to_dict() == {"pohmm": True, "hmm": False}
    assert of.loc["hmm", "amrt_p"] == pytest.approx(2 / 2**12)
    assert of.loc["pohmm", "amrt_mean"] == pytest.approx(11 - 10 * better.mean())
