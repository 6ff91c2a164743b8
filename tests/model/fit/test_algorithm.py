"""Algorithm 1, compiled: against the same in plain loops, and against the sum over all paths."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import special, stats

from keydyn import HMM, POHMM, Sequences
from keydyn.model import Categorical
from keydyn.model.families.family import families_of
from keydyn.model.fit.estimator import training_data
from tests.examples import examples
from tests.model.enumeration import Truth, random_values
from tests.model.plain_fit import PARAMETERS, ImpossibleError, PlainFit, values_of

RULES = st.sampled_from(["frequency", None, 0.2, 0.7, 1.0])


def family_of(name):
    return Categorical(n_categories=3) if name == "categorical" else name


@st.composite
def fits(draw):
    """A model of any setting, and data with everything that may be missing."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from([POHMM, POHMM.published, HMM, HMM.published]))
    published = kind not in (POHMM, HMM)
    # The published floor of 1e-5 allows gamma shapes of 1e10, beyond the precision of scipy's density.
    names = [name for name in PARAMETERS if not (published and name == "gamma")]
    families = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))
    lengths = draw(st.lists(st.integers(1, 12), min_size=1, max_size=8))
    n = sum(lengths)
    X = values_of(rng, families, n, missing=draw(st.sampled_from([0.0, 0.2])))
    events = rng.integers(0, draw(st.integers(1, 6)), n).astype(object)
    events[rng.random(n) < draw(st.sampled_from([0.0, 0.2]))] = None
    changes = {
        "n_states": draw(st.integers(1, 4)),
        "smoothing": {part: draw(RULES) for part in ("start", "transitions", "emission")},
        "marginals": draw(st.sampled_from(["printed", "exact"])),
        "fixed": draw(st.sampled_from([(), ("start",), ("transitions",), ("emission", "start")])),
        "min_scale": 0.05 if "gamma" in families else draw(st.sampled_from(["auto", 0.05])),
        "density_floor": draw(st.sampled_from([None, 1e-3])),
        "count_floor": draw(st.sampled_from([0.0, 1e-3])),
        "start_estimate": draw(st.sampled_from(["sequence_start", "first_occurrence"])),
        "transition_weights": draw(st.sampled_from(["proper", "published"])),
        # Each iteration multiplies rounding errors: few enough to see a mistake far above them.
        "max_iter": draw(st.integers(1, 4)),
        "tol": draw(st.sampled_from([1e-4, 0.5])),
    }
    if published:
        changes = {name: changes[name] for name in ("n_states", "max_iter", "tol")}
    weights = rng.uniform(0.2, 3.0, len(lengths)) if draw(st.booleans()) else np.ones(len(lengths))
    emission = [family_of(name) for name in families]
    model = kind(emission=emission, order_states=False, **changes)
    return model, families, X, events, lengths, weights


def in_plain_loops(model, families, X, events, lengths, weights):
    """The same fit, written down a second time."""
    rule = model.smoothing
    rules = rule if isinstance(rule, dict) else dict.fromkeys(("start", "transitions", "emission"), rule)
    types = sorted({event for event in events if event is not None})
    if isinstance(model, HMM) or not types:
        codes, types = np.zeros(len(X), dtype=int), [None]
    else:
        codes = np.array([len(types) if event is None else types.index(event) for event in events])
    settings = model.get_params() | {"smoothing": rules, "fixed": model.fixed}
    return PlainFit(X, codes, lengths, weights, tuple(families), settings, len(types)).run()


def fitted(model, X, events, lengths, weights):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, events=events, lengths=lengths, sample_weight=weights)


