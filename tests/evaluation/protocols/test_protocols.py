"""Protocols: their training samples, queries and impostors, and the scores that follow."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.datasets import make_typists
from keydyn.detectors import Detector, make_detector
from keydyn.evaluation.protocols.protocol import (
    Chronological,
    Enrolment,
    KillourhyMaxion,
    LeaveOneOut,
    MonacoTappert,
    OpenSet,
)
from keydyn.evaluation.protocols.running import enrolments, n_templates, score_protocol, scores_of
from keydyn.evaluation.rates.verification import recognition, verification
from keydyn.evaluation.scores import Scores, min_max
from keydyn.keystrokes import Samples


def in_order(frame, order):
    return pd.concat([frame[(frame["user"] == u) & (frame["session"] == s)] for u, s in order])


def test_the_order_of_users_changes_nothing():
    """With a sample left out, users appear in another order in some folds."""
    frame = make_typists(3, 3, random_state=3)
    straight = [(u, s) for u in range(3) for s in range(3)]
    mixed = [(0, 0), (1, 0), (2, 0), (2, 1), (1, 1), (0, 1), (1, 2), (0, 2), (2, 2)]
    for detector in ("manhattan-scaled", "pohmm"):
        one, other = (
            recognition(score_protocol(LeaveOneOut(), detector, Samples.of(in_order(frame, o))))
            for o in (straight, mixed)
        )
        pd.testing.assert_frame_equal(one, other)


def plain_scores(raw, owners=None, **others):
    """Scores with one query per user unless owners are given; every comparison is a trial."""
    raw = np.asarray(raw, dtype=float)
    owners = np.arange(len(raw)) if owners is None else np.asarray(owners)
    sessions, folds = np.arange(len(raw)), np.zeros(len(raw), dtype=np.int64)
    return Scores(owners, sessions, folds, np.arange(raw.shape[1]), raw, ~np.isnan(raw), **others)


@pytest.fixture(scope="module")
def typists():
    return make_typists(6, 4, random_state=3)


def test_unequal_numbers_of_samples(typists):
    """A user without a query in a fold is an impostor's target all the same; too few samples are reported."""
    frame = typists[typists["user"] < 3]
    scores = score_protocol(
        LeaveOneOut(), "manhattan", Samples.of(frame[(frame["user"] > 0) | (frame["session"] < 2)])
    )
    assert scores.owners.tolist() == [0, 1, 2, 0, 1, 2, 1, 2, 1, 2]
    assert scores.sessions.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]
    assert scores.raw.shape == (10, 3)
    with pytest.raises(ValueError, match="needs 2 samples or more of each user; user 0 has 1"):
        score_protocol(
            LeaveOneOut(), "manhattan", Samples.of(frame[(frame["user"] > 0) | (frame["session"] < 1)])
        )


def test_one_user_is_refused(typists):
    samples = Samples.of(typists[typists["user"] == 0])
    with pytest.raises(ValueError, match="needs 2 users or more; there is 1"):
        score_protocol(LeaveOneOut(), "manhattan", samples)
    with pytest.raises(ValueError, match="an open set needs 3 users or more; there are 2"):
        score_protocol(OpenSet(), "manhattan", Samples.of(typists[typists["user"] < 2]))


def test_an_unknown_detector_is_named(typists):
    with pytest.raises(ValueError, match="there is no detector 'manhatan'; there are manhattan"):
        score_protocol(LeaveOneOut(), "manhatan", Samples.of(typists))


@pytest.mark.parametrize(
    ("protocol", "train", "query"),
    [
        (Chronological(), [0, 1], [2, 3]),
        (Chronological(0.9), [0, 1, 2], [3]),
        (Chronological(0.01), [0], [1, 2, 3]),
        (Enrolment(3), [0, 1, 2], [3]),
        (MonacoTappert((1, 3), (3, 4)), [1, 2], [3]),
    ],
)
def test_who_trains_and_who_is_asked(typists, protocol, train, query):
    samples = Samples.of(typists)
    (split,) = protocol.splits(samples)
    for user in range(6):
        own = samples.users == user
        assert samples.numbers[own & split.train].tolist() == train
        assert samples.numbers[own & split.genuine].tolist() == query
        assert samples.numbers[own & split.impostor].tolist() == query


