"""The verdict on relatives, from tables made by hand."""

from __future__ import annotations

import pandas as pd

from keydyn.lab.relatives.verdict import verdict


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