def assert_same(found, expected, **close):
    """Every parameter and sum of a fitted model, unseen pairs and marginals included."""
    marginal, sums = found.marginal_, found._state.result.statistics
    pairs = sums.counts.pairs
    of_arrays = {
        "startprob": (found.startprob_, expected.start),
        "transmat": (found.transmat_, expected.every_step()),
        "marginal startprob": (marginal.startprob, expected.marginal_start),
        "marginal transmat": (marginal.transmat, expected.marginal_trans),
        "transmat_from": (marginal.transmat_from, expected.given_before),
        "transmat_to": (marginal.transmat_to, expected.given_after),
        "event_transmat": (found.event_transmat_, expected.chain),
        "event_prob": (found.event_prob_, expected.prob),
        "sum start": (sums.start, expected.sums.start),
        "sum first_seen": (sums.first_seen[:-1], expected.sums.first_seen),
        "occupancy": (sums.occupancy, expected.occupancy()),
        "sum transitions": (sums.transitions, expected.sums.steps[pairs[:, 0], pairs[:, 1]]),
    }
    for k, table in enumerate(expected.emission):
        for name, values in table.items():
            of_arrays[f"{name} {k}"] = (found.emission_[k].params[name], values)
            of_all = marginal.emission[k].params[name]
            of_arrays[f"marginal {name} {k}"] = (of_all, expected.marginal_emission[k][name])
    for name, (ours, theirs) in of_arrays.items():
        np.testing.assert_allclose(ours, theirs, err_msg=name, **close)
    assert set(map(tuple, pairs.tolist())) == set(zip(*np.nonzero(expected.pairs), strict=True))


