"""Copies are recognised from keyed fingerprints, and fresh samples are not taken for copies."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from keydyn.decisions.liveness.copies import (
    MARK,
    MOVES,
    Fingerprints,
    Fresh,
    copy_evidence,
    fill_copy_evidence,
    fingerprints_of,
)
from keydyn.decisions.liveness.not_typed import COPY_LIMIT, copy_reason
from keydyn.files import marked
from tests.decisions.typing import TEXT, samples, times

SECRET = b"a secret of sixteen bytes or more"


def displaced(tau, hold, jitter, random):
    """Every press and every release moved."""
    tau, hold = tau.copy(), hold.copy()
    press = np.cumsum(tau, axis=1)
    moved = np.maximum.accumulate(press + random.normal(0.0, jitter, press.shape), axis=1)
    release = np.maximum(press + hold + random.normal(0.0, jitter, press.shape), moved + 1.0)
    tau[:, 1:] = np.maximum(np.diff(moved, axis=1), 1.0)
    return tau, release - moved


@pytest.fixture(scope="module")
def enrolled():
    return times(20, np.random.default_rng(1))


@pytest.fixture(scope="module")
def known(enrolled):
    return Fingerprints.of(samples(*enrolled), SECRET)


@pytest.mark.parametrize(("jitter", "least"), [(0.0, 1.0), (1.0, 1.0), (5.0, 0.85)])
def test_copies_are_recognised(enrolled, known, jitter, least):
    copied = displaced(*enrolled, jitter, np.random.default_rng(2)) if jitter else enrolled
    evidence = copy_evidence(samples(*copied), known, SECRET)
    assert (evidence > COPY_LIMIT).mean() >= least
    assert all("a copy" in copy_reason(one) for one in evidence if one > COPY_LIMIT)


def test_fresh_samples_are_rarely_copies(known):
    """Where times vary as assumed, evidence above ln t comes up in fewer than one fresh sample in t."""
    n = 4000
    evidence = copy_evidence(samples(*times(n, np.random.default_rng(3)), first_session=100), known, SECRET)
    for t in (5, 20, 100):
        assert (evidence > np.log(t)).sum() <= n / t + 3 * np.sqrt(n / t)
    # The bound is no use if no sample ever comes near it.
    assert evidence.max() > -5.0
    assert copy_reason(float(np.median(evidence))) is None


def test_other_secrets_share_nothing(enrolled, known):
    assert (copy_evidence(samples(*enrolled), known, SECRET[::-1]) < -10).all()
    other = Fingerprints.of(samples(*enrolled), SECRET[::-1])
    assert np.isin(other.hashes, known.hashes).mean() < 0.01


def test_the_same_times_of_other_keys_are_a_copy(enrolled, known):
    """A password, whose keys are places, and the same sample sent as free text are one."""
    other_keys = [str(n) for n in range(1, len(TEXT) + 1)]
    assert (copy_evidence(samples(*enrolled, keys=other_keys), known, SECRET) > COPY_LIMIT).all()
    fresh = times(400, np.random.default_rng(8))
    evidence = copy_evidence(samples(*fresh, keys=other_keys, first_session=100), known, SECRET)
    assert not (evidence > COPY_LIMIT).any()


def test_part_of_the_text_is_enough(enrolled, known):
    """Keys before and after may be missing: a hash is of four keys."""
    cut = samples(enrolled[0][:, 2:], enrolled[1][:, 2:], keys=TEXT[2:])
    assert (copy_evidence(cut, known, SECRET) > COPY_LIMIT).mean() > 0.8


def test_a_coarse_clock_makes_no_copies():
    random = np.random.default_rng(4)
    coarse = [np.maximum(np.round(x / 15.625), 1.0) * 15.625 for x in times(400, random)]
    half = [x[:20] for x in coarse]
    known = Fingerprints.of(samples(*half), SECRET)
    fresh = copy_evidence(samples(*[x[20:] for x in coarse], first_session=20), known, SECRET)
    assert (fresh > COPY_LIMIT).mean() < 0.01
    assert (copy_evidence(samples(*half), known, SECRET) > COPY_LIMIT).all()


def fresh_moves(x, kind, tick):
    """(v, moves + 1) ln P of each number of steps of 5 ms to a fresh time, whose logarithm is Student t."""
    x = np.maximum(x, 1.0)
    edges = (np.floor(x / 5.0)[:, None] + np.arange(-7, 9)) * 5.0
    z = np.log(np.maximum(edges, 0.01) / x[:, None]) / np.array([0.2, 0.15])[kind][:, None]
    near = np.diff(stats.t(2).cdf(z), axis=1) * max(1.0, tick / 5.0)
    near *= np.minimum(1.0, 0.95 / near.sum(axis=1, keepdims=True))
    return np.log(np.maximum(np.column_stack([near, 1.0 - near.sum(axis=1)]), 1e-4))


def test_matching_agrees_with_a_search_through_everything():
    """Few different hashes, so that they collide within the sample, among known ones and in the table."""
    random = np.random.default_rng(7)
    moves = len(MOVES)
    for v, lengths in [(1, [1]), (5, [0, 3, 0, 9]), (20, [40, 1, 25])]:
        probes = random.integers(0, 40, (v, moves)).astype(np.uint32) * 0x01000001
        hashes = random.integers(0, 40, sum(lengths)).astype(np.uint32) * 0x01000001
        known = Fingerprints(hashes, np.concatenate([[0], np.cumsum(lengths)]))
        x, kind, copied = (
            random.lognormal(4, 1, v),
            random.integers(0, 2, v),
            random.normal(size=(3, moves + 1)),
        )
        tick = (1.0, 15.625)[v % 2]
        fresh, found = fresh_moves(x, kind, tick), np.empty((2, len(lengths), 2))
        both, of = np.stack([probes[::-1], probes]), Fresh.of(x, kind, tick)
        fill_copy_evidence(both, known.hashes, known.offsets, of, copied, found)
        found = found[1]
        for s in range(len(lengths)):
            mine = set(hashes[known.offsets[s] : known.offsets[s + 1]].tolist())
            hits = [[m for m in range(moves) if int(row[m]) in mine] for row in probes]
            least = [min(there, key=lambda m: (abs(m - 7), -m), default=moves) for there in hits]
            gains = copied[:, least] - fresh[np.arange(v), least]
            np.testing.assert_allclose(found[s, 0], gains.sum(axis=1).max())
            parts = [gains[:, a:b].sum(axis=1).max() for a in range(v) for b in range(a + 1, v + 1)]
            np.testing.assert_allclose(found[s, 1], max(parts))


def numbered(n_samples: int, each: int, first: int) -> Fingerprints:
    """Hashes that are numbers in a row, so that one can see which are left."""
    hashes = np.arange(first, first + n_samples * each, dtype=np.uint32)
    return Fingerprints(hashes, np.arange(n_samples + 1) * each)


def test_the_oldest_are_dropped(enrolled, known):
    """No more than 200 samples and 400,000 hashes are kept."""
    later = Fingerprints.of(samples(*times(185, np.random.default_rng(5))), SECRET)
    both = known.added(later)
    assert len(known) == 20
    assert len(both) == 200
    found = copy_evidence(samples(*enrolled), both, SECRET) > COPY_LIMIT
    assert not found[:5].any()
    assert found[5:].all()
    with pytest.raises(ValueError, match="read-only"):
        known.hashes[0] = 0


@pytest.mark.parametrize(
    ("each", "n_samples", "left"), [(10, 210, 200), (2_000, 210, 200), (60_000, 7, 6), (200_000, 2, 2)]
)
def test_as_many_are_kept_as_fit(each, n_samples, left):
    before = numbered(n_samples - 1, each, 0)
    both = before.added(numbered(1, each, len(before.hashes)))
    assert len(both) == left
    np.testing.assert_array_equal(both.hashes, np.arange((n_samples - left) * each, n_samples * each))
    np.testing.assert_array_equal(both.offsets, np.arange(left + 1) * each)
    assert len(both.added(Fingerprints.none())) == left


def test_the_latest_are_those_of_the_last_sample(known):
    last = Fingerprints.of(samples(*times(1, np.random.default_rng(6))), SECRET)
    found = known.added(last).latest()
    np.testing.assert_array_equal(found.hashes, last.hashes)
    np.testing.assert_array_equal(found.offsets, last.offsets)


def test_nothing_known_and_wrong_parts(enrolled):
    assert np.isneginf(copy_evidence(samples(*enrolled), Fingerprints.none(), SECRET)).all()
    assert copy_reason(-np.inf) is None
    with pytest.raises(ValueError, match="rise from 0"):
        Fingerprints(np.zeros(3, dtype=np.uint32), np.array([0, 2]))
    with pytest.raises(ValueError, match="32 bits"):
        Fingerprints(np.zeros(3), np.array([0, 3]))
    with pytest.raises(ValueError, match="16 to 64 bytes"):
        Fingerprints.of(samples(*enrolled), b"short")


@pytest.mark.parametrize("n_bytes", [0, 3, 9])
def test_fingerprints_are_refused_if_they_are_no_whole_numbers(n_bytes):
    with pytest.raises(ValueError, match="cut short"):
        fingerprints_of(marked(MARK, bytes(n_bytes)))


@pytest.mark.parametrize("words", [[2, 0], [1, 2, 7], [1, 0, 7]])
def test_fingerprints_are_refused_if_hashes_are_missing_or_left_over(words):
    """How many samples there are, how many hashes each has, and the hashes."""
    assert len(fingerprints_of(marked(MARK, np.array([1, 1, 7], dtype="<u4").tobytes())).hashes) == 1
    with pytest.raises(ValueError, match="as many hashes as they state"):
        fingerprints_of(marked(MARK, np.array(words, dtype="<u4").tobytes()))
