"""The relatives as detectors: which settings, which context, and what a key says of the state."""

from __future__ import annotations

import numpy as np
import pandas as pd

from keydyn import HMM, ContextHMM, PartiallyHMM, PartlyHMM
from keydyn.detectors import fit_population, make_detector
from keydyn.detectors.relatives import ACTIVE, PASSIVE, key_labels
from keydyn.keystrokes.samples import Samples
from keydyn.keystrokes.schema import check_keystrokes

NAMES = ("context-hmm", "partly-hmm", "partially-hmm")
COLUMNS = ["user", "session", "keyname", "timepress", "timerelease"]


def typed(seed=0, keys=("t", "h", "e", "space", "period", "5", "backspace"), events="key"):
    rng = np.random.default_rng(seed)
    rows = []
    for u, user in enumerate(("ann", "bob")):
        for session in range(12):
            press = np.cumsum(rng.lognormal(5 + 0.5 * u, 0.3, len(keys))).round(3)
            hold = rng.lognormal(4.4, 0.2, len(keys)).round(3)
            rows += [(user, session, key, press[k], press[k] + hold[k]) for k, key in enumerate(keys)]
    frame = check_keystrokes(pd.DataFrame(rows, columns=COLUMNS))
    return Samples.of(frame, kind="fixed text", events=events)


def test_settings_are_the_published_ones():
    samples = typed()
    published = HMM.published()
    for name, kind in zip(NAMES, (ContextHMM, PartlyHMM, PartiallyHMM), strict=True):
        model = make_detector(name).fit(samples[samples.users == "ann"]).model_
        assert type(model) is kind
        for setting in ("n_states", "density_floor", "count_floor", "min_scale", "spread", "spread_scale"):
            assert getattr(model, setting) == getattr(published, setting)
        assert model.emission == ["lognormal", "lognormal"]
        assert model.spread_features == "leading"
        assert not model.order_states
    # Features are duration, tau: the interval is the second.
    assert make_detector("context-hmm").fit(samples).model_.context_feature == 1
    assert make_detector("partly-hmm").fit(samples).model_.previous_feature == 1


def test_scores_are_the_models():
    samples = typed()
    own, later = samples[samples.users == "bob"], typed(1)
    for name in NAMES:
        detector = make_detector(name).fit(own)
        given = detector.given(later)
        np.testing.assert_array_equal(
            detector.score(later), detector.model_.score_sequences(later.sequences, **given)
        )
        sums = np.add.reduceat(detector.score_events(later), later.sequences.offsets[:-1])
        np.testing.assert_allclose(sums, detector.score(later), rtol=1e-9)
        population = fit_population(name, samples)
        right = population.users[population.score(later).argmax(axis=1)] == later.users
        assert right.mean() > 0.9


def test_what_a_key_says():
    """Letters and digits are typed within words; the keys around them, and those that mend, are pauses."""
    expected = [ACTIVE] * 3 + [PASSIVE] * 2 + [ACTIVE, PASSIVE]
    assert key_labels(typed())[:7].tolist() == expected
    assert key_labels(typed(events="group"))[:7].tolist() == expected
    # Positions and no events at all say nothing.
    assert set(key_labels(typed(events="position"))) == {None}
    assert set(key_labels(typed(events="none"))) == {None}
    assert key_labels(typed(events="pair"))[:7].tolist() == [None, *expected[1:]]


def test_without_keys_the_partially_hmm_is_the_hmm():
    samples, later = typed(events="none"), typed(1, events="none")
    hmm, partially = (make_detector(name).fit(samples) for name in ("hmm", "partially-hmm"))
    np.testing.assert_allclose(partially.score(later), hmm.score(later), rtol=1e-10)


def test_a_model_of_ones_own():
    own = typed()[:12]
    detector = make_detector("context-hmm", model=ContextHMM(3, emission_context=1, tol=0.1)).fit(own)
    assert detector.model_.n_states == 3


def test_unknown_keys_are_labelled_by_their_group():
    """A key that was never typed in training is a letter all the same."""
    detector = make_detector("partially-hmm").fit(typed())
    new = typed(3, keys=("x", "q", "tab"))
    assert key_labels(new)[:3].tolist() == [ACTIVE, ACTIVE, PASSIVE]
    assert np.isfinite(detector.score(new)).all()
