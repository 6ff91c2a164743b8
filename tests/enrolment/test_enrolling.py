"""Enrolling people: models, and thresholds from held-out samples."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.detectors import make_detector
from keydyn.enrolment import enrol, n_fits, n_steps
from keydyn.enrolment import manifest as manifests
from keydyn.enrolment.thresholds import crossing
from keydyn.evaluation.penalty import rank_penalty
from keydyn.evaluation.scores import min_max
from keydyn.keystrokes.schema import check_keystrokes
from tests.enrolment.typed_samples import typed


def thresholds(enrolled):
    return [enrolled.manifest.person(user).threshold for user in enrolled.users.tolist()]


def penalties(enrolled):
    return [enrolled.manifest.person(user).penalty for user in enrolled.users.tolist()]


@pytest.fixture(scope="module")
def enrolled():
    return enrol(typed())


def test_it_recognises_them_again(enrolled):
    later = enrolled.samples(typed(1))
    assert (enrolled.users[np.argmax(enrolled.scores(later), axis=1)] == later.users).all()
    for user, threshold in zip(enrolled.users.tolist(), thresholds(enrolled), strict=True):
        accepted = enrolled.claim_scores(user, later) >= threshold
        assert accepted[later.users == user].mean() > 0.8
        assert accepted[later.users != user].mean() < 0.2


@pytest.mark.parametrize(
    ("genuine", "impostor", "expected"),
    [
        ([0.9, 1.0], [0.0, 0.1], 0.5),
        ([0.2, 0.6, 1.0], [0.0, 0.4, 0.8], 0.5),
        ([0.5], [0.5], 0.5),
    ],
)
def test_a_threshold_lies_between_scores(genuine, impostor, expected):
    assert crossing(np.array(genuine), np.array(impostor)) == pytest.approx(expected)


def test_progress_counts_every_step():
    seen = []
    enrol(typed(n_samples=3), progress=seen.append)
    # Three people, whose templates are fitted, and in each of three folds fitted and scored.
    assert n_steps(typed(n_samples=3)) == 3 * (1 + 2 * 3)
    assert seen == list(range(1, n_steps(typed(n_samples=3)) + 1))


@pytest.mark.parametrize("detector", ["hmm", "pohmm", "pohmm-recommended"])
def test_thresholds_and_scores_are_those_of_models_fitted_one_by_one(detector):
    """The definition a second time: three folds, a model for each user of each, a sample at a time."""
    frame = typed(n_samples=3)
    enrolled = enrol(frame, detector)
    samples = enrolled.samples(frame)
    scaled, largest = np.empty((9, 3)), np.zeros(3)
    for fold in range(3):
        held_out, known = samples[samples.numbers == fold], samples[samples.numbers != fold]
        templates = [make_detector(detector).fit(known[known.users == user]) for user in enrolled.users]
        scaled[samples.numbers == fold] = min_max(
            np.stack([one.score(held_out) for one in templates], axis=1)
        )
        for n, user in enumerate(held_out.users):
            sample, u = held_out[[n]], enrolled.users.tolist().index(user)
            events = np.stack([one.score_events(sample) for one in templates], axis=1)
            largest[u] = max(largest[u], rank_penalty(events, sample.sequences.offsets)[:, u].max())
    expected = [
        crossing(scaled[samples.users == user, u], scaled[samples.users != user, u])
        for u, user in enumerate(enrolled.users)
    ]
    np.testing.assert_allclose(thresholds(enrolled), expected, rtol=1e-10)
    np.testing.assert_array_equal(penalties(enrolled), largest)
    later = enrolled.samples(typed(1))
    alone = [make_detector(detector).fit(samples[samples.users == user]) for user in enrolled.users]
    expected = np.stack([one.score(later) for one in alone], axis=1)
    np.testing.assert_allclose(enrolled.scores(later), expected, rtol=1e-10)
    for u, user in enumerate(enrolled.users.tolist()):
        np.testing.assert_allclose(enrolled.claim_scores(user, later), min_max(expected)[:, u], rtol=1e-10)


def test_a_user_alone_has_no_threshold():
    alone = enrol(typed(users=("ann",)))
    assert thresholds(alone) == penalties(alone) == [None]
    with pytest.raises(ValueError, match="ann was enrolled before there were any: enrol others"):
        alone.claim_scores("ann", alone.samples(typed(1)))


def test_what_is_refused(enrolled):
    with pytest.raises(ValueError, match="user ann has 6 samples; at least 7 are required"):
        enrol(typed(), min_samples=7)
    with pytest.raises(ValueError, match="manhattan cannot enrol users here; hmm, pohmm"):
        enrol(typed(), detector="manhattan")
    with pytest.raises(ValueError, match="the same detector"):
        enrol(typed(), detector="hmm", beside=enrolled)
    twice = typed(users=("1", "bob")).astype({"user": object})
    twice.loc[twice["user"] == "bob", "user"] = 1
    with pytest.raises(ValueError, match="two users are called 1"):
        enrol(twice)


def test_the_order_of_samples_changes_no_threshold(enrolled):
    frame = typed()
    session = frame["session"].to_numpy()
    backwards = pd.concat(
        [
            frame[(session == s) & (frame["user"] == u)]
            for s in range(6)
            for u in ("ann", "bob", "eve")[:: 1 - 2 * (s % 2)]
        ]
    )
    other = enrol(check_keystrokes(backwards))
    assert other.users.tolist() == enrolled.users.tolist()
    np.testing.assert_allclose(thresholds(other), thresholds(enrolled))
    np.testing.assert_allclose(penalties(other), penalties(enrolled))


def test_no_threshold_has_rates_nearer_to_each_other():
    rng = np.random.default_rng(0)
    for _ in range(200):
        genuine, impostor = (rng.integers(0, 6, rng.integers(1, 9)) / 5 for _ in range(2))

        def gap(level, genuine=genuine, impostor=impostor):
            return abs(np.mean(impostor >= level) - np.mean(genuine < level))

        least = min(map(gap, [*genuine, *impostor]))
        assert gap(crossing(genuine, impostor)) == pytest.approx(least)


def test_somebody_is_added_without_touching_the_others(enrolled):
    """Only the newcomer's models are fitted, and everybody else's entry stays as it is."""
    newcomer = typed(3, users=("zoe",), tempos=[1.5])
    fitted = []
    more = enrol(newcomer, progress=fitted.append, beside=enrolled)
    assert fitted == list(range(1, n_steps(newcomer, n_others=3) + 1)) == list(range(1, 12))
    assert n_fits(newcomer, n_others=3) == 6
    assert more.manifest.people[:3] == enrolled.manifest.people
    assert all(more.templates[user] is enrolled.templates[user] for user in ("ann", "bob", "eve"))
    later = more.samples(typed(4, users=("ann", "bob", "eve", "zoe"), tempos=[0, 1, 2, 1.5]))
    accepted = more.claim_scores("zoe", later) >= more.manifest.person("zoe").threshold
    assert accepted[later.users == "zoe"].mean() > 0.8
    assert accepted[later.users != "zoe"].mean() < 0.2
    penalty = more.claim_penalties("zoe", later)
    worst = np.maximum.reduceat(penalty, later.sequences.offsets[:-1])
    assert (worst <= more.manifest.person("zoe").penalty)[later.users == "zoe"].mean() > 0.6
    assert (worst <= more.manifest.person("zoe").penalty)[later.users != "zoe"].mean() < 0.4


def test_thresholds_of_a_newcomer_by_their_definition(enrolled):
    """Genuine: held out from her own models. Impostors: the same samples in the others' names."""
    newcomer = typed(3, users=("zoe",), n_samples=4, tempos=[1.5])
    zoe = enrol(newcomer, beside=enrolled).manifest.person("zoe")
    samples = enrolled.samples(newcomer)
    scaled, worst = [], 0.0
    for n in range(4):
        own = make_detector("pohmm").fit(samples[np.arange(4) != n]).model_
        models = [own, *(enrolled.templates[user].model_ for user in ("ann", "bob", "eve"))]
        sequence = samples[[n]].sequences
        scaled.append(min_max(np.array([[model.score(sequence) for model in models]]))[0])
        events = np.stack([model.score_samples(sequence) for model in models], axis=1)
        worst = max(worst, rank_penalty(events, sequence.offsets)[:, 0].max())
    scaled = np.array(scaled)
    assert zoe.threshold == pytest.approx(crossing(scaled[:, 0], scaled[:, 1:].ravel()))
    assert zoe.penalty == worst


