"""The table of relatives."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.evaluation.continuous.rejection import Times
from keydyn.lab.relatives.report import relatives_table, verdict


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


def test_the_verdict_says_what_the_tables_say():
    rows = [
        {"dataset": name, "detector": model, "acc_mean": acc}
        | {f"{metric}_best": model == "pohmm" or name == "essay" for metric in ("acc", "eer", "amrt")}
        for name in ("fable", "essay")
        for model, acc in (("hmm", 0.3), ("pohmm", 0.9), ("partly-hmm", 0.5), ("context-hmm", 0.4))
    ]
    lost = [
        {"dataset": "fable", "situation": situation, "share": share, "detector": model}
        | {"acc": acc, "log_likelihood": -11.0 if share == 1.0 else -11.5 + acc}
        for situation in ("estimation", "scoring", "unseen")
        for share in (0.0, 1.0)
        for model, acc in (("hmm", 0.3), ("pohmm", 0.9 if share == 0.0 else 0.2))
    ]
    text = verdict(pd.DataFrame(rows), pd.DataFrame(lost))
    assert "accuracy, best or not significantly worse than the best: POHMM on 2, HMM on 1" in text
    assert "HMM 0.300, the best relative (partly-HMM) 0.500, POHMM 0.900" in text
    assert "Fable: with no name in estimation the POHMM meets the HMM." in text
    assert "more accurate than all others with 0% of names missing in estimation, with 0% missing" in text
    assert "less likely than the HMM with no share of names missing in estimation" in text
    assert "its accuracy is 0.200, the HMM's 0.300" in text
    assert "POHMM 0.700" in text
    without = verdict(pd.DataFrame(rows), pd.DataFrame(columns=["dataset"]))
    assert "estimation" not in without
