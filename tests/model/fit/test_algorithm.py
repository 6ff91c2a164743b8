"""The compiled Algorithm 1 against the open loop, and its expectation step against every path enumerated."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keydyn.model.estimation import exchange, indexing
from keydyn.model.estimation.tables import carve, room
from scipy import special

from keydyn import HMM, POHMM, Sequences
from keydyn.model.ask.inference import Inference
from keydyn.model.families.family import families_of
from keydyn.model.fit import fitting, training
from keydyn.model.theta import start_values as initialize
from tests.model.enumeration import Truth, random_values

FAMILIES = ("normal", "lognormal", "student", "logstudent")
RULES = st.sampled_from(["frequency", None, 0.2, 1.0])


@st.composite
def fits(draw):
    """A model of any setting that the compiled loop covers, and data with everything that may be missing."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    families = draw(st.lists(st.sampled_from(FAMILIES), min_size=1, max_size=3))
    lengths = draw(st.lists(st.integers(1, 12), min_size=1, max_size=8))
    n = sum(lengths)
    X = random_values(rng, families, n, missing=draw(st.sampled_from([0.0, 0.2])))
    X[0] = random_values(rng, families, 1)[0]
    events = rng.integers(0, draw(st.integers(1, 6)), n).astype(object)
    events[rng.random(n) < draw(st.sampled_from([0.0, 0.2]))] = None
    kind = draw(st.sampled_from([POHMM, POHMM.published, HMM, HMM.published]))
    changes = {
        "n_states": draw(st.integers(1, 4)),
        "emission": families,
        "smoothing": {part: draw(RULES) for part in ("start", "transitions", "emission")},
        "marginals": draw(st.sampled_from(["printed", "exact"])),
        "fixed": draw(st.sampled_from([(), ("start",), ("transitions",), ("emission", "start")])),
        "min_scale": draw(st.sampled_from(["auto", 0.05])),
        "density_floor": draw(st.sampled_from([None, 1e-3])),
        "count_floor": draw(st.sampled_from([0.0, 1e-3])),
        "start_estimate": draw(st.sampled_from(["sequence_start", "first_occurrence"])),
        "transition_weights": draw(st.sampled_from(["proper", "published"])),
        # Each iteration multiplies rounding errors: few enough to see a mistake far above them.
        "max_iter": draw(st.integers(1, 4)),
        "tol": draw(st.sampled_from([0.0, 0.5])),
    }
    if kind not in (POHMM, HMM):
        changes = {name: changes[name] for name in ("n_states", "emission", "max_iter")}
    weights = rng.uniform(0.2, 3.0, len(lengths)) if draw(st.booleans()) else np.ones(len(lengths))
    return kind(**changes), Sequences.from_arrays(X, events, lengths), weights


def both(model, sequences, weights):
    """The same fit by the compiled loop and by the open one."""
    families = families_of(model.emission, sequences.n_features)
    rules = model._settings(sequences.n_features)
    data = training.training_data(
        sequences.without_events() if isinstance(model, HMM) else sequences, families, weights
    )
    start = fitting.smooth(initialize.start_parameters(data, rules), data.counts, rules)
    assert exchange.is_covered(rules, families)
    return exchange.fit(data, rules, start), fitting.open_loop(data, rules, start)


def arrays(result):
    """Everything that a fit leaves, by name."""
    theta, marginal, sums = result.parameters, result.parameters.marginal, result.statistics
    found = {
        "startprob": theta.startprob,
        "transmat": theta.transmat,
        "marginal startprob": marginal.startprob,
        "marginal transmat": marginal.transmat,
        "transmat_from": marginal.transmat_from,
        "transmat_to": marginal.transmat_to,
        "leaving": theta.chain.leaving,
        "pair_prob": theta.chain.pair_prob,
        "start": sums.start,
        "start_all": sums.start_all,
        "first_occurrence": sums.first_occurrence,
        "occupancy": sums.occupancy,
        "transitions": sums.transitions,
    }
    for k, (e, of_all, stats) in enumerate(
        zip(theta.emission, marginal.emission, sums.emission, strict=True)
    ):
        found |= {f"{name} {k}": values for name, values in e.params.items()}
        found |= {f"marginal {name} {k}": values for name, values in of_all.params.items()}
        found |= {f"sum {name} {k}": values for name, values in stats.items()}
    return found


