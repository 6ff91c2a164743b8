"""One whole iteration, written a second time in loops over all m² pairs: M-step, marginals, smoothing."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
from scipy import optimize, special

from keydyn import POHMM
from tests.model.enumeration import Truth, random_values

M_TYPES, STATES, LENGTHS = 4, 2, [4, 6, 1, 5]
# k3 is seen once, at the end of a sequence: nothing follows it. k1 begins no sequence.
CODES = [0, 1, 0, 2, 0, 0, 1, 2, 0, 1, 2, 2, 1, 0, 1, 3]


def expected_counts(truth, X):
    """γ and ξ of every event from the sum over paths."""
    gamma, xi, n = [], [], 0
    for length in LENGTHS:
        codes = CODES[n : n + length]
        paths = truth.paths(X[n : n + length], codes)
        total = special.logsumexp(list(paths.values()))
        here = np.zeros((length, truth.M))
        between = np.zeros((length - 1, truth.M, truth.M))
        for path, log_p in paths.items():
            for k, j in enumerate(path):
                here[k, j] += np.exp(log_p - total)
            for k, (i, j) in enumerate(itertools.pairwise(path)):
                between[k, i, j] += np.exp(log_p - total)
        gamma.append(here)
        xi.append(between)
        n += length
    return gamma, xi


def slow_iteration(truth, X, published):
    """Items 5 and 6 of the published settings, or the corrected equations."""
    m, M, floor = M_TYPES, STATES, 1e-5 if published else 0.0
    gamma, xi = expected_counts(truth, X)
    codes = np.split(np.array(CODES), np.cumsum(LENGTHS)[:-1])
    f = np.zeros(m)
    pair = np.zeros((m, m))
    begins = np.zeros(m)
    start = np.zeros((m, M))
    trans = np.zeros((m, m, M, M))
    first = np.zeros(M)
    for g, x, c in zip(gamma, xi, codes, strict=True):
        first += g[0]
        begins[c[0]] += 1
        if published:
            for w in set(c.tolist()):
                start[w] += g[list(c).index(w)]
        else:
            start[c[0]] += g[0]
        for n, w in enumerate(c):
            f[w] += 1
            if n:
                pair[c[n - 1], w] += 1
                trans[c[n - 1], w] += x[n - 1]
    marginal_start = np.maximum(first, floor) / np.maximum(first, floor).sum()
    for w in range(m):
        start[w] = np.maximum(start[w], floor)
        start[w] = start[w] / start[w].sum() if start[w].sum() > 0 else marginal_start
    for v, w, i in itertools.product(range(m), range(m), range(M)):
        row = np.maximum(trans[v, w, i], floor)
        trans[v, w, i] = row / row.sum() if row.sum() > 0 else 1 / M
    all_gamma = np.concatenate(gamma)
    y = np.log(X[:, 0])
    loc, scale = np.zeros((m, M)), np.zeros((m, M))
    for w, j in itertools.product(range(m), range(M)):
        here = all_gamma[:, j] * (np.array(CODES) == w)
        mass = max(here.sum(), floor)
        loc[w, j] = (here * y).sum() / mass
        scale[w, j] = max(np.sqrt((here * (y - loc[w, j]) ** 2).sum() / mass), 1e-5)
    chain = np.array([row / row.sum() if row.sum() else np.full(m, 1 / m) for row in pair])
    weighted = trans * chain[:, :, None, None]
    given_before = normal(weighted.sum(axis=1))
    given_after = normal(weighted.sum(axis=0))
    share = (f / f.sum())[:, None]
    all_loc = (share * loc).sum(axis=0)
    all_scale = np.sqrt((share * ((loc - all_loc) ** 2 + scale**2)).sum(axis=0))
    marginal = (
        marginal_start,
        normal(weighted.sum(axis=(0, 1))),
        given_before,
        given_after,
        all_loc,
        all_scale,
    )
    smoothed = np.zeros_like(trans)
    for v, w in itertools.product(range(m), range(m)):
        a = 1 / (1 + pair[v, w] + pair[:, w].sum())
        b = 1 / (1 + pair[v, w] + pair[v].sum())
        if not published and a + b > 1:
            a, b = a / (a + b), b / (a + b)
        mixed = (1 - a - b) * trans[v, w] + a * given_before[v] + b * given_after[w]
        smoothed[v, w] = normal(np.maximum(mixed, 0.0))
    by = f if published else begins
    keep_start = (1 - 1 / (1 + by))[:, None]
    keep = (1 - 1 / (1 + f))[:, None]
    start = keep_start * start + (1 - keep_start) * marginal_start
    return start, smoothed, keep * loc + (1 - keep) * all_loc, keep * scale + (1 - keep) * all_scale, marginal


def normal(rows):
    return rows / rows.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("published", [True, False], ids=["published", "corrected"])
def test_one_iteration(published):
    rng = np.random.default_rng(21)
    truth = Truth.random(rng, m=M_TYPES, n_states=STATES, families=("lognormal",))
    X = random_values(rng, ("lognormal",), len(CODES))
    settings = POHMM.published().get_params() if published else {"min_scale": 1e-5}
    settings.pop("emission", None)
    settings |= {"warm_start": True, "max_iter": 1, "order_states": False, "density_floor": None}
    settings |= {"smoothing": "frequency"}
    settings.pop("n_states", None)
    model = POHMM.from_parameters(*truth.arguments(), **settings)
    events = np.array(truth.types)[CODES]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, events=events, lengths=LENGTHS)
    start, trans, loc, scale, marginal = slow_iteration(truth, X, published)
    close = {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(model.startprob_, start, **close)
    np.testing.assert_allclose(model.emission_[0].loc, loc, **close)
    np.testing.assert_allclose(model.emission_[0].scale, scale, **close)
    found = model.marginal_
    for ours, theirs in zip(
        (found.startprob, found.transmat, found.transmat_from, found.transmat_to), marginal[:4], strict=True
    ):
        np.testing.assert_allclose(ours, theirs, **close)
    np.testing.assert_allclose(found.emission[0].loc, marginal[4], **close)
    np.testing.assert_allclose(found.emission[0].scale, marginal[5], **close)
    # A model of given parameters lists all m² pairs; those without data keep their rows before smoothing.
    seen = {
        (a, b) for c in np.split(np.array(CODES), np.cumsum(LENGTHS)[:-1]) for a, b in itertools.pairwise(c)
    }
    for v, w in sorted(seen):
        np.testing.assert_allclose(model.transmat_[v, w], trans[v, w], **close)


def test_unseen_pairs_and_dead_ends_of_a_fresh_fit():
    """Pairs that never occur are uniform, then smoothed; what follows a dead end is uniform."""
    rng = np.random.default_rng(22)
    X = random_values(rng, ("lognormal",), len(CODES))
    events = np.array(list("abcd"))[CODES]
    for published in (True, False):
        model = POHMM.published() if published else POHMM()
        model.set_params(tol=1e9, order_states=False).fit(X, events=events, lengths=LENGTHS)
        np.testing.assert_allclose(model.transmat_.sum(axis=-1), 1.0, atol=1e-12)
        assert (model.transmat_ >= 0).all()
        np.testing.assert_allclose(model.event_transmat_[3], 0.25)
        leaving = model._parameters.chain.leaving
        entering = model._parameters.chain.entering
        a, b = 1 / (1 + entering[0]), 1 / (1 + leaving[3])
        if not published:
            a, b = a / max(a + b, 1), b / max(a + b, 1)
        mixed = (1 - a - b) / 2 + a * model.marginal_.transmat_from[3] + b * model.marginal_.transmat_to[0]
        np.testing.assert_allclose(model.transmat_[3, 0], normal(np.maximum(mixed, 0)), rtol=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_fixed_share(share):
    """0 is no smoothing; 1 leaves nothing but the marginals."""
    rng = np.random.default_rng(23)
    X, events = random_values(rng, ("lognormal",), len(CODES)), np.array(list("abcd"))[CODES]
    settings = {"max_iter": 1, "order_states": False, "min_scale": 1e-4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = POHMM(smoothing=None, **settings).fit(X, events=events, lengths=LENGTHS)
        start = {"start": None, "transitions": None, "emission": share}
        model = POHMM(smoothing=start, **settings).fit(X, events=events, lengths=LENGTHS)
    if share == 0.0:
        np.testing.assert_array_equal(model.emission_[0].loc, plain.emission_[0].loc)
    if share == 1.0:
        np.testing.assert_allclose(model.emission_[0].loc, np.tile(model.marginal_.emission[0].loc, (4, 1)))
    np.testing.assert_allclose(model.transmat_.sum(axis=-1), 1.0)


def one_step(truth, X, **settings):
    """A model of given parameters after a single iteration."""
    fixed = {"warm_start": True, "max_iter": 1, "tol": 0.0, "order_states": False}
    model = POHMM.from_parameters(*truth.arguments(), **fixed, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, events=np.array(truth.types)[CODES], lengths=LENGTHS)


def counted_pairs():
    """f(ψ, ω)."""
    pair = np.zeros((M_TYPES, M_TYPES))
    for codes in np.split(np.array(CODES), np.cumsum(LENGTHS)[:-1]):
        for v, w in itertools.pairwise(codes):
            pair[v, w] += 1
    return pair


def summed_steps(xi):
    """Σξ by pair of types, (m, m, M, M)."""
    n_states = xi[0].shape[-1]
    steps = np.zeros((M_TYPES, M_TYPES, n_states, n_states))
    for codes, joint in zip(np.split(np.array(CODES), np.cumsum(LENGTHS)[:-1]), xi, strict=True):
        for n, (v, w) in enumerate(itertools.pairwise(codes)):
            steps[v, w] += joint[n]
    return steps


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_a_share_of_seen_transitions(share):
    """Of ã[i, j | ψ, ω] half the share is a[i, j | ψ], half a[i, j | ω], however often the pair occurred."""
    rng = np.random.default_rng(31)
    truth = Truth.random(rng, m=M_TYPES, n_states=STATES, families=("lognormal",))
    X = random_values(rng, ("lognormal",), len(CODES))
    model = one_step(truth, X, smoothing={"transitions": share}, min_scale=1e-4)

    pair, steps = counted_pairs(), summed_steps(expected_counts(truth, X)[1])
    seen = sorted(zip(*np.nonzero(pair), strict=True))
    own, before, after = np.zeros_like(steps), np.zeros_like(steps[0]), np.zeros_like(steps[0])
    for v, w in seen:
        own[v, w] = normal(steps[v, w])
        before[v] += own[v, w] * pair[v, w] / pair[v].sum()
        after[w] += own[v, w] * pair[v, w] / pair[v].sum()
    # What follows the dead end k3 is anything, in any state.
    after += 1 / M_TYPES / STATES
    after = normal(after)
    np.testing.assert_allclose(model.marginal_.transmat_from[:3], before[:3], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.marginal_.transmat_to, after, rtol=1e-9, atol=1e-12)
    for v, w in seen:
        expected = (1 - share) * own[v, w] + share / 2 * before[v] + share / 2 * after[w]
        np.testing.assert_allclose(model.transmat_[v, w], expected, rtol=1e-9, atol=1e-12)
        if share < 1.0:
            assert np.abs(expected - own[v, w]).max() > 1e-3, "smoothing must have had something to do"
    # Start probabilities and emissions are not smoothed: k1, which begins no sequence, has the marginal.
    np.testing.assert_allclose(model.startprob_[1], model.marginal_.startprob, rtol=1e-12)


@pytest.mark.parametrize("family", ["student", "logstudent", "gamma", "exponential"])
def test_an_emission_with_less_than_the_least_count_stays(family):
    """k3 is seen once, the others more often: a least count of one and a half lets these alone be learnt."""
    rng = np.random.default_rng(33)
    truth = Truth.random(rng, m=M_TYPES, n_states=1, families=(family,))
    model = one_step(
        truth, random_values(rng, (family,), len(CODES)), smoothing=None, count_floor=1.5, min_scale=1e-9
    )
    (found,) = model.emission_
    for name, before in truth.emission[0][1].items():
        after = found.params[name]
        np.testing.assert_allclose(after[3], before[3], rtol=1e-12)
        assert name == "df" or (np.abs(after[:3] - before[:3]) > 1e-6).all()


def test_three_states_gamma_emissions_exact_marginals():
    """One whole maximisation step by hand: roots by bisection, marginals from what occurred together."""
    rng = np.random.default_rng(32)
    m, M, codes = M_TYPES, 3, np.array(CODES)
    truth = Truth.random(rng, m=m, n_states=M, families=("gamma",))
    X = random_values(rng, ("gamma",), len(CODES))
    least, share = 0.05, {"start": 0.2, "transitions": 0.3, "emission": 0.4}
    model = one_step(truth, X, marginals="exact", smoothing=share, min_scale=least)

    gamma, xi = expected_counts(truth, X)
    states, steps, x = np.concatenate(gamma), summed_steps(xi), X[:, 0]
    first = np.cumsum([0, *LENGTHS[:-1]])
    start_all = states[first].sum(axis=0) / len(LENGTHS)
    start = np.array(
        [
            states[first[codes[first] == w]].mean(axis=0) if (codes[first] == w).any() else start_all
            for w in range(m)
        ]
    )
    shape, scale, mass = np.zeros((m, M)), np.zeros((m, M)), np.zeros((m, M))
    for w, j in itertools.product(range(m), range(M)):
        own, values = states[codes == w, j], x[codes == w]
        mass[w, j] = own.sum()
        mean = (own * values).sum() / own.sum()
        excess = math.log(mean) - (own * np.log(values)).sum() / own.sum()

        def gap(a, excess=excess):
            return math.log(a) - special.digamma(a) - excess

        # A deviation of ln x below the floor is that of a shape of 1 / floor².
        shape[w, j] = least**-2 if gap(least**-2) > 0 else optimize.brentq(gap, 1e-2, least**-2, xtol=1e-13)
        scale[w, j] = mean / shape[w, j]
    assert (shape[3] == least**-2).all(), "k3 was seen once: nothing but the floor tells its spread"
    assert (shape[:3] < least**-2).all()

    weights = mass / mass.sum(axis=0)
    means, variances = shape * scale, shape * scale**2
    all_mean = (weights * means).sum(axis=0)
    all_variance = (weights * (variances + (means - all_mean) ** 2)).sum(axis=0)
    from_type, to_type = steps.sum(axis=1), normal(steps.sum(axis=0))
    # Nothing follows k3.
    from_type = np.stack(
        [normal(table) if table.sum() > 0 else np.full((M, M), 1 / M) for table in from_type]
    )
    close = {"rtol": 1e-9, "atol": 1e-12}
    found = model.marginal_
    np.testing.assert_allclose(found.startprob, start_all, **close)
    np.testing.assert_allclose(found.transmat, normal(steps.sum(axis=(0, 1))), **close)
    np.testing.assert_allclose(found.transmat_from, from_type, **close)
    np.testing.assert_allclose(found.transmat_to, to_type, **close)
    np.testing.assert_allclose(found.emission[0].params["shape"], all_mean**2 / all_variance, **close)
    np.testing.assert_allclose(found.emission[0].params["scale"], all_variance / all_mean, **close)

    np.testing.assert_allclose(model.startprob_, 0.8 * start + 0.2 * start_all, **close)
    for v, w in zip(*np.nonzero(counted_pairs()), strict=True):
        smoothed = 0.7 * normal(steps[v, w]) + 0.15 * from_type[v] + 0.15 * to_type[w]
        np.testing.assert_allclose(model.transmat_[v, w], smoothed, **close)
    means, variances = 0.6 * means + 0.4 * all_mean, 0.6 * variances + 0.4 * all_variance
    np.testing.assert_allclose(model.emission_[0].params["shape"], means**2 / variances, **close)
    np.testing.assert_allclose(model.emission_[0].params["scale"], variances / means, **close)
    np.testing.assert_array_equal(
        model.scale_floored_[0], np.repeat([[False], [False], [False], [True]], M, 1)
    )


def test_the_same_step_from_chunks():
    """accumulate on each sequence, then update, is the same iteration."""
    rng = np.random.default_rng(33)
    truth = Truth.random(rng, m=M_TYPES, n_states=2, families=("gamma",))
    X = random_values(rng, ("gamma",), len(CODES))
    settings = {"marginals": "exact", "smoothing": 0.3, "min_scale": 0.05}
    at_once = one_step(truth, X, **settings)
    model = POHMM.from_parameters(*truth.arguments(), order_states=False, **settings)
    for first, last in itertools.pairwise(np.cumsum([0, *LENGTHS])):
        model.accumulate(X[first:last], events=np.array(truth.types)[CODES[first:last]])
    model.update()
    close = {"rtol": 1e-10, "atol": 1e-13}
    for name in ("startprob_", "transmat_", "event_transmat_"):
        np.testing.assert_allclose(getattr(model, name), getattr(at_once, name), **close)
    for name in ("shape", "scale"):
        ours, theirs = model.emission_[0].params[name], at_once.emission_[0].params[name]
        np.testing.assert_allclose(ours, theirs, **close)
    np.testing.assert_allclose(model.marginal_.transmat, at_once.marginal_.transmat, **close)