def test_no_protocol_asks_what_it_learnt(typists):
    samples = Samples.of(typists)
    for protocol in (LeaveOneOut(), Chronological(), Enrolment(2), OpenSet(), MonacoTappert()):
        for split in protocol.splits(samples):
            assert not (split.train & split.query).any()


def test_killourhy_and_maxions_impostors_are_early_samples_of_others():
    frame = make_typists(2, 203, random_state=0)
    samples = Samples.of(frame)
    scores = score_protocol(KillourhyMaxion(), "manhattan", samples)
    genuine, impostor = scores.trials_of(0)
    assert (len(genuine), len(impostor)) == (3, 5)
    assert scores.normalisation == "none"


@pytest.mark.parametrize("detector", ["manhattan-scaled", "hmm"])
def test_an_open_set_knows_nothing_of_its_impostors(typists, detector):
    """Scores of impostors are the same if their own training samples never existed."""
    protocol = OpenSet(Enrolment(2), groups=3)
    scores = score_protocol(protocol, detector, Samples.of(typists))
    for group in range(3):
        unknown = typists["user"] % 3 == group
        rest = Samples.of(typists[~unknown])
        template = enrolments(Enrolment(2), detector, rest)[0].population
        asked = (scores.folds == group) & (scores.owners % 3 == group)
        assert np.isnan(scores.raw[asked][:, group::3]).all()
        queries = Samples.of(typists[unknown & (typists["session"] >= 2)])
        enrolled = [u for u in range(6) if u % 3 != group]
        order = [(o, s) for o, s in zip(scores.owners[asked], scores.sessions[asked], strict=True)]
        assert order == list(queries.index)
        np.testing.assert_allclose(scores.raw[asked][:, enrolled], template.score(queries), rtol=1e-12)
        # and nobody who is enrolled is an impostor
        assert not (scores.trials & ~scores.own)[(scores.folds == group) & ~asked].any()


@pytest.mark.parametrize("groups", [2, 3, 10])
def test_in_an_open_set_each_sample_is_genuine_once_and_an_impostor_once(typists, groups):
    """Otherwise the rule of three would count a trial again and again. One user has a sample less."""
    samples = Samples.of(typists[(typists["user"] != 1) | (typists["session"] < 3)])
    splits = OpenSet(LeaveOneOut(), groups).splits(samples)
    for kind in ("genuine", "impostor"):
        assert (sum(getattr(split, kind).astype(int) for split in splits) == 1).all(), kind
    assert all(split.query.any() for split in splits)
    scores = score_protocol(OpenSet(LeaveOneOut(), groups), "manhattan", samples)
    assert (scores.trials & scores.own).sum() == len(samples)


def test_an_open_set_needs_a_cohort(typists):
    with pytest.raises(ValueError, match="3 users in 2 groups leaves 1 enrolled"):
        OpenSet(LeaveOneOut(), 2).splits(Samples.of(typists[typists["user"] < 3]))


def test_two_users_have_no_cohort_without_the_impostor(typists):
    """One template is left; scaled over itself it would be 0 for every impostor."""
    scores = score_protocol(LeaveOneOut(), "manhattan", Samples.of(typists[typists["user"] < 2]))
    found = recognition(scores)
    assert found["eer_open"].isna().all()
    assert found[["eer", "eer_raw"]].notna().all(axis=None)
    with pytest.raises(ValueError, match="an open set needs three users or more"):
        verification(scores, open_set=True)
    assert (
        recognition(score_protocol(LeaveOneOut(), "manhattan", Samples.of(typists)))["eer_open"].notna().all()
    )


def test_shares_that_differ_are_told_apart():
    """What a protocol says is what finished work is known by."""
    assert Chronological(0.501).describe() != Chronological(0.504).describe()


