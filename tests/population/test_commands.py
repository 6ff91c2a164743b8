"""keydyn population from the command line."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from keydyn.cli import app
from keydyn.population import PopulationModel
from tests.population.simulated import people


def test_fit_then_info(tmp_path):
    people(n_people=4, n_samples=2).to_csv(tmp_path / "typing.csv", index=False)
    out = tmp_path / "people.keydyn"
    run = CliRunner().invoke(app, ["population", "fit", str(tmp_path / "typing.csv"), "--out", str(out)])
    assert run.exit_code == 0, run.output
    assert "How people differ" in run.output
    shown = CliRunner().invoke(app, ["population", "info", str(out), "--json"])
    facts = json.loads(shown.stdout)
    assert (facts["people"], facts["samples"], facts["keys"]) == (4, 8, 8)
    assert facts["sha256"] == PopulationModel.load(out).sha256
    assert [row["feature"] for row in facts["features"]] == ["tau", "duration"]


def test_what_is_no_population_is_refused(tmp_path):
    (tmp_path / "people.keydyn").write_text("nothing")
    shown = CliRunner().invoke(app, ["population", "info", str(tmp_path / "people.keydyn")])
    assert shown.exit_code != 0
    people(n_people=1, n_samples=2).to_csv(tmp_path / "typing.csv", index=False)
    out = tmp_path / "new.keydyn"
    run = CliRunner().invoke(app, ["population", "fit", str(tmp_path / "typing.csv"), "--out", str(out)])
    assert run.exit_code != 0
    assert not out.exists()
