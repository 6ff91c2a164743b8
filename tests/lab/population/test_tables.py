"""The tables of the population study, on figures made up by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.lab.population.measurements import WITHOUT
from keydyn.lab.population.tables import (
    across_table,
    curve_frame,
    gains_words,
    parts_table,
    significance_table,
)

NAMES = [f"u{n}" for n in range(12)]
GOOD, BAD = np.linspace(0.8, 0.9, 12), np.linspace(0.5, 0.6, 12)


@pytest.fixture
def users():
    """The population model is the best by accuracy and EER, as good as the POHMM by rejection time."""
    acc = {"pohmm": pd.Series(BAD, NAMES), "population": pd.Series(GOOD, NAMES)}
    eer = {name: 1 - of for name, of in acc.items()}
    same = pd.Series(np.arange(12.0), NAMES)
    return {"fable": {"acc": acc, "eer": eer, "amrt": {"pohmm": same, "population": same}}}


def rows(what, setting="", number=np.nan, draw=0, acc=GOOD, **more):
    """Figures in the shape in which they are measured."""
    labels = {"what": what, "dataset": "fable", "detector": "population", "setting": setting}
    figures = pd.DataFrame({"user": NAMES, "acc": acc, "eer": 1 - acc, **more})
    return figures.assign(**labels, number=number, draw=draw)


def test_gains_are_tested_over_users_with_their_sign(users):
    table = significance_table(users)
    of = table.frame.set_index("figure")
    assert of["verdict"].to_dict() == {"acc": "better", "eer": "better", "amrt": "no significant difference"}
    assert of.loc["acc", "difference"] == pytest.approx(0.3)
    assert of.loc["eer", "difference"] == pytest.approx(-0.3)
    assert of.loc["acc", "p"] == pytest.approx(2 / 2**12)
    assert of.loc["amrt", "p"] == 1
    assert table.shown["Difference"].tolist()[0] == "+0.300 (+0.300 to +0.300)"
    assert gains_words(table.frame) == [
        "The population model compared with the POHMM: Accuracy is better on Fable. EER is better on Fable. "
        "Rejection time is not significantly different on Fable."
    ]


def test_a_part_is_worth_what_is_lost_without_it(users):
    slower = np.arange(12.0) + 1
    table = parts_table(users, rows("parts", "tempo", acc=GOOD - 0.1, amrt=slower))
    (row,) = table.frame.to_dict("records")
    assert row["without"] == "tempo"
    assert row["acc_difference"] == pytest.approx(-0.1)
    assert row["eer_difference"] == pytest.approx(0.1)
    assert row["amrt_difference"] == pytest.approx(1.0)
    assert row["acc_level"] == pytest.approx(0.05 / len(WITHOUT))
    assert {row[f"{metric}_verdict"] for metric in ("acc", "eer", "amrt")} == {"worse"}
    assert table.bold is not None
    assert table.bold.to_numpy().sum() == 3


def test_draws_count_as_one_and_users_are_drawn(users):
    measured = pd.concat([rows("people", "1", 5, draw, acc=GOOD + 0.1 * draw) for draw in (0, 1)])
    frame = curve_frame(measured, "people")
    (row,) = frame.to_dict("records")
    assert row["acc"] == pytest.approx(GOOD.mean() + 0.05)
    # The standard error of a mean over 12 users; an interval of ± 2 of them at least nearly.
    width = 4 * GOOD.std(ddof=1) / np.sqrt(12)
    assert row["acc_high"] - row["acc_low"] == pytest.approx(width, rel=0.2)


def test_across_datasets_each_is_compared_with_the_own_population_and_the_pohmm(users):
    table = across_table(users, rows("across", "essay", acc=BAD))
    assert table is not None
    of = table.frame.set_index(["figure", "against"])["verdict"].to_dict()
    assert of["acc", "population"] == of["eer", "population"] == "worse"
    assert of["acc", "pohmm"] == "no significant difference"
    assert across_table(users, rows("parts", "tempo")) is None
