"""Continuous verification against plain loops over events, the published figures, and cases by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from keydyn.evaluation.continuous.event_ranks import EventRanks
from keydyn.evaluation.continuous.lockout import PenaltyAndReward, RankPenalty
from keydyn.evaluation.continuous.penalty import HIGHEST, TrustSettings, first_above, ranks, window_penalty
from keydyn.evaluation.continuous.rejection import (
    PUBLISHED,
    SHARED,
    TRANSFERABLE,
    Actions,
    Times,
    continuous,
    has_published_thresholds,
    published_thresholds,
    shared_thresholds,
    transferable_thresholds,
)
from keydyn.evaluation.scores import Queries


def made_up(n_users=4, n_samples=3, seed=0):
    """Made-up queries of unequal length, for which the owner's template tends to score best."""
    rng = np.random.default_rng(seed)
    owners = np.repeat(np.arange(n_users), n_samples)
    lengths = rng.integers(20, 60, size=len(owners))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    scores = rng.normal(size=(offsets[-1], n_users)).round(1)
    scores[np.arange(offsets[-1]), np.repeat(owners, lengths)] += 1.0
    sessions = np.tile(np.arange(n_samples), n_users)
    queries = Queries(owners, sessions, np.zeros_like(sessions), np.arange(n_users))
    return EventRanks.of_scores(queries, offsets, scores), scores


def test_maximum_rejection_times_by_definition():
    """Penalty, threshold and first event above it, query by query and model by model."""
    queries, scores = made_up()
    penalty = window_penalty(ranks(scores), queries.offsets)
    expected = []
    for s, owner in enumerate(queries.owners):
        part = penalty[queries.offsets[s] : queries.offsets[s + 1]]
        threshold = part[:, owner].max()
        expected.append(np.mean([first_above(part[:, u], threshold) for u in range(4) if u != owner]))
    result = continuous(queries)
    np.testing.assert_allclose(result.per_sample["rejection_time"], expected)
    assert result.rejection.mean == pytest.approx(np.mean(expected))
    assert result.rejection.std == pytest.approx(np.std(expected, ddof=1))
    assert result.rejection.low < result.rejection.mean < result.rejection.high
    # By construction the owner is never locked out.
    assert result.anga is result.locked_out is result.locked_samples is None
    assert result.per_user["genuine_lockouts"].sum() == 0


@pytest.mark.parametrize("kind", [PUBLISHED, TRANSFERABLE, SHARED])
@pytest.mark.parametrize("watching", [RankPenalty(7), PenaltyAndReward(TrustSettings(penalty=9.0))])
def test_lockouts_by_running_every_session(kind, watching):
    """Event by event, beginning again after each lock-out."""
    queries, _ = made_up(seed=1)
    levels = watching.levels(queries)
    peaks = np.maximum.reduceat(levels, queries.offsets[:-1], axis=0)
    limits = {
        PUBLISHED: published_thresholds,
        TRANSFERABLE: transferable_thresholds,
        SHARED: shared_thresholds,
    }[kind](queries, peaks)
    counts = np.zeros((12, 4), dtype=int)
    for s in range(12):
        for u in range(4):
            column = queries.ranks[queries.offsets[s] : queries.offsets[s + 1], u].astype(float)
            begin, level = 0, HIGHEST
            for n in range(len(column)):
                if isinstance(watching, RankPenalty):
                    state = column[max(begin, n - 6) : n + 1].sum()
                else:
                    change = watching.settings.change(np.array([1.0 - column[n] / 3]))[0]
                    level = min(max(level + change, 0.0), HIGHEST)
                    state = HIGHEST - level
                if state > limits[s, u]:
                    counts[s, u] += 1
                    begin, level = n + 1, HIGHEST
    np.testing.assert_array_equal(watching.lockouts(queries, limits), counts)
    result = continuous(queries, watching, kind)
    own = queries.own
    assert result.ania.lockouts == counts[~own].sum() > 0
    assert result.ania.actions == 3 * queries.lengths.sum()
    assert result.unnoticed.value == pytest.approx(
        np.mean([(counts[~own[:, u], u] == 0).mean() for u in range(4)])
    )
    if kind != PUBLISHED:
        assert result.anga.lockouts == counts[own].sum()
        assert result.anga.actions == queries.lengths.sum()
        per_user = np.array([(counts[own[:, u], u] > 0).mean() for u in range(4)])
        assert result.locked_samples.value == pytest.approx(per_user.mean())
        assert result.locked_out.value == pytest.approx((per_user > 0).mean())


