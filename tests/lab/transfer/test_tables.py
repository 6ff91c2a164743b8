"""Tables of hand-made values as people read them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from keydyn.lab.transfer.claims import COUNTED, LEFT_OUT
from keydyn.lab.transfer.report import at_the_true_rate
from keydyn.lab.transfer.tables import disturbed_table, headline_table, transfer_table, watching_table


def rows(target, enrolled, repeats, strangers):
    """One case at the three stated rates; intervals reach from half of a share to twice it."""
    shared = {"dataset_from": "fable", "dataset_to": target, "enrolled": enrolled, "repeats": repeats}
    figures = {"genuine_stated": 0.8, "genuine_true": 0.7, "eer": 0.05, "eer_per_user": 0.04}
    figures |= {"cllr": 0.2, "cllr_min": 0.15, "samples": 300}
    return [
        shared | figures | {"stated": stated, "strangers": s, "strangers_low": s / 2, "strangers_high": 2 * s}
        for stated, s in zip((0.001, 0.01, 0.05), strangers, strict=True)
    ]


FRAME = pd.DataFrame(
    rows("essay", 1, COUNTED, (0.001, 0.03, 0.05))
    + rows("aalto", 1, COUNTED, (0.0, 0.02, 0.2))
    + rows("aalto", 1, LEFT_OUT, (0.0, 0.012, 0.2))
    + rows("aalto", 5, COUNTED, (0.001, 0.008, 0.06))
)


def test_stated_rates_stand_side_by_side():
    table = transfer_table(FRAME, "transfer", "", "")
    assert table.frame is FRAME
    assert table.shown["Tested on"].tolist() == ["Essay", "Aalto", "Aalto", "Aalto"]
    assert table.shown["Enrolled"].tolist() == ["1", "1", "1, without repeats", "5"]
    assert table.shown["Strangers at 1 %"].tolist()[0] == "3.0 % (1.5–6.0)"
    # None of 300 samples was accepted: below 3 in 300.
    assert table.shown["Strangers at 0.1 %"].tolist()[1] == "< 1.00 %"
    assert table.bold["Strangers at 1 %"].tolist() == [False, True, True, True]
    assert table.bold["Strangers at 5 %"].tolist() == [True, False, False, True]
    assert table.shown["Genuine at true 1 %"].tolist() == ["70.0 %"] * 4


def test_the_headline_leaves_repeats_out_where_they_are_known():
    chosen = at_the_true_rate(FRAME)
    assert chosen["strangers"].tolist() == [0.03, 0.012, 0.008]
    table = headline_table(chosen)
    assert table.shown["Strangers, 1 enrolled"].tolist() == ["3.0 % (1.5–6.0)", "1.2 % (0.6–2.4)"]
    assert table.shown["Strangers, 5 enrolled"].tolist() == ["–", "0.8 % (0.4–1.6)"]
    assert table.bold["Strangers, 1 enrolled"].tolist() == [False, True]
    assert table.shown["Genuine, 5 enrolled"].tolist() == ["–", "80.0 %"]


def test_differences_have_a_sign():
    frame = pd.DataFrame(
        {"disturbance": ["bursts"], "share": [0.02], "side": ["both"], "genuine": [0.77], "people": [98]}
        | {"difference": [-0.024], "difference_low": [-0.045], "difference_high": [0.006]}
    )
    assert disturbed_table(frame).shown["Difference, points"].tolist() == ["−2.4 (−4.5 to +0.6)"]


def test_no_lock_out_is_fewer_than_three_in_all_hours():
    shared = {"dataset_from": "shipped", "dataset_to": "aalto", "per_hour": 1.0, "genuine_hours": 6.0}
    shared |= {
        f"{kind}_unnoticed{end}": 0.1 for kind in ("start", "takeover") for end in ("", "_low", "_high")
    }
    keys = {"start": (20.0, 10.0, 40.0), "takeover": (30.0, 15.0, np.inf)}
    for kind, values in keys.items():
        shared |= dict(
            zip((f"{kind}_{part}" for part in ("median", "quarter", "three_quarters")), values, strict=True)
        )
    none, some = ({"lockouts": value, "lockouts_low": 0.0, "lockouts_high": 2.0} for value in (0.0, 0.5))
    shown = watching_table(pd.DataFrame([shared | none, shared | some])).shown
    assert shown["False lock-outs per hour"].tolist() == ["< 0.50", "0.50 (0.00–2.00)"]
    assert shown["From the start: median keys (quartiles)"].tolist()[0] == "20 (10–40)"
    assert shown["After a takeover: median keys (quartiles)"].tolist()[0] == "30 (15–∞)"
