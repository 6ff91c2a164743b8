"""Everything the model computes, against the sum over all paths."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import integrate, special

from keydyn import POHMM
from keydyn.model.theta import lattice as lattices
from tests.model.enumeration import FAMILIES, Truth, random_values

# Sums of a few hundred terms in double precision.
CLOSE = {"rtol": 1e-10, "atol": 1e-12}

CASES = {
    "two states": {"m": 3, "n_states": 2},
    "three states": {"m": 3, "n_states": 3},
    "four states, four types": {"m": 4, "n_states": 4, "families": ("lognormal", "normal")},
    "an unreachable state": {"m": 3, "n_states": 3, "zeros": True},
    "one state": {"m": 3, "n_states": 1},
    "one type": {"m": 1, "n_states": 3},
}


class Case:
    """A random model with ragged sequences: missing values, and event types seen, missing and new."""

    def __init__(self, options, known_types=False):
        rng = np.random.default_rng(20180401)
        self.truth = Truth.random(rng, **options)
        self.model = POHMM.from_parameters(*self.truth.arguments())
        m, families = self.truth.m, [family for family, _ in self.truth.emission]
        self.lengths = [1, 4, 2, 5, 3]
        self.x = [random_values(rng, families, n, missing=0.2) for n in self.lengths]
        self.codes = [rng.integers(0, m + (0 if known_types else 1), n) for n in self.lengths]
        # An unknown type is a missing label or a new one.
        names = [*self.truth.types, None]
        self.events = [
            [names[w] if w < m or n % 2 else "never seen" for n, w in enumerate(codes)]
            for codes in self.codes
        ]

    def sequences(self):
        return zip(self.x, self.codes, strict=True)


@pytest.fixture(params=CASES, scope="module")
def case(request):
    return Case(CASES[request.param])


def test_score_of_each_sequence(case):
    expected = [case.truth.log_likelihood(x, codes) for x, codes in case.sequences()]
    np.testing.assert_allclose(case.model.score_sequences(case.x, events=case.events), expected, **CLOSE)
    assert case.model.score(case.x, events=case.events) == pytest.approx(sum(expected), rel=1e-12)


def test_score_of_each_event_is_the_ratio_of_likelihoods(case):
    expected = []
    for x, codes in case.sequences():
        upto = [0.0] + [case.truth.log_likelihood(x[:n], codes[:n]) for n in range(1, len(x) + 1)]
        expected += list(np.diff(upto))
    np.testing.assert_allclose(case.model.score_samples(case.x, events=case.events), expected, **CLOSE)


def test_posterior_and_filtered_states(case):
    posterior, filtered = [], []
    for x, codes in case.sequences():
        posterior += [_state_shares(case.truth.paths(x, codes), n, case.truth.M) for n in range(len(x))]
        filtered += [
            _state_shares(case.truth.paths(x[: n + 1], codes[: n + 1]), n, case.truth.M)
            for n in range(len(x))
        ]
    np.testing.assert_allclose(case.model.predict_proba(case.x, events=case.events), posterior, **CLOSE)
    np.testing.assert_allclose(case.model.filter_proba(case.x, events=case.events), filtered, **CLOSE)
    np.testing.assert_array_equal(
        case.model.predict(case.x, events=case.events), np.argmax(posterior, axis=1)
    )


def test_joint_posterior_of_neighbouring_states(case):
    for x, codes, events in zip(case.x, case.codes, case.events, strict=True):
        if len(x) == 1:
            continue
        lattice = case.model._lattice([x], [events], None)
        found = lattices.posterior(lattice).transitions
        paths = case.truth.paths(x, codes)
        total = special.logsumexp(list(paths.values()))
        expected = np.zeros_like(found)
        for path, log_p in paths.items():
            for n, (i, j) in enumerate(itertools.pairwise(path)):
                expected[lattice.walk.steps[n + 1], i, j] += np.exp(log_p - total)
        np.testing.assert_allclose(found, expected, **CLOSE)


def test_most_probable_path(case):
    log_p, states = case.model.decode(case.x, events=case.events)
    found = np.split(states, np.cumsum(case.lengths)[:-1])
    for s, (x, codes) in enumerate(case.sequences()):
        paths = case.truth.paths(x, codes)
        assert log_p[s] == pytest.approx(max(paths.values()), rel=1e-10)
        assert paths[tuple(found[s].tolist())] == pytest.approx(log_p[s], rel=1e-10)


@pytest.mark.parametrize("next_code", ["known", "unknown"])
def test_next_emission(case, next_code):
    truth = case.truth
    code = 0 if next_code == "known" else truth.m
    distribution = case.model.predict_next(
        case.x, events=case.events, next_event=truth.types[0] if code == 0 else "never seen"
    )
    rng = np.random.default_rng(3)
    following = random_values(rng, [f for f, _ in truth.emission], len(case.x))
    expected = [
        truth.log_likelihood(np.vstack([x, y]), [*codes, code]) - truth.log_likelihood(x, codes)
        for (x, codes), y in zip(case.sequences(), following, strict=True)
    ]
    np.testing.assert_allclose(distribution.logpdf(following), expected, **CLOSE)


def test_next_emission_mixed_by_the_event_chain(case):
    truth = case.truth
    distribution = case.model.predict_next(case.x, events=case.events)
    rng = np.random.default_rng(3)
    following = random_values(rng, [f for f, _ in truth.emission], len(case.x))
    expected = []
    for (x, codes), y in zip(case.sequences(), following, strict=True):
        chances = truth.prob if codes[-1] == truth.m else truth.event_trans[codes[-1]]
        terms = [
            np.log(chances[w]) + truth.log_likelihood(np.vstack([x, y]), [*codes, w]) for w in range(truth.m)
        ]
        expected.append(special.logsumexp(terms) - truth.log_likelihood(x, codes))
    np.testing.assert_allclose(distribution.logpdf(following), expected, **CLOSE)


def test_next_emission_is_a_distribution():
    """Its cdf is the integral of its density, its quantile the inverse, its mean the integral of 1 − cdf."""
    case = Case({"m": 3, "n_states": 2, "families": ("gamma",)})
    distribution = case.model.predict_next(case.x[1:2], events=case.events[1:2])

    def density(x):
        return np.exp(distribution.logpdf([[x]])[0])

    for x in (0.5, 2.0, 8.0):
        assert distribution.cdf(x)[0, 0] == pytest.approx(integrate.quad(density, 0, x)[0], rel=1e-8)
    for q in (0.01, 0.5, 0.999):
        assert distribution.cdf(distribution.quantile(q))[0, 0] == pytest.approx(q, rel=1e-12)
    mean = integrate.quad(lambda x: 1 - distribution.cdf(x)[0, 0], 0, 200, limit=200)[0]
    assert distribution.mean()[0, 0] == pytest.approx(mean, rel=1e-8)


def test_a_log_student_next_emission_says_that_it_has_no_mean():
    case = Case({"m": 2, "n_states": 2, "families": ("logstudent",)})
    distribution = case.model.predict_next(case.x, events=case.events)
    with pytest.raises(ValueError, match=r"no finite mean.*quantile\(0\.5\)"):
        distribution.mean()
    assert np.isfinite(distribution.quantile(0.5)).all()


JOINT_CASES = {
    "mixed": {"m": 3, "n_states": 2, "families": FAMILIES},
    "three states": {"m": 2, "n_states": 3, "families": ("lognormal", "normal")},
    "one type": {"m": 1, "n_states": 2, "families": ("normal",)},
}


@pytest.fixture(params=JOINT_CASES, scope="module")
def joint_case(request):
    """As above, but an unknown type is always a missing label: a new one is refused."""
    case = Case(JOINT_CASES[request.param])
    names = [*case.truth.types, None]
    case.events = [[names[w] for w in codes] for codes in case.codes]
    return case


def test_joint_likelihood_sums_over_missing_types(joint_case):
    truth = joint_case.truth
    expected = [
        special.logsumexp(
            [truth.log_events(w) + truth.log_likelihood(x, w) for w in truth.completions(codes)]
        )
        for x, codes in joint_case.sequences()
    ]
    found = joint_case.model.score_joint(joint_case.x, events=joint_case.events)
    np.testing.assert_allclose(found, expected, **CLOSE)


def test_recovered_events(joint_case):
    truth = joint_case.truth
    types, shares = joint_case.model.predict_events(joint_case.x, events=joint_case.events)
    expected = []
    for x, codes in joint_case.sequences():
        ways = {w: truth.log_events(w) + truth.log_likelihood(x, w) for w in truth.completions(codes)}
        expected += [_state_shares(ways, n, truth.m) for n in range(len(x))]
    np.testing.assert_allclose(shares, expected, **CLOSE)
    assert types.tolist() == [truth.types[w] for w in np.argmax(expected, axis=1)]


def test_most_probable_joint_sequence(joint_case):
    truth = joint_case.truth
    log_p, types, states = joint_case.model.decode_events(joint_case.x, events=joint_case.events)
    ends = np.cumsum(joint_case.lengths)[:-1]
    for s, (x, codes) in enumerate(joint_case.sequences()):
        ways = {
            (w, path): truth.log_events(w) + value
            for w in truth.completions(codes)
            for path, value in truth.paths(x, w).items()
        }
        assert log_p[s] == pytest.approx(max(ways.values()), rel=1e-10)
        w = tuple(truth.types.index(t) for t in np.split(types, ends)[s])
        assert ways[w, tuple(np.split(states, ends)[s].tolist())] == pytest.approx(log_p[s], rel=1e-10)


def fitted_truth():
    """A fitted model, with an event chain of counts: what it says of itself, and its interpolated chain."""
    rng = np.random.default_rng(17)
    lengths, X = [7, 5, 1, 9], rng.lognormal(1, 0.5, (22, 1))
    events = rng.choice(list("abc"), 22)
    events[-1] = "d"
    model = POHMM(tol=0.5).fit(X, events=events, lengths=lengths)
    m = len(model.event_types_)
    pairs, share = np.zeros((m, m)), np.zeros(m)
    for n, label in enumerate(events):
        share[list("abcd").index(label)] += 1 / 22
        if n not in (0, 7, 12, 13):
            pairs[list("abcd").index(events[n - 1]), list("abcd").index(label)] += 1
    leaving = pairs.sum(axis=1, keepdims=True)
    observed = np.divide(pairs, leaving, out=np.full((m, m), 1 / m), where=leaving > 0)
    weight = 1 / (1 + leaving)
    truth = Truth(
        list("abcd"),
        model.startprob_,
        model.transmat_,
        [(e.family, e.params) for e in model.emission_],
        model.event_startprob_,
        (1 - weight) * observed + weight * share,
    )
    return model, truth


@pytest.mark.parametrize("given", ["....", ".b..", "abdc", "a.da", "aaaa", "dd.."])
def test_joint_questions_to_a_fitted_model(given):
    """Its event chain is interpolated with the shares of the types; a start is not."""
    model, truth = fitted_truth()
    x = np.random.default_rng(1).lognormal(1, 0.5, (4, 1))
    x[1] = np.nan
    events = [None if label == "." else label for label in given]
    codes = [4 if label == "." else "abcd".index(label) for label in given]
    ways = {
        (w, path): truth.log_events(w) + value
        for w in truth.completions(codes)
        for path, value in truth.paths(x, w).items()
    }
    total = special.logsumexp(list(ways.values()))
    assert model.score_joint(x, events=events)[0] == pytest.approx(total, rel=1e-9)
    if total == -np.inf:
        return
    by_types = {}
    for (w, _), value in ways.items():
        by_types[w] = np.logaddexp(by_types.get(w, -np.inf), value)
    _, shares = model.predict_events(x, events=events)
    np.testing.assert_allclose(shares, [_state_shares(by_types, n, 4) for n in range(4)], atol=1e-9)
    log_p, types, states = model.decode_events(x, events=events)
    assert log_p[0] == pytest.approx(max(ways.values()), rel=1e-9)
    found = tuple("abcd".index(t) for t in types), tuple(states.tolist())
    assert ways[found] == pytest.approx(log_p[0], rel=1e-9)


def test_joint_likelihood_of_many_known_types_costs_no_square():
    X = np.random.default_rng(2).lognormal(5, 1, (30_000, 1))
    events = np.arange(30_000) % 20_000
    model = POHMM(tol=1e9, max_iter=2).fit(X, events=events)
    assert np.isfinite(model.score_joint(X, events=events)).all()
    with pytest.raises(ValueError, match=r"20000 event types × 2 states are too many"):
        model.predict_events(X[:5])


def _state_shares(paths, position, n_states):
    """The share of each value at one position among weighted paths."""
    values = np.array(list(paths.values()))
    weights = np.exp(values - special.logsumexp(values))
    where = np.array([path[position] for path in paths])
    return [weights[where == j].sum() for j in range(n_states)]