def test_thresholds_leave_out_what_a_system_cannot_know():
    """Two users with two samples each; peaks of the own template 5 7 and 2 3."""
    ranks = np.zeros((4, 2), dtype=np.float32)
    queries = EventRanks(
        np.array([0, 0, 1, 1]),
        np.array([0, 1, 0, 1]),
        np.zeros(4, dtype=np.int64),
        np.arange(2),
        np.arange(5),
        ranks,
        np.ones((4, 2), dtype=bool),
    )
    peaks = np.array([[5.0, 20.0], [7.0, 21.0], [22.0, 2.0], [23.0, 3.0]])
    np.testing.assert_array_equal(published_thresholds(queries, peaks)[:, 0], [5, 7, 2, 3])
    np.testing.assert_array_equal(transferable_thresholds(queries, peaks), [[7, 3], [5, 3], [7, 3], [7, 2]])
    np.testing.assert_array_equal(shared_thresholds(queries, peaks), [[3, 7]] * 4)
    np.testing.assert_array_equal(shared_thresholds(queries, peaks, 0.5), [[2, 5]] * 4)


def test_one_of_n_samples_is_above_the_others():
    """So with transferable thresholds one sample in three is locked, unless its level is tied."""
    result = continuous(made_up(12, 3, seed=4)[0], thresholds=TRANSFERABLE)
    assert result.locked_samples.value == pytest.approx(1 / 3)


def test_users_who_are_not_enrolled_take_no_part():
    """A fifth user has no template and a sample all the same: an impostor who claims to be others."""
    queries, scores = made_up()
    scores = np.column_stack([scores, np.full(len(scores), np.nan)])
    users, owners = np.arange(5), queries.owners.copy()
    wider = Queries(owners, queries.sessions, queries.folds, users)
    more = EventRanks.of_scores(wider, queries.offsets, scores)
    for kind in (PUBLISHED, TRANSFERABLE, SHARED):
        one, other = continuous(queries, thresholds=kind), continuous(more, thresholds=kind)
        assert one.rejection == other.rejection
        assert one.ania == other.ania
    assert other.per_user.loc[4].tolist() == [0, 0, 0, 0]
    owners[-1] = 4
    last = EventRanks.of_scores(wider, queries.offsets, scores)
    # Nobody knows the level of a genuine user on it, but others' thresholds apply.
    assert continuous(last).left_out == 1
    assert continuous(last, thresholds=TRANSFERABLE).left_out == 0
    assert continuous(last, thresholds=TRANSFERABLE).ania.actions > 0


def test_only_trials_count():
    """The first sample of each user is tried by others alone, the second by its owner alone."""
    queries, scores = made_up(4, 2)
    first = queries.sessions == 0
    trials = np.where(queries.own, ~first[:, None], first[:, None])
    some = EventRanks.of_scores(queries, queries.offsets, scores, trials)
    np.testing.assert_array_equal(some.ranks, queries.ranks)
    result = continuous(some, thresholds=SHARED)
    events = queries.lengths
    assert result.anga is not None
    assert result.anga.actions == events[~first].sum()
    assert result.ania.actions == 3 * events[first].sum()
    assert result.left_out == 4
    # the only genuine level of user u is that of the second sample
    peaks = np.maximum.reduceat(RankPenalty().levels(some), some.offsets[:-1], axis=0)
    limits = transferable_thresholds(some, peaks)
    np.testing.assert_array_equal(limits[first][1:, 0], [peaks[1, 0]] * 3)
    assert has_published_thresholds(queries)
    assert not has_published_thresholds(some)
    assert np.isnan(published_thresholds(some, peaks)[first]).all()


