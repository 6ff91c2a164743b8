"""Populations in files: exact, and hostile values refused."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn import POHMM
from keydyn.files import ModelFileError, packed
from keydyn.population import PopulationModel, saved
from tests.population.simulated import samples_of_people


@pytest.fixture(scope="module")
def samples():
    return samples_of_people(n_people=8, n_samples=3)


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "states"])
def fitted(request, samples):
    return PopulationModel(hidden_states=request.param).fit(samples)


def test_a_population_comes_back_exactly(fitted, samples, tmp_path):
    fitted.save(tmp_path / "people.keydyn")
    loaded = PopulationModel.load(tmp_path / "people.keydyn")
    assert loaded.sha256 == fitted.sha256
    assert loaded.hidden_states == fitted.hidden_states
    template = fitted.enrol(samples[[0, 1, 2]])
    np.testing.assert_array_equal(
        loaded.log_likelihoods([template], samples), fitted.log_likelihoods([template], samples)
    )


def changes(header, tensors):
    """Values that a file may claim and no population has, each with what it changes."""

    def tensor(name, value):
        changed = np.array(tensors[name])
        changed.flat[0] = value
        return header, tensors | {name: changed}

    for name, values in tensors.items():
        if values.size == 0:
            continue
        if values.dtype == np.float64:
            yield tensor(name, np.nan)
            yield tensor(name, 1e300)
        yield header, tensors | {name: values.astype(np.float32)}
        yield header, tensors | {name: values[None]}
    for name in ("scale", "strengths.cell", "strengths.noise", "chain.scale"):
        yield tensor(name, 0.0)
        yield tensor(name, -1.0)
    yield tensor("chain.start", 1.5)
    for degrees in (0, 3, -2, 10**9):
        yield tensor("chain.degrees", degrees)
    yield tensor("pairs.before", 10**6)
    yield tensor("pairs.before", -1)
    yield header, tensors | {"more": np.zeros(1)}
    yield header, {name: values for name, values in tensors.items() if name != "location"}
    for name, value in (
        ("features", ["tau"]),
        ("features", ["tau", "duration", "tau"]),
        ("features", 3),
        ("n_people", -1),
        ("n_people", 2.5),
        ("n_samples", 10**400),
        ("event_types", [1.5]),
        ("event_types", ["a", "a"]),
        ("event_types", ["a"]),
        ("strange", 1),
    ):
        yield header | {name: value}, tensors


def test_values_that_make_no_population_are_refused(fitted, tmp_path):
    known = fitted.parameters
    path = tmp_path / "people.keydyn"
    for header, tensors in changes(saved.POPULATION.header(saved._fields(known)), saved._tensors(known)):
        path.write_bytes(packed(header, tensors))
        with pytest.raises(ModelFileError):
            PopulationModel.load(path)


def test_other_models_and_damaged_files_are_refused(fitted, tmp_path):
    one = POHMM.from_parameters(["a"], [[1.0]], [[[[1.0]]]], [("normal", [[0.0]], [[1.0]])])
    one.save(tmp_path / "model.keydyn")
    with pytest.raises(ModelFileError, match="not a PopulationModel"):
        PopulationModel.load(tmp_path / "model.keydyn")
    fitted.save(tmp_path / "people.keydyn")
    contents = bytearray((tmp_path / "people.keydyn").read_bytes())
    contents[-5] ^= 1
    (tmp_path / "people.keydyn").write_bytes(contents)
    with pytest.raises(ModelFileError, match="damaged"):
        PopulationModel.load(tmp_path / "people.keydyn")
    with pytest.raises(FileNotFoundError):
        PopulationModel.load(tmp_path / "absent.keydyn")
