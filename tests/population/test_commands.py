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


def test_several_files_and_what_comes_with_keydyn(tmp_path):
    everybody = people(n_people=6, n_samples=2)
    for n in range(2):
        everybody[everybody["user"] // 3 == n].to_csv(tmp_path / f"{n}.csv", index=False)
    out = tmp_path / "people.keydyn"
    files = [str(tmp_path / f"{n}.csv") for n in range(2)]
    both = ["population", "fit", files[0], "--also", files[1], "--out", str(out)]
    run = CliRunner().invoke(app, [*both, "--jobs", "1"])
    assert run.exit_code == 0, run.output
    assert PopulationModel.load(out).parameters.n_people == 6
    again = CliRunner().invoke(app, [*both, "--also", files[0]])
    assert again.exit_code == 4
    assert "more than one part" in again.output
    facts = json.loads(CliRunner().invoke(app, ["population", "info", "--json"]).stdout)
    assert facts["sha256"] == PopulationModel.shipped().sha256