def test_adding_people_makes_no_claim_easier(enrolled):
    """And a newcomer's own samples count against those who claim to be somebody else."""
    more = enrol(typed(3, users=("zoe",), tempos=[0.3]), beside=enrolled)
    later = more.samples(typed(4, users=("ann", "bob", "eve", "zoe"), tempos=[0, 1, 2, 0.3]))
    for user in ("ann", "bob", "eve"):
        before, after = enrolled.claim_scores(user, later), more.claim_scores(user, later)
        assert (after <= before).all()
        if user == "ann":  # who types much like zoe
            assert (after < before)[later.users == "zoe"].any()
        np.testing.assert_array_equal(
            more.claim_penalties(user, later), enrolled.claim_penalties(user, later)
        )


def test_somebody_is_enrolled_again(enrolled):
    again = enrol(typed(5, users=("bob",), n_samples=4, tempos=[1]), beside=enrolled)
    assert [person.user for person in again.manifest.people] == ["ann", "bob", "eve"]
    bob = again.manifest.person("bob")
    assert (bob.number, bob.cohort, bob.samples) == (1, 3, 4)
    assert again.templates["bob"] is not enrolled.templates["bob"]
    assert again.manifest.people[0] == enrolled.manifest.people[0]


def test_a_claim_among_very_many_is_judged_beside_the_first(monkeypatch):
    """Beyond the largest cohort nothing costs more: not the newcomer's thresholds, and not a claim."""
    monkeypatch.setattr(manifests, "LARGEST_COHORT", 2)
    monkeypatch.setattr("keydyn.enrolment.enrolling.LARGEST_COHORT", 2)
    many = enrol(typed(n_samples=3))
    assert many.manifest.cohort(many.manifest.person("eve")) == ["ann", "bob"]
    assert many.manifest.cohort(many.manifest.person("bob")) == ["ann"]
    later = many.samples(typed(1))
    scores = many.scores(later)
    three, two = min_max(scores), min_max(scores[:, :2])
    np.testing.assert_allclose(many.claim_scores("eve", later), three[:, 2])
    np.testing.assert_allclose(many.claim_scores("ann", later), two[:, 0])
    assert thresholds(many)[2] is not None


def test_a_time_of_zero_is_reported_with_its_place():
    frame = typed()
    frame.loc[11, "timepress"] = frame.loc[10, "timepress"]
    with pytest.raises(ValueError, match=r"user ann, session 1, keystroke 4: tau is 0 ms.*--clean"):
        enrol(frame)
