"""Estimation of the relatives: EM climbs, M-steps are maxima, parameters come back from simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, special
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression

from keydyn import ContextHMM, PartiallyHMM, PartlyHMM
from keydyn.model import Bins, Categorical, LogStudent, Normal, Student
from keydyn.model.families.family import Emission
from keydyn.model.relatives.regression import LineLimits, SeenFeature, line_update, tilted, update_logits
from tests.model.relatives.cases import simulated

LENGTHS = [60] * 50


def logit_update(transmat, slopes, *given):
    """New transitions and slopes from the old ones, which stay as they are."""
    transmat, slopes = transmat.copy(), slopes.copy()
    update_logits(transmat, slopes, *given)
    return transmat, slopes


def context_truth():
    """Feature 0 is the context, split at its median of 150, and nothing else; feature 1 tells the state.

    After a long interval both states are slower and pauses go on.
    """
    slow = np.array([[4.5, 5.6], [5.0, 6.2], [4.7, 5.9], [4.7, 5.9]])
    steps = [[[0.9, 0.1], [0.5, 0.5]], [[0.7, 0.3], [0.2, 0.8]], [[0.5, 0.5]] * 2, [[0.5, 0.5]] * 2]
    bins = Bins((150.0,))
    return ContextHMM.from_parameters(
        [0.6, 0.4],
        steps,
        [
            ("lognormal", np.full((4, 2), np.log(150.0)), np.full((4, 2), 0.4)),
            ("lognormal", slow, np.full((4, 2), 0.25)),
        ],
        emission_context=bins,
        transition_context=bins,
        leading_feature=1,
    )


def lines_truth():
    """Feature 0 tilts the transitions and nothing else; feature 1 tells the state and leans on itself."""
    return PartlyHMM.from_parameters(
        [0.5, 0.5],
        [[0.85, 0.15], [0.3, 0.7]],
        [("lognormal", [[5.0, 5.0]], [[0.5, 0.5]]), ("lognormal", [[4.8, 6.0]], [[0.25, 0.3]])],
        emission_slopes=[[0.0, 0.0], [0.4, -0.2]],
        transition_slopes=[[0.0, 1.5], [-1.0, 0.0]],
        centre=[5.0, 5.2],
        leading_feature=1,
    )


def labels_truth(observed=0.3, true=0.8):
    return PartiallyHMM.from_parameters(
        [0.5, 0.5],
        [[0.8, 0.2], [0.3, 0.7]],
        [("lognormal", [[4.8, 5.3]], [[0.3, 0.4]])],
        p_observed=observed,
        p_true=true,
        state_labels=("z active", "a passive"),
    )


FITS = {
    "context": (lambda: ContextHMM(), context_truth),
    "context, three states": (lambda: ContextHMM(3, emission_context=2, max_iter=60), context_truth),
    "context, t": (lambda: ContextHMM(emission=LogStudent(estimate_df=True)), context_truth),
    "context, gamma": (lambda: ContextHMM(emission="gamma", transition_context=1), context_truth),
    "partly": (lambda: PartlyHMM(), lines_truth),
    "partly, three states": (lambda: PartlyHMM(3, max_iter=60), lines_truth),
    "partly, t": (lambda: PartlyHMM(emission=LogStudent(estimate_df=True)), lines_truth),
    "partially": (lambda: PartiallyHMM(), labels_truth),
    "partially, fixed": (lambda: PartiallyHMM(p_observed=0.3, p_true=0.8), labels_truth),
    "partially, visibility given": (lambda: PartiallyHMM(p_observed=None), labels_truth),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", FITS)
def test_em_climbs(kind):
    """To 1e-9 of the log-likelihood at every step, from weighted sequences with missing values."""
    pattern, truth = FITS[kind]
    X, labels, _ = simulated(truth(), lengths=[40] * 12)
    X[::13] = np.nan
    given = {"labels": labels} if kind.startswith("partially") else {}
    weights = np.linspace(0.5, 2.0, 12)
    model = pattern().fit(X, lengths=[40] * 12, sample_weight=weights, **given)
    assert len(model.history_) > 4
    assert (np.diff(model.history_) >= -1e-9 * abs(model.log_likelihood_)).all()
    final = model.score(X, lengths=[40] * 12, sample_weight=weights, **given)
    assert final == pytest.approx(model.log_likelihood_, rel=1e-12)


@pytest.mark.parametrize("kind", ["context", "partly", "partially"])
def test_a_weight_is_that_many_copies(kind):
    pattern, truth = FITS[kind]
    X, labels, _ = simulated(truth(), lengths=[30] * 3)
    with_labels = kind.startswith("partially")
    parts, names = np.split(X, 3), np.split(labels, 3) if with_labels else None
    copies = [0, 0, 2, 2, 2]
    given = {"labels": names} if with_labels else {}
    weighted = pattern().fit(parts, sample_weight=[2, 0, 3], **given)
    given = {"labels": [names[s] for s in copies]} if with_labels else {}
    copied = pattern().fit([parts[s] for s in copies], **given)
    np.testing.assert_allclose(weighted.history_, copied.history_, rtol=1e-10)


def test_context_tables_come_back():
    """3000 events, at least 400 in a cell: locations within 0.06 and steps within 0.1, over four errors."""
    truth = context_truth()
    X, _, states = simulated(truth, LENGTHS)
    model = ContextHMM(emission_context=2, transition_context=2, leading_feature=1).fit(X, lengths=LENGTHS)
    assert model.emission_context_.edges[0] == pytest.approx(150.0, rel=0.05)
    np.testing.assert_allclose(model.emission_[1].loc[:2], truth.emission_[1].loc[:2], atol=0.06)
    np.testing.assert_allclose(model.emission_[1].scale[:2], 0.25, atol=0.06)
    np.testing.assert_allclose(model.transmat_[:2], truth.transmat_[:2], atol=0.1)
    assert (model.predict(X, lengths=LENGTHS) == states).mean() > 0.95
    # Nothing was seen of steps from "none yet": they are the pooled ones.
    np.testing.assert_array_equal(model.transmat_[2], model.transmat_[3])
    # The start was not right already.
    assert model.history_[-1] - model.history_[0] > 100


def test_lines_come_back():
    """3000 events, some 900 in the rarer state: over four standard errors each."""
    truth = lines_truth()
    X, _, states = simulated(truth, LENGTHS)
    model = PartlyHMM(leading_feature=1).fit(X, lengths=LENGTHS)
    # The same lines about another centre.
    away = model.centre_ - truth.centre_
    locations = truth.emission_[1].loc[0] + truth.emission_slopes_[1] * away[1]
    np.testing.assert_allclose(model.emission_[1].loc[0], locations, atol=0.08)
    np.testing.assert_allclose(model.emission_slopes_, truth.emission_slopes_, atol=0.12)
    np.testing.assert_allclose(model.emission_[1].scale, truth.emission_[1].scale, atol=0.04)
    np.testing.assert_allclose(model.transition_slopes_, truth.transition_slopes_, atol=0.7)
    at_new_centre = tilted(truth.transmat_, truth.transition_slopes_, away[:1])[0]
    np.testing.assert_allclose(model.transmat_, at_new_centre, atol=0.08)
    assert (model.predict(X, lengths=LENGTHS) == states).mean() > 0.95
    assert model.n_parameters_ == 1 + 2 * 2 + 2 * 4 + 4
    assert model.history_[-1] - model.history_[0] > 100


def test_reliability_comes_back():
    """About 900 labels: p_observed within 0.04, p_true within 0.08 (four standard errors and more)."""
    truth = labels_truth()
    X, labels, states = simulated(truth, LENGTHS)
    model = PartiallyHMM().fit(X, lengths=LENGTHS, labels=labels)
    assert model.p_observed_ == pytest.approx(0.3, abs=0.04)
    assert model.p_true_ == pytest.approx(0.8, abs=0.08)
    np.testing.assert_allclose(model.emission_[0].loc, truth.emission_[0].loc, atol=0.1)
    np.testing.assert_allclose(model.transmat_, truth.transmat_, atol=0.12)
    assert model.state_labels_.tolist() == ["z active", "a passive"]
    with_labels = (model.predict(X, lengths=LENGTHS, labels=labels) == states).mean()
    assert with_labels > (model.predict(X, lengths=LENGTHS) == states).mean() > 0.7


def test_discrete_contexts_come_back():
    """The original model is discrete: symbols whose context is the symbol before, by a callable."""

    def last_symbol(past):
        return past.values[:, -1, 0]

    rng = np.random.default_rng(4)
    chances = np.array([[[0.8, 0.2], [0.1, 0.9]], [[0.6, 0.4], [0.3, 0.7]]])  # [before, state, symbol]
    X, state = np.zeros((4000, 1)), 0
    for n in range(1, len(X)):
        state = state if rng.random() < 0.95 else 1 - state
        X[n] = rng.random() < chances[int(X[n - 1, 0]), state, 1]
    model = ContextHMM(emission="categorical", emission_context=last_symbol, transition_context=None).fit(X)
    found = np.stack([model.emission_[0].params["p0"][:2], model.emission_[0].params["p1"][:2]], axis=-1)
    # About 1000 events a cell, of uncertain state: within 0.1.
    np.testing.assert_allclose(found, chances, atol=0.1)
    assert model.emission_context_.labels == (0, 1)
    assert isinstance(model.emission_[0].distribution, Categorical)


def objective(transmat, slopes, deviation, expected):
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(tilted(transmat, slopes, deviation))
    return np.sum(np.where(expected > 0, expected * logs, 0.0))


def test_logits_are_scikit_learns():
    """Repeated until it stands, the update is the maximum that an unpenalised logistic regression finds."""
    rng = np.random.default_rng(0)
    m, n = 3, 400
    deviation = rng.normal(0, 2, n)
    expected = rng.dirichlet(np.ones(m * m), n).reshape(n, m, m)
    transmat, slopes = np.full((m, m), 1 / m), np.zeros((m, m))
    value = objective(transmat, slopes, deviation, expected)
    for _ in range(20):
        transmat, slopes = logit_update(transmat, slopes, deviation, expected, 0.0)
        assert objective(transmat, slopes, deviation, expected) >= value - 1e-10
        value = objective(transmat, slopes, deviation, expected)
    for i in range(m):
        regression = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
        rows, targets = np.tile(deviation, m)[:, None], np.repeat(np.arange(m), n)
        regression.fit(rows, targets, sample_weight=expected[:, i].T.ravel())
        coefficients = regression.coef_[:, 0]
        np.testing.assert_allclose(slopes[i], coefficients - coefficients[i], atol=1e-5)
        np.testing.assert_allclose(transmat[i], special.softmax(regression.intercept_), atol=1e-5)


def test_logits_where_little_can_be_reported():
    """A value that never varies leaves slopes at zero; separable and impossible steps stay finite."""
    expected = np.random.default_rng(1).dirichlet(np.ones(2), (50, 2))
    transmat, slopes = logit_update(np.full((2, 2), 0.5), np.zeros((2, 2)), np.zeros(50), expected, 0.0)
    np.testing.assert_allclose(transmat, expected.sum(axis=0) / expected.sum(axis=(0, 2))[:, None], atol=1e-8)
    assert not slopes.any()
    deviation = np.linspace(-1, 1, 50)
    apart = np.zeros((50, 2, 2))
    apart[deviation < 0, 0, 0] = apart[deviation >= 0, 0, 1] = 1.0
    transmat, slopes = np.array([[0.5, 0.5], [1.0, 0.0]]), np.zeros((2, 2))
    for _ in range(50):
        transmat, slopes = logit_update(transmat, slopes, deviation, apart, 0.0)
    assert np.isfinite(slopes).all()
    assert np.isfinite(transmat).all()
    assert slopes[0, 1] > 10
    np.testing.assert_array_equal(transmat[1], [1.0, 0.0])


def test_lines_are_least_squares():
    """scikit-learn's weighted regression, state by state, and the weighted residual deviation."""
    rng = np.random.default_rng(2)
    u, weights = rng.normal(0, 1, 200), rng.random((200, 2))
    x = 3 + 0.5 * u + rng.normal(0, 0.3, 200)
    x[::9] = np.nan
    params = {"loc": np.zeros((1, 2)), "scale": np.ones((1, 2))}
    start = Emission(Normal(), params)
    found, slopes, floored = line_update(
        start, np.zeros(2), SeenFeature(x, u), weights, LineLimits(1e-6, 0.0)
    )
    there = ~np.isnan(x)
    for j in range(2):
        line = LinearRegression().fit(u[there, None], x[there], sample_weight=weights[there, j])
        assert slopes[j] == pytest.approx(line.coef_[0], rel=1e-10)
        assert found.params["loc"][0, j] == pytest.approx(line.intercept_, rel=1e-10)
        residual = x[there] - line.predict(u[there, None])
        spread = np.sqrt(np.average(residual**2, weights=weights[there, j]))
        assert found.params["scale"][0, j] == pytest.approx(spread, rel=1e-10)
    assert not floored.any()


