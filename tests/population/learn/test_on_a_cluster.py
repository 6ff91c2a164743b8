"""A population learnt on a Dask cluster is the one learnt at home."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.parallel import using
from keydyn.population import PopulationModel
from keydyn.population.learn import groups
from tests.lab.test_studies_on_a_cluster import tasks_done
from tests.population.simulated import samples_of_people
from tests.test_parallel import cluster_in


@pytest.mark.slow
def test_a_cluster_learns_the_same(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(groups, "MOST_PEOPLE", 4)
    everybody = samples_of_people(n_people=12, n_samples=3, n_keys=15)
    home = PopulationModel(without=["contexts"]).fit(everybody)
    parts = [everybody[np.isin(everybody.users, who)] for who in (range(8), range(8, 12))]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with cluster_in(tmp_path) as cluster, using(cluster.engine):
        before = tasks_done(cluster.engine)
        away = PopulationModel(without=["contexts"]).fit(parts, scratch=scratch)
        assert tasks_done(cluster.engine) > before, "nothing was done by the workers"
    assert away.sha256 == home.sha256
    assert list(scratch.iterdir()) == []
