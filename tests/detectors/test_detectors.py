"""Detectors: each against its definition written down a second time, the interface, plug-ins, populations."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.spatial import distance
from sklearn.base import clone

from keydyn import HMM, POHMM
from keydyn.detectors import Detector, Markov, detector_names, fit_population, make_detector, register
from keydyn.detectors import detector as registry
from keydyn.keystrokes.samples import Samples
from keydyn.keystrokes.schema import check_keystrokes
from keydyn.model import LogStudent

DISTANCES = {
    "manhattan": lambda x, t: distance.cityblock(x, t.mean(axis=0)),
    "euclidean": lambda x, t: distance.sqeuclidean(x, t.mean(axis=0)),
    "euclidean-normed": lambda x, t: (
        distance.sqeuclidean(x, t.mean(axis=0)) / (np.linalg.norm(x) * np.linalg.norm(t.mean(axis=0)))
    ),
    "mahalanobis": lambda x, t: distance.mahalanobis(x, t.mean(axis=0), np.linalg.pinv(np.cov(t.T))) ** 2,
    "nearest-neighbour": lambda x, t: min(
        distance.mahalanobis(x, y, np.linalg.pinv(np.cov(t.T))) ** 2 for y in t
    ),
    "outlier-count": lambda x, t: sum(abs(x - t.mean(axis=0)) > 1.96 * t.std(axis=0, ddof=1)),
}


def typed(seed=0, users=("ann", "bob", "eve"), n_samples=30, n_keys=4, step=0.4):
    """Simple typists of a fixed text, each slower than the one before by `step` on a log scale."""
    rng = np.random.default_rng(seed)
    rows = []
    for u, user in enumerate(users):
        for session in range(n_samples):
            press = np.cumsum(rng.lognormal(5 + step * u, 0.2, n_keys)).round(3)
            hold = rng.lognormal(4.4, 0.2, n_keys).round(3)
            rows += [(user, session, f"k{k}", press[k], press[k] + hold[k]) for k in range(n_keys)]
    columns = ["user", "session", "keyname", "timepress", "timerelease"]
    return Samples.of(check_keystrokes(pd.DataFrame(rows, columns=columns)))


@pytest.fixture(scope="module")
def samples():
    return typed()


@pytest.mark.parametrize("name", DISTANCES)
def test_distances_by_their_definitions(samples, name):
    own = samples[samples.users == "ann"]
    found = make_detector(name).prepare(samples).fit(own).score(samples)
    expected = [-DISTANCES[name](x, own.vectors) for x in samples.vectors]
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


def test_scaled_manhattan_takes_its_scale_from_whom_it_should(samples):
    own = samples[samples.users == "ann"]
    for scale, source in (("everyone", samples), ("template", own)):
        detector = make_detector("manhattan-scaled", scale=scale).prepare(samples).fit(own)
        unit = np.abs(source.vectors - source.vectors.mean(axis=0)).mean(axis=0)
        expected = -(np.abs(samples.vectors - own.vectors.mean(axis=0)) / unit).sum(axis=1)
        np.testing.assert_allclose(detector.score(samples), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="call prepare before fit"):
        make_detector("manhattan-scaled").fit(own)
    with pytest.raises(ValueError, match="scale must be"):
        make_detector("manhattan-scaled", scale="some").fit(own)


def test_filtered_manhattan_leaves_outliers_out():
    samples = typed(n_samples=60)
    own = samples[samples.users == "ann"]
    table = own.table.copy()
    table.iloc[0, 0] = 1e6
    spoilt = Samples(own.index, own.sequences, own.emission, table, own.kind)
    detector = make_detector("manhattan-filtered").fit(spoilt)
    assert detector.mean_[0] == pytest.approx(own.vectors[1:, 0].mean(), rel=0.05)


def test_every_detector_keeps_the_interface(samples):
    """Fitted to one user, it scores that user's later samples above others' on average, and is finite."""
    train, later = typed(1), typed(2)
    for name in detector_names():
        detector = make_detector(name).prepare(train).fresh().fit(train[train.users == "ann"])
        scores = detector.score(later)
        assert scores.shape == (len(later),)
        assert np.isfinite(scores).all(), name
        assert scores[later.users == "ann"].mean() > scores[later.users != "ann"].mean(), name
        assert clone(detector).get_params().keys() == detector.get_params().keys()
        if detector.scores_events:
            events = detector.score_events(later)
            sums = np.add.reduceat(events, later.sequences.offsets[:-1])
            np.testing.assert_allclose(sums, scores, rtol=1e-9)
        else:
            with pytest.raises(ValueError, match=f"{name} cannot score single events"):
                detector.score_events(later)


def test_constant_and_few_samples(samples):
    """Equal vectors, one sample: a score or a clear refusal, never a NaN."""
    need_two = {"mahalanobis", "mahalanobis-normed", "nearest-neighbour", "outlier-count"}
    for name in detector_names():
        detector = make_detector(name).prepare(samples)
        assert np.isfinite(detector.fit(samples[[0, 0, 0]]).score(samples)).all(), name
        if name in need_two:
            with pytest.raises(ValueError, match="at least 2 samples"):
                detector.fit(samples[[0]])
        else:
            assert np.isfinite(detector.fit(samples[[0]]).score(samples)).all(), name


def test_a_vector_without_length_has_a_score(samples):
    nothing = Samples(samples.index, samples.sequences, samples.emission, samples.table * 0.0, samples.kind)
    for name in ("euclidean-normed", "mahalanobis-normed"):
        assert np.isfinite(make_detector(name).fit(samples).score(nothing)).all()


def test_markov_detectors_are_the_models(samples):
    own = samples[samples.users == "bob"]
    for name, model, family in (
        ("hmm", HMM.published(), "lognormal"),
        ("pohmm", POHMM.published(), "lognormal"),
        ("pohmm-recommended", POHMM(), LogStudent(df=4.0)),
    ):
        detector = make_detector(name).fit(own)
        assert isinstance(detector, Markov)
        model.set_params(emission=[family, family]).fit(own.sequences)
        np.testing.assert_array_equal(detector.score(samples), model.score_sequences(samples.sequences))
    mine = make_detector("pohmm", model=POHMM(3, tol=1.0)).fit(own)
    assert mine.model_.n_states == 3


def test_a_population_is_a_template_for_everybody(samples):
    seen = []
    population = fit_population(make_detector("manhattan-scaled").prepare(samples), samples, 2, seen.append)
    assert population.users.tolist() == ["ann", "bob", "eve"]
    assert seen == [1, 2, 3]
    scores = population.score(samples)
    for u, user in enumerate(population.users):
        alone = make_detector("manhattan-scaled").prepare(samples).fit(samples[samples.users == user])
        np.testing.assert_array_equal(scores[:, u], alone.score(samples))
    assert fit_population("pohmm", samples).score_events(samples).shape == (samples.sequences.n_events, 3)
    with pytest.raises(ValueError, match="user bob: a covariance needs at least 2 samples"):
        fit_population("mahalanobis", samples[[0, 1, 30]])


def test_samples_of_users_in_turn(samples):
    """Templates do not depend on whether the samples of a user stand together."""
    turns = np.argsort(samples.numbers, kind="stable")
    assert samples.users[turns][:3].tolist() == ["ann", "bob", "eve"]
    mixed = fit_population("manhattan", samples[turns])
    assert mixed.users.tolist() == ["ann", "bob", "eve"]
    np.testing.assert_array_equal(mixed.score(samples), fit_population("manhattan", samples).score(samples))


def test_some_of_the_samples(samples):
    """A run of samples and any others are picked alike."""
    everything = np.arange(len(samples))
    for which in (
        slice(2, 5),
        [2, 3, 4],
        [4, 2],
        everything % 3 == 0,
        everything < 4,
        slice(None, None, -1),
        3,
    ):
        some, chosen = samples[which], np.atleast_1d(everything[which])
        assert some.index.tolist() == [samples.index[n] for n in chosen]
        assert some.sequences.names == [samples.sequences.names[n] for n in chosen]
        np.testing.assert_array_equal(some.vectors, samples.vectors[chosen])
        assert some.sequences.n_events == sum(samples.sequences.lengths[chosen])


class Median(Detector):
    """A third party's detector."""

    name, title = "median", "Median"

    def fit(self, samples):
        self.middle_ = np.median(samples.vectors, axis=0)
        return self

    def score(self, samples):
        return -np.abs(samples.vectors - self.middle_).sum(axis=1)