@given(fits())
@settings(max_examples=150, deadline=None)
def test_compiled_and_open_loop_agree(case):
    """All parameters, sums and the reason to stop, to rounding.

    The two differ in the order of sums and in how γ comes about, so by some 1e-15 a step of each of the
    at most 12 events; a maximisation step divides by sums of γ, which may be small.
    """
    compiled, by_hand = both(*case)
    np.testing.assert_allclose(compiled.history, by_hand.history, rtol=1e-10, atol=1e-9)
    assert compiled.stop_reason == by_hand.stop_reason
    assert compiled.log_likelihood == pytest.approx(by_hand.log_likelihood, rel=1e-10, abs=1e-9)
    expected = arrays(by_hand)
    for name, values in arrays(compiled).items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-6, atol=1e-7, err_msg=name)
    for mine, other in zip(compiled.floored, by_hand.floored, strict=True):
        np.testing.assert_array_equal(mine, other)


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
    model = POHMM.from_parameters(*truth.arguments(), warm_start=True, max_iter=1, order_states=False)
    with pytest.warns(match="not converged"):
        model.fit(X, events=events, lengths=lengths)

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
    found = model._totals
    assert model.history_[0] == pytest.approx(log_likelihood, rel=1e-11)
    np.testing.assert_allclose(found.occupancy, occupancy[:3], rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(found.start, start[:3], rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(found.start_all, start.sum(axis=0), rtol=1e-9, atol=1e-13)
    before, after = found.counts.pairs.T
    np.testing.assert_allclose(found.transitions, steps[before, after], rtol=1e-9, atol=1e-13)


def test_a_long_sequence_keeps_its_precision():
    """γ of a sequence of 50,000 adds up to one at every event: nothing drifts on the way back."""
    rng = np.random.default_rng(3)
    model = POHMM(max_iter=1, order_states=False)
    sequences = Sequences.from_arrays(rng.lognormal(5, 1, (50_000, 1)), rng.integers(0, 4, 50_000))
    compiled, by_hand = both(model, sequences, np.ones(1))
    counts = compiled.statistics.counts
    np.testing.assert_allclose(compiled.statistics.occupancy.sum(axis=1), counts.types, rtol=1e-12)
    np.testing.assert_allclose(compiled.statistics.occupancy, by_hand.statistics.occupancy, rtol=1e-10)
    np.testing.assert_allclose(compiled.statistics.transitions.sum(axis=(1, 2)), counts.pair, rtol=1e-12)


def test_what_needs_the_open_loop():
    """A callback, another family or an estimated ν is not for the compiled loop."""

    def covered(**changes):
        model = HMM(**changes)
        families = families_of(model.emission, 1)
        rules = model._settings(1)
        return exchange.is_covered(rules, families)

    assert covered()
    assert not covered(callback=print)
    assert not covered(verbose=1)
    assert not covered(emission="gamma")
    assert not covered(emission=exchange.Student(estimate_df=True))
    assert covered(emission=exchange.Student(df=7.0))


def test_impossible_data_are_told_the_same_way():
    """A sequence without probability raises the open loop's error, which names it."""
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


@pytest.mark.parametrize("smoothing", [None, "frequency", 0.3])
@pytest.mark.parametrize("n_states", [1, 2, 3])
def test_compiled_scores_are_those_of_the_lattice(n_states, smoothing):
    """Known, unknown and missing types, pairs never seen, missing values, a floor; sequence by sequence."""
    rng = np.random.default_rng(7)
    families = ["lognormal", "student"]
    X = random_values(rng, families, 60, missing=0.1)
    kind = {"smoothing": smoothing, "n_states": n_states, "emission": families}
    for changes in ({}, {"density_floor": 1e-2}, {"transition_weights": "published"}):
        model = POHMM(**kind, **changes).fit(X, events=rng.choice(list("abcd"), 60), lengths=[20, 40])
        # Far from everything: densities that underflow, and the careful way.
        X[5, 1] = 1e8
        query = Sequences.from_arrays(X, rng.choice([*"abcdefg", None], 60), [1, 9, 50])
        for ask in ("score_sequences", "score_samples"):
            found, expected = getattr(model, ask)(query), getattr(Inference, ask)(model, query)
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


def test_the_memory_of_a_fit_is_carved_without_gap_or_overlap():
    """Every number of it belongs to exactly one array."""
    for shape in itertools.product((1, 3), (1, 4), (1, 2, 3), (0, 5), (5, 7)):
        memory = np.arange(room(shape), dtype=float)
        pairs = np.zeros((2, shape[4]), dtype=np.int64)
        fit = carve(memory, shape, pairs[0], pairs[1], np.zeros(0, dtype=bool))
        parts = [*fit.tables[:7], *fit.sums, *fit.basis[2:], *fit.counted, fit.overall, fit.stationary]
        assert np.concatenate([part.ravel() for part in parts]).tolist() == memory.tolist()


def test_many_pairs_change_the_order_of_work_and_nothing_else():
    """With many possible pairs the table is in the order of the data; results come back sorted.

    The open loop's are sorted throughout.
    """
    rng = np.random.default_rng(11)
    n, m = 40_000, 400
    events = rng.integers(0, m, n).astype(object)
    events[rng.random(n) < 0.02] = None
    sequences = Sequences.from_arrays(rng.lognormal(5, 1, (n, 1)), events, [1_000] * 40)
    model = POHMM(max_iter=2, tol=0.0)
    families, rules = families_of(model.emission, 1), model._settings(1)
    (found,) = exchange.fit_each([sequences], [np.ones(40)], families, rules)
    _, by_hand = both(model, sequences, np.ones(40))
    assert m * m > indexing.SMALL_TABLE
    np.testing.assert_array_equal(found.parameters.pairs, by_hand.parameters.pairs)
    np.testing.assert_array_equal(found.statistics.counts.pair, by_hand.statistics.counts.pair)
    expected = arrays(by_hand)
    for name, values in arrays(found).items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-8, atol=1e-9, err_msg=name)
