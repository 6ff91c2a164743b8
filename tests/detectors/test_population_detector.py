"""The detector under protocols: it learns from training samples, and never from the impostor."""

from __future__ import annotations

import numpy as np
import pytest

from keydyn.detectors import Detector, PopulationDetector, make_detector
from keydyn.evaluation.protocols.protocol import Enrolment, MonacoTappert, OpenSet
from keydyn.evaluation.protocols.running import score_protocol
from keydyn.keystrokes.samples import Samples
from tests.population.simulated import people


def spoilt(keystrokes, rows):
    """These keystrokes with other times in these rows: slower, and with longer holds."""
    changed = keystrokes.copy()
    hold = changed["timerelease"] - changed["timepress"]
    changed.loc[rows, "timepress"] *= 2.0
    changed["timerelease"] = changed["timepress"] + np.where(rows, 3.0 * hold, hold)
    return changed


class SeenSamples(Detector):
    """Notes what it was prepared with."""

    name, title, learns_people = "seen", "Seen", True
    seen: list = []  # noqa: RUF012

    def prepare(self, everyone):
        self.seen.append(set(everyone.index.tolist()))
        return super().prepare(everyone)

    def fit(self, samples):
        return self

    def score(self, samples):
        return np.zeros(len(samples))


def test_people_are_learnt_from_training_samples_whatever_scales_are_from():
    samples = Samples.of(people(n_people=3, n_samples=3))
    protocol = MonacoTappert()
    assert protocol.prepared_on == "all samples"
    SeenSamples.seen.clear()
    score_protocol(protocol, SeenSamples(), samples)
    assert SeenSamples.seen == [set(samples.index[split.train]) for split in protocol.splits(samples)]


def test_queries_change_only_their_own_scores():
    """Under the published protocol, too, where scales are those of all samples."""
    keystrokes = people(n_people=6, n_samples=3)
    last = (keystrokes["session"] == 2).to_numpy()
    protocol = MonacoTappert((0, 2), (2, 3))
    detector = PopulationDetector(hidden_states=False)
    query = (last & (keystrokes["user"] == 0)).to_numpy()
    before, after = (
        score_protocol(protocol, detector, Samples.of(typed)).raw
        for typed in (keystrokes, spoilt(keystrokes, query))
    )
    assert (before[0] != after[0]).all()
    np.testing.assert_array_equal(before[1:], after[1:])


def test_an_impostors_data_cannot_change_the_impostors_own_score():
    """Open set: the impostor's other samples are changed, the query is not, and neither are its scores."""
    keystrokes = people(n_people=6, n_samples=3)
    protocol = OpenSet(Enrolment(2), groups=6)
    others = ((keystrokes["user"] == 3) & (keystrokes["session"] < 2)).to_numpy()
    before, after = (
        score_protocol(protocol, PopulationDetector(), Samples.of(typed))
        for typed in (keystrokes, spoilt(keystrokes, others))
    )
    users = before.users.tolist()
    impostor = (before.owners == 3) & before.trials[:, [u for u in range(6) if users[u] != 3]].any(axis=1)
    assert impostor.sum() == 1
    np.testing.assert_array_equal(before.raw[impostor], after.raw[impostor])
    # Where that person is enrolled, genuine scores change.
    genuine = (before.owners == 3) & before.trials[:, users.index(3)]
    assert not np.array_equal(before.raw[genuine], after.raw[genuine], equal_nan=True)


def test_it_must_be_prepared_and_says_so():
    samples = Samples.of(people(n_people=2, n_samples=1))
    with pytest.raises(ValueError, match="call prepare before fit"):
        make_detector("population").fit(samples[[0]])


def test_templates_of_different_populations_are_scored_each_with_its_own():
    samples = Samples.of(people(n_people=6, n_samples=2))
    parts = [samples[samples.users < 4], samples[samples.users >= 2]]
    templates = [
        PopulationDetector(hidden_states=False).prepare(part).fit(samples[samples.users == 2])
        for part in parts
    ]
    scores = PopulationDetector.score_many(templates, samples)
    for u, template in enumerate(templates):
        np.testing.assert_array_equal(scores[:, u], template.score(samples))


def test_one_pass_scores_and_explains():
    samples = Samples.of(people(n_people=4, n_samples=3))
    pattern = PopulationDetector().prepare(samples)
    templates = [pattern.fresh().fit(samples[samples.users == user]) for user in range(4)]
    own, anyone, *others = templates[0].template_, pattern.people.anyone(), *templates[1:]
    beside = pattern.people.side_by_side([one.template_ for one in others])
    scores, terms = pattern.people.score_terms([own, anyone], samples[:1], beside)
    expected = PopulationDetector.score_many(templates, samples[:1])
    np.testing.assert_array_equal(np.delete(scores, 1, axis=1), expected)
    told = pattern.people.evidence(samples[:1], terms)
    assert told["log_likelihood"].sum() == pytest.approx(scores[0, 0], rel=1e-10)