def test_one_user_has_no_impostors():
    single = EventRanks(
        np.array([0, 0]),
        np.arange(2),
        np.zeros(2, dtype=np.int64),
        np.array([0]),
        np.array([0, 2, 4]),
        np.zeros((4, 1), dtype=np.float32),
        np.ones((2, 1), dtype=bool),
    )
    for kind in (PUBLISHED, TRANSFERABLE, SHARED):
        with pytest.raises(ValueError, match="two users or more"):
            continuous(single, thresholds=kind)
    with pytest.raises(ValueError, match="published, transferable, shared, not 'mine'"):
        continuous(single, thresholds="mine")


def test_one_sample_each_leaves_the_genuine_side_open():
    result = continuous(made_up(3, 1)[0], thresholds=TRANSFERABLE)
    assert result.locked_out.value is None
    assert result.anga.value is None
    assert result.ania.actions > 0


def test_all_scores_equal():
    """Nobody is above anybody: no impostor is ever noticed."""
    queries, scores = made_up()
    equal = EventRanks.of_scores(queries, queries.offsets, np.zeros_like(scores))
    result = continuous(equal)
    np.testing.assert_array_equal(result.per_sample["rejection_time"], queries.lengths)
    assert result.ania.value is None
    assert result.unnoticed.value == 1.0
    assert result.ania.text() == f"> {3 * queries.lengths.sum() // 3:,}"


def test_texts():
    assert Times(20.792, 9.042, None, None, 240).text() == "20.79 (9.04)"
    assert Times(20.792, None, None, None, 1).text() == "20.79"
    assert Actions(3000, 4, None, None).text(1) == "750.0"
    assert Actions(3000, 0, None, None).text() == "> 1,000"
    assert Actions(3000, 0, None, None).above == 1000.0


def test_frames_keep_everything(tmp_path):
    queries, scores = made_up()
    scores = np.column_stack([scores, np.full(len(scores), np.nan)])
    second, first = (
        Queries(queries.owners, queries.sessions, np.full_like(queries.folds, fold), np.arange(5))
        for fold in (1, 0)
    )
    lacking = EventRanks.of_scores(second, queries.offsets, scores)
    drawn = np.random.default_rng(0).normal(size=scores.shape)
    other = EventRanks.of_scores(first, queries.offsets, drawn)
    whole = EventRanks.joined([other, lacking])
    whole.to_frame().to_parquet(tmp_path / "ranks.parquet")
    back = EventRanks.from_frame(pd.read_parquet(tmp_path / "ranks.parquet"))
    for name in ("owners", "sessions", "folds", "users", "offsets", "ranks", "trials"):
        np.testing.assert_array_equal(getattr(back, name), getattr(whole, name))
    assert back.ranks.dtype == np.float32
    assert len(whole.to_frame()) == 12 * 5 + 12 * 4


def test_ranks_that_do_not_fit_together():
    queries, _ = made_up()
    given = {
        "owners": queries.owners,
        "sessions": queries.sessions,
        "folds": queries.folds,
        "users": queries.users,
        "offsets": queries.offsets,
        "ranks": queries.ranks,
        "trials": queries.trials,
    }
    holed = queries.ranks.copy()
    holed[queries.offsets[1] + 2, 3] = np.nan
    empty = queries.offsets.copy()
    empty[1] = 0
    for wrong, message in (
        ({"ranks": queries.ranks[:-1]}, "ranks must have the shape"),
        ({"owners": queries.owners[:-1]}, "an owner, a session and a fold"),
        ({"ranks": holed}, "user 0, session 1, event 2: the rank of the template of user 3 is NaN"),
        ({"offsets": empty}, "user 0, session 0 has no events"),
        ({"trials": queries.trials[:-1]}, "trials must have the shape"),
    ):
        with pytest.raises(ValueError, match=message):
            EventRanks(**(given | wrong))
    with pytest.raises(ValueError, match="different users"):
        EventRanks.joined([queries, EventRanks(**(given | {"users": queries.users[::-1]}))])
    for none in (EventRanks.joined, EventRanks.from_frame):
        with pytest.raises(ValueError, match="no queries"):
            none([] if none == EventRanks.joined else pd.DataFrame())
    frame = queries.to_frame()
    frame["ranks"] = [row[:-1] if n == 3 else row for n, row in enumerate(frame["ranks"])]
    with pytest.raises(ValueError, match="row 3 has"):
        EventRanks.from_frame(frame)