@pytest.fixture
def clean_registry(monkeypatch):
    # A module that registers its detectors while the copy is in place would not do so again.
    registry.detector_names()
    monkeypatch.setattr(registry, "_DETECTORS", dict(registry._DETECTORS))


TOY = """
import numpy as np
from keydyn.detectors import Detector

class Toy(Detector):
    name, title = "toy", "Toy"

    def fit(self, samples):
        self.middle_ = np.median(samples.vectors, axis=0)
        return self

    def score(self, samples):
        return -np.abs(samples.vectors - self.middle_).sum(axis=1)
"""


def install(folder, target):
    """What an installer leaves of a package called toy with an entry point."""
    (folder / "toy_detector.py").write_text(TOY)
    information = folder / "toy_detector-1.0.dist-info"
    information.mkdir(exist_ok=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-detector\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[keydyn.detectors]\ntoy = {target}\n")


def test_a_plug_in_through_an_entry_point(samples, monkeypatch, clean_registry, tmp_path):
    install(tmp_path, "toy_detector:Toy")
    monkeypatch.syspath_prepend(tmp_path)
    assert "toy" in detector_names()
    scores = fit_population("toy", samples).score(samples)
    own = samples.vectors[samples.users == "ann"]
    np.testing.assert_allclose(scores[:, 0], -np.abs(samples.vectors - np.median(own, axis=0)).sum(axis=1))
    install(tmp_path, "math:pi")
    with pytest.raises(ValueError, match=r"entry point 'toy' of keydyn\.detectors is no Detector: math:pi"):
        detector_names()


def test_names(clean_registry):
    assert detector_names()[:3] == ("manhattan", "manhattan-scaled", "manhattan-filtered")
    with pytest.raises(ValueError, match="there is no detector 'magic'; there are manhattan"):
        make_detector("magic")
    register(Median)
    with pytest.raises(ValueError, match="there is a detector 'median' already"):
        register(type("Other", (Median,), {}))


def test_normed_mahalanobis_and_k_means_by_their_definitions(samples):
    own = samples[samples.users == "ann"]
    plain = make_detector("mahalanobis").fit(own).score(samples)
    lengths = np.linalg.norm(samples.vectors, axis=1) * np.linalg.norm(own.vectors.mean(axis=0))
    np.testing.assert_allclose(make_detector("mahalanobis-normed").fit(own).score(samples), plain / lengths)
    # Three heaps far apart: their means are what k-means must find.
    rng = np.random.default_rng(0)
    heaps = np.repeat([[0.0, 0.0], [1e3, 0.0], [0.0, 1e3]], 10, axis=0) + rng.normal(size=(30, 2))
    table = pd.DataFrame(heaps, index=own.index)
    apart = Samples(own.index, own.sequences, own.emission, table, "given")
    means = heaps.reshape(3, 10, 2).mean(axis=1)
    expected = -distance.cdist(heaps, means).min(axis=1)
    np.testing.assert_allclose(make_detector("k-means").fit(apart).score(apart), expected, rtol=1e-6)


def test_a_population_in_another_order(samples):
    population = fit_population("manhattan", samples)
    turned = population.of(population.users[::-1])
    seen = []
    scores = turned.score(samples, progress=seen.append)
    np.testing.assert_array_equal(scores[:, ::-1], population.score(samples))
    assert seen == [1, 2, 3]
    with pytest.raises(ValueError, match="user zoe has no sample to learn from"):
        population.of(np.array(["ann", "zoe"]))


def test_a_plug_in_that_cannot_be_loaded_is_named(monkeypatch, clean_registry, tmp_path):
    install(tmp_path, "no_such_module:Toy")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        ValueError, match=r"entry point 'toy' of keydyn\.detectors cannot be loaded: No module"
    ):
        detector_names()


def test_parameters_need_a_name():
    with pytest.raises(ValueError, match="parameters are for a detector given by its name"):
        make_detector(make_detector("svm"), nu=0.1)