def test_lines_with_heavy_tails_reach_the_maximum():
    """Iterated, the t family's update finds what a general optimiser finds."""
    rng = np.random.default_rng(3)
    u = rng.normal(0, 1, 300)
    x = 1 - 0.7 * u + 0.4 * rng.standard_t(3, 300)
    kind, weights = Student(df=3.0), np.ones((300, 1))
    params = {"loc": np.zeros((1, 1)), "scale": np.ones((1, 1)), "df": np.full((1, 1), 3.0)}
    emission, slopes, values = Emission(kind, params), np.zeros(1), []

    def log_likelihood(loc, slope, scale):
        at = {"loc": loc + slope * u, "scale": np.array(scale), "df": np.array(3.0)}
        return kind.log_density(x, at).sum()

    for _ in range(200):
        emission, slopes, _ = line_update(emission, slopes, SeenFeature(x, u), weights, LineLimits(1e-6, 0.0))
        found = emission.params
        values.append(log_likelihood(found["loc"][0, 0], slopes[0], found["scale"][0, 0]))
    assert (np.diff(values) >= -1e-9).all()
    best = optimize.minimize(lambda t: -log_likelihood(t[0], t[1], np.exp(t[2])), [0.0, 0.0, 0.0])
    assert values[-1] == pytest.approx(-best.fun, abs=1e-5)
    assert slopes[0] == pytest.approx(best.x[1], abs=1e-3)


