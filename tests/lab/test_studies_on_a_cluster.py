"""A whole study on a Dask cluster: the same files as at home."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from distributed import Client
from typer.testing import CliRunner

from keydyn.cli import app
from tests.test_parallel import cluster_in
from tests.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("sketched")

STUDIES = {
    "recognition": ["--dataset", "simulated", "--detector", "manhattan-scaled", "--detector", "pohmm"],
    "simulation": ["--samples", "4", "--longest", "200"],
}
CASES = [pytest.param(study, options, id=study, marks=pytest.mark.slow) for study, options in STUDIES.items()]
# What a run may differ in from another.
OF_THE_RUN = {"seconds", "time"}


def run(study, options, out):
    result = CliRunner().invoke(app, ["study", study, *options, "--out", str(out)])
    assert result.exit_code == 0, result.output
    return out


def tasks_done(engine):
    """How many tasks the cluster's workers have finished."""
    with Client(engine.replace("dask://", "tcp://"), timeout=PATIENCE, set_as_default=False) as client:
        finished = client.run(lambda dask_worker: len(dask_worker.state.log))
    return sum(finished.values())


@pytest.mark.parametrize(("study", "options"), CASES)
def test_a_study_gives_the_same_files(study, options, tmp_path):
    """At home first: then the workers find all loops compiled."""
    home = run(study, [*options, "--jobs", "1"], tmp_path / "home")
    with cluster_in(tmp_path) as cluster:
        before = tasks_done(cluster.engine)
        away = run(study, [*options, "--engine", cluster.engine], tmp_path / "away")
        assert tasks_done(cluster.engine) > before, "nothing was done by the workers"
    names = {path.relative_to(home) for path in home.rglob("*") if path.is_file()}
    assert names == {path.relative_to(away) for path in away.rglob("*") if path.is_file()}
    assert any(name.suffix == ".csv" for name in names)
    for name in names:
        if name.parts[0] == "tables":
            assert (home / name).read_bytes() == (away / name).read_bytes(), name
        elif name.suffix == ".parquet":
            pd.testing.assert_frame_equal(pd.read_parquet(home / name), pd.read_parquet(away / name))
    facts = [json.loads((folder / "run.json").read_text()) for folder in (home, away)]
    assert facts[0].keys() == facts[1].keys()
    assert {key for key in facts[0] if facts[0][key] != facts[1][key]} <= OF_THE_RUN
