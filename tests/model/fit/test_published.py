"""The published settings, against log-likelihoods that the authors' own program gives for real recordings."""

from __future__ import annotations

import pandas as pd
import pytest
from sklearn.base import clone

from keydyn import HMM, POHMM, Sequences

# Computed with the authors' package `pohmm` 0.5: (dataset, model, log-likelihood).
REFERENCES = [
    ("keypad", HMM, -2007.351529),
    ("keypad", POHMM, -1904.181140),
    ("fable", HMM, -3625.862686),
    ("fable", POHMM, -3186.069535),
]


def training_samples(folder, dataset):
    """User 0, sessions 1 and up, features (duration, τ); the first τ is the median of its sample's others."""
    frame = pd.read_csv(folder / f"{dataset}.csv", dtype={"keyname": str}, keep_default_na=False)
    frame = frame[(frame.user == 0) & (frame.session >= 1)]
    samples = frame.groupby("session").timepress
    tau = samples.diff()
    frame = frame.assign(
        duration=frame.timerelease - frame.timepress,
        tau=tau.fillna(tau.groupby(frame.session).transform("median")),
    )
    return Sequences.from_frame(frame, ["duration", "tau"], "keyname", "session")


@pytest.mark.parametrize(("dataset", "kind", "expected"), REFERENCES)
def test_reference_log_likelihood(recordings, dataset, kind, expected):
    sequences = training_samples(recordings, dataset)
    model = kind.published().fit(sequences)
    assert model.log_likelihood_ == pytest.approx(expected, rel=1e-6)
    # The parameters that gave the last log-likelihood are the result.
    assert model.score(sequences) == pytest.approx(model.log_likelihood_, rel=1e-12)
    assert model.n_iter_ == len(model.history_)


def test_every_deviation_is_a_parameter(recordings):
    """A clone is as good as the original, and the deviations from the equations matter."""
    sequences = training_samples(recordings, "fable")
    published, plain = POHMM.published(), POHMM().get_params()
    expected = clone(published).fit(sequences).log_likelihood_
    assert expected == published.fit(sequences).log_likelihood_
    deviations = {name for name, value in published.get_params().items() if value != plain[name]}
    # Proper weights differ from the published ones for rare pairs only, and every training sample of this
    # user begins with the same key, so that its start probabilities are the marginal's by either rule.
    assert deviations - {"order_states", "transition_weights", "start_estimate"} == {
        "min_scale",
        "density_floor",
        "count_floor",
        "spread_features",
        "spread_scale",
    }
    for name in deviations - {"order_states", "transition_weights", "start_estimate"}:
        changed = clone(published).set_params(**{name: plain[name]}).fit(sequences)
        assert changed.log_likelihood_ != pytest.approx(expected, rel=1e-9), name
