"""Estimation against independent truths: gradients, hmmlearn, simulation, and what EM must do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hmmlearn.hmm import GaussianHMM

from keydyn import HMM, POHMM
from keydyn.model import Student
from keydyn.model.engine.layout import Walk
from keydyn.model.engine.scores_and_states import Lattice
from keydyn.model.theta import lattice
from tests.model.enumeration import FAMILIES, Truth, random_values


def simulated(seed=0, lengths=(40, 25, 60), families=("lognormal", "normal"), m=3, n_states=2):
    """A random model and sequences drawn from it."""
    truth = Truth.random(np.random.default_rng(seed), m=m, n_states=n_states, families=families)
    model = POHMM.from_parameters(*truth.arguments())
    X, events, _ = model.sample(lengths=list(lengths), random_state=seed)
    return truth, X, events, list(lengths)


def test_gradient_by_fishers_identity():
    """d ln P / dθ from finite differences equals Σγ d ln f/dθ, Σξ/a, Σγ₁/π, at arbitrary parameters.

    The gradient is along free parameters; the central difference of step 1e-5 errs by about 1e-9 of it.
    """
    truth, _, _, _ = simulated(1, families=("lognormal", "gamma"))
    rng = np.random.default_rng(2)
    lengths = [7, 1, 12]
    X = random_values(rng, ("lognormal", "gamma"), 20, missing=0.1)
    codes = rng.integers(0, 3, 20)
    events = np.array(truth.types)[codes]

    def score(start=truth.start, trans=truth.trans, emission=truth.emission):
        # Rows need not add up to one here: the likelihood is a polynomial in them.
        theta = POHMM.from_parameters(truth.types, truth.start, truth.trans, emission)._parameters
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        index = lattice.EventIndex.of(codes, offsets, 3)
        built = lattice.build(theta, X, index, None)
        walk = Walk.along(offsets, index.start_rows, start, index.steps, trans[index.before, index.after])
        moved = Lattice.of(built.log_density[..., 0], walk)
        return lattice.filtered(moved)[1].sum()

    model = POHMM.from_parameters(*truth.arguments())
    families = [e.distribution for e in model.emission_]
    statistics = model.accumulate(X, events=events, lengths=lengths)._state.result.statistics
    gamma = model.predict_proba(X, events=events, lengths=lengths)
    step = 1e-5

    def difference(part, place, **others):
        high, low = part.copy(), part.copy()
        high[place] += step
        low[place] -= step
        name = "start" if part is truth.start else "trans"
        return (score(**{name: high}) - score(**{name: low})) / (2 * step)

    for place in np.ndindex(truth.start.shape):
        expected = statistics.start[place] / truth.start[place]
        assert difference(truth.start, place) == pytest.approx(expected, rel=1e-6, abs=1e-8)
    for v, w, i, j in np.ndindex(truth.trans.shape):
        expected = statistics.transitions[v * 3 + w, i, j] / truth.trans[v, w, i, j]
        assert difference(truth.trans, (v, w, i, j)) == pytest.approx(expected, rel=1e-6, abs=1e-8)
    for k, (family, params) in enumerate(truth.emission):
        for name in params:
            for w, j in np.ndindex(params[name].shape):
                found, expected = [], 0.0
                for sign in (1, -1):
                    moved = {key: values.copy() for key, values in params.items()}
                    moved[name][w, j] += sign * step
                    emission = list(truth.emission)
                    emission[k] = (family, moved)
                    found.append(score(emission=emission))
                    row = {key: values[w, j] for key, values in moved.items()}
                    here = (codes == w) & ~np.isnan(X[:, k])
                    logs = families[k].log_density(X[here, k], row)
                    expected += sign * np.sum(gamma[here, j] * logs) / (2 * step)
                assert (found[0] - found[1]) / (2 * step) == pytest.approx(expected, rel=1e-6, abs=1e-7)


# hmmlearn sets the shape of an array, which newer NumPy deprecates.
@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")
@pytest.mark.parametrize("n_states", [1, 2, 3])
def test_one_event_type_equals_hmmlearn(n_states):
    """The same start, the same number of iterations: the same parameters and log-likelihood."""
    _, X, _, lengths = simulated(3, families=("normal", "normal"))
    ours = HMM(n_states, emission="normal", max_iter=15, tol=0.0, order_states=False, min_scale=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = HMM(
            n_states,
            emission="normal",
            max_iter=1,
            order_states=False,
            fixed=("start", "transitions", "emission"),
        )
        begin.fit(X, lengths=lengths)
        ours.fit(X, lengths=lengths)
    theirs = GaussianHMM(
        n_states, "diag", n_iter=15, tol=-np.inf, init_params="", min_covar=0, covars_prior=0, covars_weight=1
    )
    theirs.startprob_ = begin.startprob_[0]
    theirs.transmat_ = begin.transmat_[0, 0]
    theirs.means_ = np.stack([e.loc[0] for e in begin.emission_], axis=1)
    theirs.covars_ = np.stack([e.scale[0] ** 2 for e in begin.emission_], axis=1)
    theirs.fit(X, lengths)
    assert ours.log_likelihood_ == pytest.approx(theirs.score(X, lengths), rel=1e-10)
    # One state is done after an iteration; ours then stops, theirs repeats itself.
    n_iter = 2 if n_states == 1 else 15
    np.testing.assert_allclose(ours.history_, list(theirs.monitor_.history)[:n_iter], rtol=1e-10)
    np.testing.assert_allclose(ours.startprob_[0], theirs.startprob_, atol=1e-8)
    np.testing.assert_allclose(ours.transmat_[0, 0], theirs.transmat_, atol=1e-8)
    means = np.stack([e.loc[0] for e in ours.emission_], axis=1)
    np.testing.assert_allclose(means, theirs.means_, atol=1e-8)
    np.testing.assert_array_equal(ours.decode(X, lengths=lengths)[1], theirs.predict(X, lengths))


@pytest.mark.parametrize("family", [*FAMILIES, Student(df=2.0, estimate_df=True)], ids=str)
@pytest.mark.parametrize("n_states", [1, 2, 4])
def test_plain_em_never_falls(family, n_states):
    """No smoothing, no floor that acts, all types known: the log-likelihood rises (to rounding, 1e-9)."""
    name = family if isinstance(family, str) else family.name
    _, X, events, lengths = simulated(4, families=(name,), lengths=(200, 100))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = POHMM(n_states, emission=family, smoothing=None, tol=0.0, max_iter=60)
        model.fit(X, events=events, lengths=lengths)
    gains = np.diff(model.history_)
    assert gains.min() >= -1e-9 * abs(model.log_likelihood_)
    if n_states > 1:
        assert gains[0] > 0, "it must have had something to learn"


def test_parameters_are_recovered():
    """From 60,000 events the parameters come back to a few standard errors; the start was elsewhere."""
    truth = Truth.random(np.random.default_rng(11), m=2, n_states=2, families=("normal",))
    truth.emission[0][1]["loc"][:] = [[100.0, 300.0], [150.0, 500.0]]
    truth.emission[0][1]["scale"][:] = [[20.0, 60.0], [30.0, 80.0]]
    drawn = POHMM.from_parameters(*truth.arguments())
    X, events, states = drawn.sample(lengths=[300] * 200, random_state=1)
    model = POHMM(emission="normal", smoothing=None, max_iter=500).fit(X, events=events, lengths=[300] * 200)
    assert model.history_[-1] - model.history_[0] > 1000
    # About 60,000 / 4 events a cell: a standard error of 0.5 for a scale of 60.
    np.testing.assert_allclose(model.emission_[0].loc, truth.emission[0][1]["loc"], atol=3.0)
    np.testing.assert_allclose(model.emission_[0].scale, truth.emission[0][1]["scale"], atol=3.0)
    np.testing.assert_allclose(model.transmat_, truth.trans, atol=0.04)
    # 200 sequences begin: a standard error of 0.05.
    np.testing.assert_allclose(model.startprob_, truth.start, atol=0.2)
    np.testing.assert_allclose(model.event_transmat_, truth.event_trans, atol=0.02)
    found = model.predict(X, events=events, lengths=[300] * 200)
    best = drawn.predict(X, events=events, lengths=[300] * 200)
    assert np.mean(found == states) > np.mean(best == states) - 0.005


def test_exact_marginals_of_an_event_blind_model_are_the_hmms_update():
    """Where types carry no information yet, one iteration's marginals are the HMM's iteration."""
    truth, X, events, lengths = simulated(12)
    same = [(f, {k: np.repeat(v[:1], 3, axis=0) for k, v in params.items()}) for f, params in truth.emission]
    settings = {"warm_start": True, "max_iter": 1, "order_states": False, "min_scale": 1e-9}
    blind = POHMM.from_parameters(
        truth.types,
        np.repeat(truth.start[:1], 3, axis=0),
        np.broadcast_to(truth.trans[0, 0], truth.trans.shape),
        same,
        marginals="exact",
        **settings,
    )
    plain = HMM.from_parameters(
        truth.start[0], truth.trans[0, 0], [(f, {k: v[0] for k, v in p.items()}) for f, p in same], **settings
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        blind.fit(X, events=events, lengths=lengths)
        plain.fit(X, lengths=lengths)
    np.testing.assert_allclose(blind.marginal_.startprob, plain.startprob_[0], rtol=1e-10)
    np.testing.assert_allclose(blind.marginal_.transmat, plain.transmat_[0, 0], rtol=1e-10)
    for ours, theirs in zip(blind.marginal_.emission, plain.emission_, strict=True):
        np.testing.assert_allclose(ours.loc, theirs.loc[0], rtol=1e-10)
        np.testing.assert_allclose(ours.scale, theirs.scale[0], rtol=1e-10)


def test_smoothing_fades_as_data_grow():
    """With ten thousand events a type the smoothed and the plain estimates nearly agree."""
    _, X, events, _ = simulated(13, lengths=(30_000,), families=("normal",))
    smoothed = POHMM(emission="normal", max_iter=2000).fit(X, events=events)
    plain = POHMM(emission="normal", smoothing=None, max_iter=2000).fit(X, events=events)
    np.testing.assert_allclose(smoothed.emission_[0].loc, plain.emission_[0].loc, atol=0.02)
    np.testing.assert_allclose(smoothed.transmat_, plain.transmat_, atol=0.02)


def test_states_are_ordered_by_the_leading_feature():
    _, X, events, lengths = simulated(14)
    for leading in (0, 1):
        model = POHMM(emission=["lognormal", "normal"], leading_feature=leading).fit(
            X, events=events, lengths=lengths
        )
        assert np.all(np.diff(model.marginal_.emission[leading].loc) > 0)
    unordered = POHMM(emission=["lognormal", "normal"], order_states=False).fit(
        X, events=events, lengths=lengths
    )
    assert unordered.log_likelihood_ == pytest.approx(model.log_likelihood_, rel=1e-12)


def test_parameters_are_counted():
    """Of those that the data bear on: "aab" has one start, two pairs and two types; all have two states."""
    model = POHMM(emission="normal", tol=1e9).fit([[1.0], [2.0], [4.0]], events=list("aab"))
    assert model.n_parameters_ == 1 + 2 * 2 + 2 * 2 * 2
    assert model.n_parameters_full_ == 2 + 4 * 2 + 2 * 2 * 2
    one = HMM.from_parameters([0.5, 0.5], np.full((2, 2), 0.5), [("normal", [0.0, 1.0], [1.0, 1.0])])
    assert one.n_parameters_ == one.n_parameters_full_ == 1 + 2 + 2 * 2
    fixed = POHMM(emission="normal", tol=1e9, fixed=("start", "transitions"))
    assert fixed.fit([[1.0], [2.0], [4.0]], events=list("aab")).n_parameters_ == 2 * 2 * 2


def test_starts_differ_without_a_seed():
    model = POHMM(n_init=2, tol=1e9).fit(
        np.random.default_rng(1).lognormal(5.0, 0.5, (20, 1)), events=list("abaab" * 4)
    )
    first, second = model.init_results_
    assert first.history[0] != second.history[0]
