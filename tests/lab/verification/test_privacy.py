"""Text from timings, where it is known how much they can say; and templates that tell what was typed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from keydyn import POHMM, Sequences
from keydyn.keystrokes.samples import Samples
from keydyn.lab.verification.privacy import (
    OTHERS,
    OWN,
    recovered,
    template_leakage,
    text_recovery,
    unexplained,
)
from keydyn.population import PopulationModel
from tests.population.simulated import samples_of_people


def typist(distance):
    """Two keys, equally frequent and independent, whose times are so many deviations apart."""
    location = np.array([[5.0, 5.0], [5.0 + distance, 5.0 + distance]])
    return POHMM.from_parameters(
        ["a", "b"],
        startprob=[[0.5, 0.5]] * 2,
        transmat=np.full((2, 2, 2, 2), 0.5),
        emission=[("lognormal", location, 1.0)],
        event_transmat=np.full((2, 2), 0.5),
    )


def typed_by(model, n):
    X, events, _ = model.sample(lengths=[n], random_state=0)
    index = pd.MultiIndex.from_tuples([(0, 0)], names=["user", "session"])
    return Samples(
        index, Sequences.from_arrays(X, events, [n]), ("lognormal",), pd.DataFrame(index=index), "given"
    )


@pytest.mark.parametrize(
    ("distance", "share", "bits"), [(0.0, None, 0.0), (2.0, 0.8413, 0.4859), (20.0, 1.0, 1.0)]
)
def test_keys_are_recovered_as_far_as_times_tell_them_apart(distance, share, bits):
    """Two normal distributions at a distance of 2: a share Φ(1) is told apart, which carries .4859 bits."""
    model = typist(distance)
    found = recovered(model, typed_by(model, 20_000))
    assert found["bits"] == pytest.approx(bits, abs=0.02)
    if share is not None:
        assert found["top_1"] == pytest.approx(share, abs=0.01)
    assert found["top_5"] == 1.0


def test_an_unknown_key_is_not_guessed():
    model = typist(20.0)
    sample = typed_by(model, 100)
    labels = sample.sequences.labels().astype(object)
    labels[:50] = "c"
    sequences = Sequences.from_arrays(sample.sequences.X, labels, [100])
    found = recovered(model, Samples(sample.index, sequences, sample.emission, sample.table, "given"))
    assert found["top_1"] == pytest.approx(0.5)
    assert found["bits"] == pytest.approx(1.0, abs=0.3)


def test_own_models_know_more_than_others():
    samples = samples_of_people(n_people=10, n_samples=6, n_keys=120, cell=1.0, noise=0.05, seed=5)
    table = text_recovery(samples, n_users=4)
    mean = table.groupby("model").mean(numeric_only=True)
    assert set(table["model"]) == {OWN, OTHERS}
    assert len(table) == 8
    assert mean.loc[OWN, "bits"] > mean.loc[OTHERS, "bits"]
    assert mean.loc[OWN, "top_1"] > mean.loc[OWN, "chain_1"]
    assert (table["top_5"] >= table["top_1"]).all()
    with pytest.raises(ValueError, match="learnt from others"):
        text_recovery(samples, n_users=10)


def test_a_template_tells_which_pairs_were_typed():
    samples = samples_of_people(n_people=10, n_samples=6, n_keys=25)
    population = PopulationModel(hidden_states=False).fit(samples[samples.users < 8])
    table = template_leakage(population, samples[(samples.users >= 8) & (samples.numbers == 0)])
    assert table["user"].tolist() == [8, 9]
    assert (table["auc"] > 0.95).all()
    assert (table["found"] > 0.9).all()
    assert (table["chance"] < 0.5).all()


def test_nothing_is_left_of_a_template_without_typing():
    """Means that follow from z and from effects of keys are explained, whatever these are."""
    samples = samples_of_people(n_people=10)
    population = PopulationModel(hidden_states=False).fit(samples)
    known, random = population.parameters, np.random.default_rng(0)
    mean = known.loadings @ random.normal(size=known.loadings.shape[1])
    mean += random.normal(size=known.cells.n_keys)[known.cells.key]
    assert unexplained(known, replace(population.anyone(), mean=mean)).max() < 1e-4
