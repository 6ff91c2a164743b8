"""The study on simulated typists of two places, from the command to its report and back."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.lab.transfer import disturbed, measurements, places
from keydyn.lab.transfer.claims import COUNTED, LEFT_OUT, STATED
from keydyn.lab.transfer.disturbed import cases
from keydyn.lab.transfer.measurements import SHIPPED, pieces_of
from keydyn.lab.transfer.places import SIMULATED, Place, load_place
from keydyn.lab.transfer.report import PAGE

pytestmark = pytest.mark.usefixtures("sketched", "sketched_set_up")
runner = CliRunner()
TABLES = ("transfer", "disturbed", "watching")


def known(place):
    """Of one place, two people are said to be one."""
    pairs = [(2, 5)] if place.name == SIMULATED[0] else []
    return pd.DataFrame(pairs, columns=["one", "other"], dtype="int64").assign(dataset=place.name)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    out = tmp_path_factory.mktemp("transfer")
    some = list(cases())[:2]
    with pytest.MonkeyPatch.context() as patch:
        for module in (disturbed, measurements):
            patch.setattr(module, "cases", lambda: iter(some))
        patch.setattr(places, "TYPISTS", 10)
        patch.setattr(measurements, "repeats_of", known)
        options = ["--dataset", "simulated", "--out", str(out), "--jobs", "1"]
        result = runner.invoke(app, ["study", "transfer", *options])
        assert result.exit_code == 0, result.output
    return out


def test_everything_is_there(study):
    for name in TABLES:
        for ending in ("csv", "md", "tex"):
            assert (study / "tables" / f"{name}.{ending}").stat().st_size > 0
    for name in ("stated", "genuine"):
        assert (study / "figures" / f"{name}.png").stat().st_size > 0
    run = json.loads((study / "run.json").read_text())
    assert run["people"]["simulated"] == {"learnt": 10, "tried": 10}
    assert PAGE.question in (study / "report.html").read_text()


def test_every_place_is_tried_with_what_was_learnt_elsewhere(study):
    frame = pd.read_csv(study / "tables" / "transfer.csv")
    one, other = SIMULATED
    pairs = set(zip(frame["dataset_from"], frame["dataset_to"], strict=True))
    assert pairs == {(one, other), (other, one), (SHIPPED, one), (SHIPPED, other)}
    assert set(frame["enrolled"]) == {1, 5, 10}
    assert set(frame["stated"]) == set(STATED)
    for _, rows in frame.groupby(["dataset_from", "dataset_to", "enrolled", "repeats"]):
        assert rows.sort_values("stated")["strangers"].is_monotonic_increasing
        assert (rows["cllr_min"] <= rows["cllr"]).all()
    assert (
        (frame["strangers_low"] <= frame["strangers"]) & (frame["strangers"] <= frame["strangers_high"])
    ).all()


def test_the_table_is_what_its_scores_say(study):
    scores = pd.read_parquet(study / "scores.parquet")
    frame = pd.read_csv(study / "tables" / "transfer.csv")
    row = frame.iloc[4]
    claims = scores[
        (scores["dataset_from"] == row["dataset_from"]) & (scores["dataset_to"] == row["dataset_to"])
    ]
    claims = claims[claims["enrolled"] == row["enrolled"]]
    strange = claims[claims["claimed"] != claims["typist"]]
    assert len(strange) == row["claims"] == 10 * 9 * 2
    assert row["strangers"] == pytest.approx((strange["rate"] <= row["stated"]).mean(), abs=1e-6)


def test_figures_with_and_without_repeats(study):
    """Where two of ten people are said to be one, four claims fewer count."""
    frame = pd.read_csv(study / "tables" / "transfer.csv")
    assert set(frame[frame["repeats"] == LEFT_OUT]["dataset_to"]) == {SIMULATED[0]}
    counts = frame.groupby("repeats")["claims"].agg(["min", "max"])
    assert counts.loc[COUNTED].tolist() == [180, 180]
    assert counts.loc[LEFT_OUT].tolist() == [176, 176]


def test_a_report_is_built_again_from_the_scores(study):
    before = {name: (study / "tables" / f"{name}.csv").read_bytes() for name in TABLES}
    for name in TABLES:
        (study / "tables" / f"{name}.csv").unlink()
    result = runner.invoke(app, ["report", str(study)])
    assert result.exit_code == 0, result.output
    assert {name: (study / "tables" / f"{name}.csv").read_bytes() for name in TABLES} == before


def test_nobody_is_tried_where_they_were_learnt_from():
    """Only Aalto, which has different people for the two, is tried with what was learnt from it."""
    one = load_place(SIMULATED[0])
    apart = Place("aalto", one.learnt[one.learnt["user"] < 8], one.tried[one.tried["user"] >= 8], {})
    names = {piece.names[0] for piece in pieces_of([Place("fable", one.learnt, one.tried, {}), apart], 0)}
    assert "fable-aalto-claims" in names
    assert "aalto-fable-aalto-claims" in names
    assert not any(name.startswith("fable-fable") or name.endswith("shipped-fable-claims") for name in names)


def test_the_answer_counts_the_cases_in_which_rates_hold(study):
    frame = pd.read_csv(study / "tables" / "transfer.csv")
    here = frame[frame["stated"] == 0.01]
    here = here[(here["repeats"] == LEFT_OUT) | (here["dataset_to"] != SIMULATED[0])]
    held = int(((here["strangers_low"] <= 0.01) & (here["strangers_high"] >= 0.01)).sum())
    answer = PAGE.answer({"transfer": frame})
    assert f"{held} of {len(here)} cases" in answer or f"all {len(here)} cases" in answer