def test_fixed_parts_stay():
    X, _, _ = simulated(lines_truth(), lengths=[40] * 5)
    lengths = [40] * 5
    model = PartlyHMM(fixed=("transitions", "start"), tol=1e-3).fit(X, lengths=lengths)
    np.testing.assert_array_equal(model.transmat_, 0.5)
    np.testing.assert_array_equal(model.startprob_, 0.5)
    assert not model.transition_slopes_.any()
    assert model.emission_slopes_.all()
    assert model.n_parameters_ == 8 + 4
    model = ContextHMM(fixed="emission", tol=1e-3).fit(X, lengths=lengths)
    assert len(model.history_) > 2
    with pytest.raises(ValueError, match="fixed must be"):
        PartiallyHMM(fixed=("slopes",)).fit(X, lengths=lengths)


def test_a_limit_is_said():
    X, _, _ = simulated(lines_truth(), lengths=[40])
    for model in (PartlyHMM(max_iter=2), ContextHMM(max_iter=2), PartiallyHMM(max_iter=2)):
        with pytest.warns(ConvergenceWarning, match="not converged after max_iter=2"):
            model.fit(X)
        assert model.stop_reason_ == "max_iter"
        assert not model.converged_
        assert model.score(X) == pytest.approx(model.log_likelihood_, rel=1e-12)


def test_restarts_and_callbacks():
    X, _, _ = simulated(lines_truth(), lengths=[40] * 3)
    reported = []
    model = PartlyHMM(n_init=3, random_state=1, tol=1e-2, callback=lambda it: reported.append(it) or False)
    model.fit(X, lengths=[40] * 3)
    assert {it.start for it in reported} == {0, 1, 2}
    ends = [[it.log_likelihood for it in reported if it.start == s][-1] for s in range(3)]
    assert model.log_likelihood_ == max(ends)
    stopped = PartlyHMM(callback=lambda it: it.number == 2).fit(X)
    assert stopped.stop_reason_ == "callback"
    assert stopped.n_iter_ == 2
