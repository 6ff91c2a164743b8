"""A stream gives the terms of the whole sample, key by key."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.population import PopulationModel
from tests.population.simulated import people, samples_of_people
from tests.population.test_model import of


def followed(stream, samples):
    """All terms of all samples, (N, U)."""
    sequences, terms = samples.sequences, []
    columns = [sequences.feature_names.index(name) for name in ("tau", "duration")]
    for begin, end in zip(sequences.offsets[:-1], sequences.offsets[1:], strict=True):
        found = []
        for n in range(begin, end):
            code = sequences.codes[n]
            found.append(stream.update(sequences.X[n, columns], sequences.event_types[code]))
        assert found[0] is None
        terms += [*found[1:], stream.end()]
    return np.array(terms)


@pytest.mark.parametrize("states", [False, True])
def test_the_terms_are_those_of_the_whole_sample(states):
    """More keys than are remembered, missing releases and unknown keys; more templates than go at a time."""
    everyone = samples_of_people(n_people=6, n_samples=2, n_keys=20)
    model = PopulationModel(hidden_states=states).fit(everyone)
    templates = [model.enrol(of(everyone, user)) for user in range(6)] * 12
    frame = people(n_people=1, n_samples=2, n_keys=120, seed=3)
    frame.loc[frame.index % 7 == 3, "timerelease"] = np.nan
    frame.loc[frame.index % 11 == 5, "keyname"] = "ß"
    typed = type(everyone).of(frame, first="missing")
    expected = model.event_log_likelihoods(templates, typed)
    np.testing.assert_allclose(followed(model.online(templates), typed), expected, rtol=1e-10, atol=1e-10)


def test_one_key_and_what_is_wrong():
    everyone = samples_of_people(n_people=3, n_samples=2)
    model = PopulationModel().fit(everyone)
    template = model.enrol(of(everyone, 0))
    stream = model.online([template])
    with pytest.raises(ValueError, match="no event"):
        stream.end()
    assert stream.update([np.nan, 80.0], "a") is None
    one = everyone[[0]].sequences
    assert np.isfinite(stream.end()).all()
    for wrong in ([1.0], [0.0, 80.0], [np.inf, 80.0], [-3.0, 80.0]):
        with pytest.raises(ValueError, match=r"value|times"):
            stream.update(wrong, "a")
    # What was refused has left nothing.
    np.testing.assert_allclose(
        followed(stream, everyone[[0]])[:, 0], model.event_log_likelihoods([template], everyone[[0]])[:, 0]
    )
    assert one.n_events == 20
    other = PopulationModel().fit(samples_of_people(n_people=3, n_samples=2, seed=4))
    with pytest.raises(ValueError, match="another population"):
        other.online([template])