@given(fits())
@settings(max_examples=examples(150), deadline=None)
def test_a_fit_is_that_of_plain_loops(case):
    """All parameters, sums and the reason to stop, to rounding.

    The two differ in the order of sums and in how γ comes about, so by some 1e-15 a step of each of the
    at most 12 events; a maximisation step divides by sums of γ, which may be small.
    """
    model, _, X, events, lengths, weights = case
    try:
        expected = in_plain_loops(*case)
    except ImpossibleError:
        # A category that has died out in all states occurs where the event has no type, say.
        with pytest.raises(ValueError, match="has probability zero under the model"):
            fitted(model, X, events, lengths, weights)
        return
    gains, size = np.diff(expected.history), 1.0 + abs(expected.log_likelihood)
    # Where rounding decides whether it stops, either answer is right; nor is underflow the question here.
    assume(not expected.faint)
    assume((abs(gains - model.tol) > 1e-9 * size).all())
    assume(((abs(gains) < 1e-11 * size) | (abs(gains) > 1e-9 * size)).all())
    found = fitted(model, X, events, lengths, weights)
    np.testing.assert_allclose(found.history_, expected.history, rtol=1e-10, atol=1e-9)
    assert found.stop_reason_ == expected.stop_reason
    assert found.log_likelihood_ == pytest.approx(expected.log_likelihood, rel=1e-10, abs=1e-9)
    assert_same(found, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(found.scale_floored_, np.array(expected.floored))


@pytest.mark.parametrize(("n_states", "zeros"), [(1, False), (2, False), (2, True), (3, False), (3, True)])
@pytest.mark.parametrize("apart", [1.0, 60.0], ids=["ordinary", "underflow"])
def test_expectation_against_every_path(n_states, apart, zeros):
    """γ and ξ of an expectation step by enumeration; states far apart make densities underflow."""
    rng = np.random.default_rng(n_states)
    truth = Truth.random(rng, m=3, n_states=n_states, families=("normal", "logstudent"), zeros=zeros)
    truth.emission[0][1]["loc"][:] = apart * np.arange(n_states)
    lengths = [5, 1, 6]
    X = random_values(rng, ("normal", "logstudent"), 12, missing=0.1)
    X[3, 0] = 0.55 * apart * (n_states - 1)
    codes = rng.integers(0, 4, 12)
    events = np.array([*truth.types, None], dtype=object)[codes]
    model = POHMM.from_parameters(*truth.arguments()).accumulate(X, events=events, lengths=lengths)

    log_likelihood, occupancy, start = 0.0, np.zeros((4, n_states)), np.zeros((4, n_states))
    steps = np.zeros((4, 4, n_states, n_states))
    for first, last in itertools.pairwise(np.cumsum([0, *lengths])):
        paths = truth.paths(X[first:last], codes[first:last])
        total = special.logsumexp(list(paths.values()))
        log_likelihood += total
        for path, log_probability in paths.items():
            share = math.exp(log_probability - total)
            start[codes[first], path[0]] += share
            for n, j in enumerate(path):
                occupancy[codes[first + n], j] += share
            for n, (i, j) in enumerate(itertools.pairwise(path)):
                steps[codes[first + n], codes[first + n + 1], i, j] += share
    found = model._state.result.statistics
    assert found.log_likelihood == pytest.approx(log_likelihood, rel=1e-11)
    np.testing.assert_allclose(found.occupancy, occupancy[:3], rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(found.start[:3], start[:3], rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(found.start[3], start.sum(axis=0), rtol=1e-9, atol=1e-13)
    before, after = found.counts.pairs.T
    np.testing.assert_allclose(found.transitions, steps[before, after], rtol=1e-9, atol=1e-13)


def test_a_long_sequence_keeps_its_precision():
    """γ of a sequence of 50,000 adds up to one at every event: nothing drifts on the way back.

    The truth are α and β in plain loops, both scaled to one at every event.
    """
    rng = np.random.default_rng(3)
    n = 50_000
    x, codes = rng.lognormal(5, 1, n), rng.integers(0, 4, n)
    truth = Truth.random(rng, m=4, n_states=2, families=("lognormal",))
    truth.emission[0][1]["loc"][:] = [[4.5, 5.5]] * 4
    model = POHMM.from_parameters(*truth.arguments())
    found = model.accumulate(x[:, None], events=np.array(truth.types)[codes])._state.result.statistics

    params = truth.emission[0][1]
    density = stats.lognorm.pdf(x[:, None], s=params["scale"][codes], scale=np.exp(params["loc"][codes]))
    alpha, beta = np.empty((n, 2)), np.ones((n, 2))
    alpha[0] = truth.start[codes[0]] * density[0]
    alpha[0] /= alpha[0].sum()
    for k in range(1, n):
        alpha[k] = (alpha[k - 1] @ truth.trans[codes[k - 1], codes[k]]) * density[k]
        alpha[k] /= alpha[k].sum()
    occupancy, steps = np.zeros((4, 2)), np.zeros((4, 4, 2, 2))
    occupancy[codes[-1]] += alpha[-1]
    for k in range(n - 2, -1, -1):
        a, ahead = truth.trans[codes[k], codes[k + 1]], density[k + 1] * beta[k + 1]
        joint = alpha[k][:, None] * a * ahead
        joint /= joint.sum()
        steps[codes[k], codes[k + 1]] += joint
        occupancy[codes[k]] += joint.sum(axis=1)
        beta[k] = a @ ahead
        beta[k] /= beta[k].sum()
    np.testing.assert_allclose(found.occupancy, occupancy, rtol=1e-10)
    np.testing.assert_allclose(found.transitions, steps.reshape(16, 2, 2), rtol=1e-10)
    np.testing.assert_allclose(found.occupancy.sum(axis=1), np.bincount(codes), rtol=1e-12)
    np.testing.assert_allclose(found.transitions.sum(axis=(1, 2)), found.counts.pair_counts, rtol=1e-12)


def test_many_pairs_change_the_order_of_work_and_nothing_else():
    """With many possible pairs the table is in the order of the data; results come back sorted."""
    rng = np.random.default_rng(11)
    n, m, lengths = 1_000, 100, [50] * 20
    events = rng.integers(0, m, n).astype(object)
    events[rng.random(n) < 0.02] = None
    X = rng.lognormal(5, 1, (n, 1))
    model = POHMM(max_iter=2, tol=0.0, order_states=False)
    sequences = Sequences.from_arrays(X, events, lengths)
    assert not training_data(sequences, families_of("lognormal", 1), None).in_order
    found = fitted(model, X, events, lengths, None)
    model.set_params(smoothing="frequency")
    expected = in_plain_loops(model, ["lognormal"], X, events, lengths, np.ones(20))
    np.testing.assert_allclose(found.history_, expected.history, rtol=1e-11)
    assert_same(found, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("n_states", [1, 2, 3])
def test_the_states_of_a_type_without_its_emissions(n_states):
    """P(z_n | Ω) of all events of a type, added up in plain loops with the weights of their sequences."""
    rng = np.random.default_rng(7)
    codes, lengths, weights = [0, 1, 1, 0, 2, 1, 0, 0, 2], [4, 1, 4], [1.0, 2.0, 0.5]
    model = POHMM(n_states=n_states, tol=1e9).fit(
        rng.lognormal(5.0, 0.5, (9, 1)), events=codes, lengths=lengths, sample_weight=weights
    )
    shares = np.zeros((3, n_states))
    for sequence, weight in zip(np.split(codes, np.cumsum(lengths)[:-1]), weights, strict=True):
        chances = model.startprob_[sequence[0]]
        shares[sequence[0]] += weight * chances
        for before, after in itertools.pairwise(sequence):
            chances = chances @ model.transmat_[before, after]
            shares[after] += weight * chances
    np.testing.assert_allclose(model.stationary_, shares / shares.sum(axis=1, keepdims=True), rtol=1e-9)


@pytest.mark.parametrize("n_states", [1, 2, 3])
def test_a_fit_that_is_watched_is_the_same_fit(n_states, capsys):
    """A callback and messages make Python look at every iteration; not a bit changes."""
    rng = np.random.default_rng(5)
    X, events = rng.lognormal(5, 1, (60, 2)), rng.choice(list("abc"), 60)
    seen = []
    kind = {"n_states": n_states, "emission": ["lognormal", "gamma"], "tol": 1e-3}
    plain = POHMM(**kind).fit(X, events=events, lengths=[20, 40])
    watched = POHMM(**kind, callback=seen.append, verbose=1).fit(X, events=events, lengths=[20, 40])
    np.testing.assert_array_equal(plain.history_, watched.history_)
    assert [one.log_likelihood for one in seen] == plain.history_.tolist()
    assert len(capsys.readouterr().err.splitlines()) == plain.n_iter_
    for name in ("startprob_", "transmat_", "stationary_", "scale_floored_"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(watched, name))
    np.testing.assert_array_equal(plain._parameters.emissions, watched._parameters.emissions)


def test_impossible_data_are_named():
    """A sequence without probability is an error that names it."""
    truth = Truth.random(np.random.default_rng(0), m=1, n_states=2, families=("normal",))
    truth.trans[..., 1], truth.trans[..., 0] = 0.0, 1.0
    truth.start[:] = [1.0, 0.0]
    truth.emission[0][1]["scale"][:] = 1e-200
    model = POHMM.from_parameters(*truth.arguments(), warm_start=True)
    # A distance of 1e200 deviations overflows when squared: no density at all.
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="sequence 1 has probability zero"):
        model.fit(
            [np.full((2, 1), truth.emission[0][1]["loc"][0, 0]), np.ones((2, 1))], events=[["k0"] * 2] * 2
        )


def test_nobody_is_told_of_an_impossible_step(capsys):
    """There is no log-likelihood to tell: neither the callback nor the terminal hears of it."""
    seen = []
    flat = [("normal", [0.0, 0.0], [1e-200, 1e-200])]
    model = HMM.from_parameters([1.0, 0.0], np.eye(2), flat, warm_start=True, callback=seen.append, verbose=1)
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="sequence 0 has probability zero"):
        model.fit(np.ones((3, 1)))
    assert seen == []
    assert capsys.readouterr().err == ""