def test_templates_that_splits_share_are_fitted_once(typists):
    """Without everyone's scales, a template depends on its user's samples alone."""
    samples = Samples.of(typists)
    assert n_templates(OpenSet(LeaveOneOut(), groups=3), "hmm", samples) == 6 * 4
    assert n_templates(OpenSet(LeaveOneOut(), groups=3), "svm", samples) == 4 * 3 * 4
    seen = []
    enrolments(OpenSet(Enrolment(2), groups=3), "manhattan-scaled", samples, progress=seen.append)
    assert seen == list(range(1, 13))


@pytest.mark.parametrize("detector", ["manhattan-scaled", "hmm"])
def test_templates_fitted_a_few_at_a_time_are_the_same(typists, detector):
    samples, protocol = Samples.of(typists), OpenSet(LeaveOneOut(), groups=3)
    whole = score_protocol(protocol, detector, samples)
    seen = []
    enrolled = enrolments(protocol, detector, samples, progress=seen.append, events_at_a_time=100)
    few = scores_of(protocol, enrolled, samples)
    np.testing.assert_array_equal(few.raw, whole.raw)
    assert seen == list(range(1, n_templates(protocol, detector, samples) + 1))


def test_a_protocol_says_what_it_is():
    for protocol in (
        LeaveOneOut(),
        MonacoTappert(),
        KillourhyMaxion(),
        Chronological(),
        Enrolment(),
        OpenSet(),
    ):
        description = protocol.describe()
        assert description["split"]
        assert description["impostors"]
        assert description["normalisation"]
        assert protocol.name == description["protocol"]
    assert "queries included" in MonacoTappert().describe()["scales"]
    assert "open set" in OpenSet().describe()["impostors"]


class Broken(Detector):
    """A detector that scores one user's samples as NaN."""

    name = "broken"
    title = "Broken"

    def fit(self, samples):
        return self

    def score(self, samples):
        return np.where(samples.users == 2, np.nan, 0.0)


def test_a_score_that_is_no_number_is_named(typists):
    with pytest.raises(ValueError, match="user 2, session 0 against the template of user 0 is NaN"):
        score_protocol(LeaveOneOut(), Broken(), Samples.of(typists))


def test_a_score_that_is_infinitely_good_is_named():
    with pytest.raises(ValueError, match=r"user 0, session 0 against the template of user 1 is \+∞"):
        plain_scores([[0.0, np.inf]], owners=[0])


def test_scores_that_are_all_equal_are_worth_nothing():
    found = recognition(plain_scores(np.zeros((2, 2))))
    assert found["eer"].tolist() == [0.5, 0.5]


def test_templates_that_tie_share_the_query():
    """All scores equal: nobody is favoured for being first."""
    found = recognition(plain_scores(np.zeros((4, 4))))
    assert found["acc"].tolist() == [0.25] * 4
    assert found["eer"].tolist() == [0.5] * 4


def test_normalisation_worked_by_hand():
    raw = [
        [1.0, 3.0, 5.0],
        [-np.inf, 2.0, 4.0],
        [7.0, 7.0, 7.0],
        [np.nan, 1.0, 2.0],
        [-np.inf, -np.inf, -np.inf],
    ]
    expected = [[0, 0.5, 1], [0, 0, 1], [0, 0, 0], [np.nan, 0, 1], [0, 0, 0]]
    np.testing.assert_array_equal(min_max(np.array(raw)), expected)


def test_an_unknown_impostor_is_not_in_the_cohort():
    """User 2's own template scores 9; without it the cohort reaches from 1 to 4."""
    scores = plain_scores([[4.0, 1.0, 9.0, 2.0]], owners=[2])
    np.testing.assert_allclose(scores.normalised, [[3 / 8, 0, 1, 1 / 8]])
    np.testing.assert_allclose(scores.open_set, [[1, 0, 1, 1 / 3]])


def test_scores_survive_the_table(typists):
    scores = score_protocol(OpenSet(Enrolment(2), groups=3), make_detector("manhattan"), Samples.of(typists))
    again = Scores.from_frame(scores.to_frame(), scores.normalisation)
    for name in ("owners", "sessions", "folds"):
        np.testing.assert_array_equal(getattr(again, name), getattr(scores, name))
    place = [again.users.tolist().index(user) for user in scores.users]
    for name in ("raw", "trials"):
        np.testing.assert_array_equal(getattr(again, name)[:, place], getattr(scores, name))
