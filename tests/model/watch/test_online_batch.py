"""Many sessions under many models: the same numbers as one at a time, and as all events at once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from keydyn import HMM, POHMM
from keydyn.model import Categorical, LogNormal, OnlineBatch, OnlineFilter
from keydyn.model.engine.online_step import TOGETHER
from keydyn.model.families.family import family as family_of
from keydyn.model.theta.parameters import SMALL_TABLE
from keydyn.model.watch import filter_bank
from tests.model.enumeration import FAMILIES, Truth, random_params, random_values
from tests.model.enumeration import log_density as true_density

# Sums of a few terms in another order.
CLOSE = {"rtol": 1e-11, "atol": 1e-11}
SETTINGS = {
    "recommended": {},
    "published": {"density_floor": 1e-5, "transition_weights": "published", "count_floor": 1e-5},
    "a share": {"smoothing": 0.25},
    "no smoothing": {"smoothing": None},
    "three states": {"n_states": 3},
    "one state": {"n_states": 1},
    "many families": {"emission": ["gamma", "logstudent"]},
    "linear families": {"emission": ["normal", "exponential"]},
}


def typing(rng, n, labels):
    """Two positive features; some values and labels are missing."""
    X = np.exp(rng.normal([5.0, 4.5], 0.4, (n, 2)))
    X[rng.random((n, 2)) < 0.05] = np.nan
    return X, [labels[k] for k in rng.integers(0, len(labels), n)]


def fitted(seed, labels, **settings):
    rng = np.random.default_rng(seed)
    X, events = typing(rng, 120, labels)
    return POHMM(tol=1.0, **settings).fit(X, events=events, lengths=[40, 80])


def searching(streams, dense):
    """Streams that search for pairs of types, as with many of them, unless all pairs are laid out."""
    if not dense:
        streams._bank.models = filter_bank.laid_out(streams._bank.thetas, most_pairs=0)
        assert len(streams._bank.models.weights)
    return streams


@pytest.mark.parametrize("dense", [True, False], ids=["all pairs", "observed pairs"])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_batch_equals_single_equals_score_samples(settings, dense):
    """Vocabularies differ; types that a model does not know, pairs never seen and gaps in the data occur."""
    models = [
        fitted(u, labels, **settings) for u, labels in enumerate(["abc", "bcd", "a", "efgh", "abcdefgh"])
    ]
    batch = searching(OnlineBatch(models, 3), dense)
    rng = np.random.default_rng(9)
    data = [typing(rng, 60, [*"abcdefg", None, "new"]) for _ in range(3)]
    found = np.stack(
        [batch.update([X[n] for X, _ in data], [events[n] for _, events in data]) for n in range(60)], axis=1
    )
    assert found.shape == (3, 60, 5)
    for s, (X, events) in enumerate(data):
        for u, model in enumerate(models):
            np.testing.assert_allclose(found[s, :, u], model.score_samples(X, events=events), **CLOSE)
            one = OnlineFilter(searching(OnlineBatch([model], 1), dense))
            alone = [one.update(x, event) for x, event in zip(X, events, strict=True)]
            np.testing.assert_allclose(found[s, :, u], alone, **CLOSE)
            np.testing.assert_allclose(batch.proba[s, u], one.proba, **CLOSE)
            assert batch.log_likelihood[s, u] == pytest.approx(one.log_likelihood, rel=1e-12)
    assert batch.n_events.tolist() == [60, 60, 60]


def test_against_every_path():
    """Two events of a model with all families, by enumeration of its states."""
    rng = np.random.default_rng(3)
    truth = Truth.random(rng, m=3, n_states=2)
    model = POHMM.from_parameters(*truth.arguments())
    X = random_values(rng, FAMILIES, 2)

    def density(n, w, j):
        rows = [{name: v[w, j] for name, v in params.items()} for _, params in truth.emission]
        return math.exp(sum(true_density(f, X[n, k], rows[k]) for k, (f, _) in enumerate(truth.emission)))

    joint = sum(
        truth.start[1, i] * density(0, 1, i) * truth.trans[1, 2, i, j] * density(1, 2, j)
        for i in range(2)
        for j in range(2)
    )
    batch = OnlineBatch([model], 1)
    batch.update(X[:1], ["k1"])
    batch.update(X[1:], ["k2"])
    assert batch.log_likelihood[0, 0] == pytest.approx(math.log(joint), rel=1e-11)


@pytest.mark.parametrize("name", FAMILIES)
def test_compiled_densities(name):
    """Against scipy, for parameters of every size."""
    rng = np.random.default_rng(5)
    params = random_params(rng, name, (200,))
    params["scale"] = params["scale"] * 10.0 ** rng.uniform(-3, 1, 200)
    if name == "gamma":
        params["shape"][:100] *= 10.0 ** rng.uniform(2, 6, 100)
        params["shape"][150:] = 1.0
    x = np.abs(family_of(name).draw(rng, params)) + 1e-9
    # One state: ln P of the first event is its density under its type.
    emission = [(name, {key: value[:, None] for key, value in params.items()})]
    model = POHMM.from_parameters(
        np.arange(200), np.ones((200, 1)), np.ones((200, 200, 1, 1)), emission, np.full(200, 0.005)
    )
    found = OnlineBatch([model], 200).update(x[:, None], np.arange(200))[:, 0]
    for n in range(200):
        one = {key: value[n] for key, value in params.items()}
        # scipy's own gamma loses digits where large terms cancel.
        expected = true_density(name, x[n], one)
        assert found[n] == pytest.approx(expected, rel=1e-8 if name == "gamma" else 1e-10, abs=1e-9)


def test_categories():
    """Values that are places in a table; one of them a state cannot emit, others no state can."""
    p = [[[0.5, 0.2], [0.1, 0.3]], [[0.5, 0.0], [0.4, 0.3]], [[0.0, 0.8], [0.5, 0.4]]]
    emission = [(Categorical(n_categories=3), {f"p{c}": np.array(p[c]) for c in range(3)})]
    trans = np.random.default_rng(0).dirichlet([1.0, 1.0], (2, 2, 2))
    model = POHMM.from_parameters(["a", "b"], [[0.4, 0.6], [0.7, 0.3]], trans, emission)
    X, events = np.array([[2.0], [1.0], [np.nan], [0.0], [2.0], [1.0], [1.0]]), list("abaabba")
    batch, one = OnlineBatch([model], 1), model.online()
    found = [batch.update([x], [event])[0, 0] for x, event in zip(X, events, strict=True)]
    np.testing.assert_allclose(found, model.score_samples(X, events=events), **CLOSE)
    np.testing.assert_allclose([one.update(x, e) for x, e in zip(X, events, strict=True)], found, **CLOSE)
    for bad in (0.5, 3.0, -1.0, np.inf):
        with pytest.raises(ValueError, match=r"^session 0, column 0: .* a whole number from 0 to 2"):
            batch.update([[bad]], ["a"])
        with pytest.raises(ValueError, match=r"^session 0, column 0: .* a whole number from 0 to 2"):
            one.update([bad], "a")
    assert batch.n_events[0] == one.n_events == 7


def two_normals(transmat=((1.0, 0.0), (0.0, 1.0))):
    return HMM.from_parameters([0.5, 0.5], transmat, [("normal", [0.0, 100.0], [1.0, 1.0])])


@pytest.mark.parametrize(
    "x",
    [[0, 100, 0, 0], [0] + 20 * [55], [100] + 300 * [49], 20 * [55] + 20 * [40] + [0], [0, 1e5, 0, 50]],
    ids=str,
)
def test_underflow_in_one_of_many(x):
    """A filter that needs logarithms beside one that does not; two terms in logs are the truth."""
    model = two_normals()
    batch = OnlineBatch([model], 2)
    for value in x:
        batch.update([[value], [1.0]])
    terms = [np.log(0.5) + stats.norm.logpdf(np.array(x, float), loc).sum() for loc in (0.0, 100.0)]
    assert batch.log_likelihood[0, 0] == pytest.approx(special.logsumexp(terms), rel=1e-12)
    assert batch.log_likelihood[1, 0] == pytest.approx(
        np.log(0.5) + stats.norm.logpdf(1.0) * len(x), rel=1e-12
    )
    share = np.exp(np.array(terms) - special.logsumexp(terms))
    np.testing.assert_allclose(batch.proba[0, 0], share, atol=1e-9)


def test_a_filter_comes_back_from_logarithms():
    """Its probabilities are exact again, where they had underflowed."""
    batch = OnlineBatch([two_normals()], 1)
    for value in [0.0] + [100.0] * 2:
        batch.update([[value]])
    assert batch._bank.in_logs.all()
    batch.update([[0.0]])
    assert not batch._bank.in_logs.any()
    np.testing.assert_allclose(batch.proba[0, 0], [0.5, 0.5])


def test_an_impossible_event():
    """−inf from there on in its filter, whatever the others do."""
    never = HMM.from_parameters([1.0, 0.0], np.eye(2), [("normal", [0.0, 1.0], [1.0, 1.0])])
    blocked = HMM.from_parameters([1.0, 0.0], np.eye(2), [("normal", [1e100, 1.0], [1e-200, 1.0])])
    batch = OnlineBatch([never, blocked], 1)
    assert np.isfinite(batch.update([[0.0]])[0, 0])
    assert np.isneginf(batch.log_likelihood[0, 1])
    assert np.isneginf(batch.update([[0.0]])[0, 1])
    assert np.isfinite(batch.log_likelihood[0, 0])
    with pytest.raises(ValueError, match="session 0 so far have probability zero under model 1"):
        _ = batch.proba


class Doubled(LogNormal):
    """A family of one's own, known to NumPy only."""

    name = "doubled"

    def log_density(self, x, params):
        return super().log_density(2.0 * x, params) + np.log(2.0)


def test_a_family_of_ones_own():
    """x has this density if 2x is log-normal: the same numbers from data twice as large, but for ln 2."""
    rng = np.random.default_rng(2)
    loc, scale = rng.normal(5, 1, (2, 2, 2))[0], rng.uniform(0.2, 0.5, (2, 2))
    chain = ([[0.5, 0.5]] * 2, np.full((2, 2, 2, 2), 0.5))
    kept = [("lognormal", loc, scale), ("lognormal", loc, scale)]
    own = [(Doubled(), {"loc": loc, "scale": scale}), ("lognormal", loc, scale)]
    plain, custom = (POHMM.from_parameters(["a", "b"], *chain, emission) for emission in (kept, own))
    X, events = np.exp(rng.normal(5, 1, (20, 2))), list("ab" * 10)
    X[3, 0] = np.nan
    expected = plain.score_samples(X * [2.0, 1.0], events=events) + np.log(2.0) * ~np.isnan(X[:, 0])
    batch, one = OnlineBatch([custom, custom], 2), custom.online()
    for n in range(20):
        found = batch.update([X[n], X[n]], [events[n]] * 2)
        np.testing.assert_allclose(found, np.full((2, 2), expected[n]), **CLOSE)
        assert one.update(X[n], events[n]) == pytest.approx(expected[n], rel=1e-11)


def test_sessions_with_their_own_cohorts():
    """Each session under some of the models; sessions advance apart, and begin anew."""
    models = [fitted(u, "abc") for u in range(4)]
    cohorts = np.array([[0, 1], [3, 2], [1, 1]])
    batch = OnlineBatch(models, cohorts=cohorts)
    rng = np.random.default_rng(1)
    X, events = typing(rng, 30, "abc")
    alone = {(s, u): models[u].online() for s in range(3) for u in cohorts[s].tolist()}
    for n in range(30):
        which = rng.choice(3, rng.integers(1, 4), replace=False)
        found = batch.update(np.tile(X[n], (len(which), 1)), [events[n]] * len(which), sessions=which)
        expected = [[alone[s, u].update(X[n], events[n]) for u in dict.fromkeys(cohorts[s])] for s in which]
        for row, ours in zip(found, expected, strict=True):
            np.testing.assert_allclose(row, np.resize(ours, 2), **CLOSE)
    assert batch.n_events.tolist() == [alone[s, cohorts[s, 0]].n_events for s in range(3)]
    before = batch.log_likelihood
    batch.restart([1], cohorts=[[0, 3]])
    assert batch.cohorts.tolist() == [[0, 1], [0, 3], [1, 1]]
    assert batch.n_events[1] == 0
    np.testing.assert_array_equal(batch.log_likelihood[[0, 2]], before[[0, 2]])
    np.testing.assert_allclose(batch.proba[1, 1], models[3].marginal_.startprob)
    np.testing.assert_allclose(
        batch.update(X[:1], events[:1], [1])[0], [models[u].online().update(X[0], events[0]) for u in (0, 3)]
    )
    batch.restart()
    assert batch.n_events.tolist() == [0, 0, 0]


@pytest.mark.parametrize("n_models", [1, 3])
def test_more_filters_than_are_taken_at_a_time(n_models):
    """Some begin in every step, some are missing a value or a type, some come near underflow."""
    models = [fitted(u, labels) for u, labels in enumerate(["abc", "bcd", "abcd"][:n_models])]
    n_sessions = 2 * TOGETHER + 7
    batch = OnlineBatch(models, n_sessions)
    rng = np.random.default_rng(12)
    seen = [[] for _ in range(n_sessions)]
    for _ in range(5):
        which = np.flatnonzero(rng.random(n_sessions) < 0.7)
        X, events = typing(rng, len(which), [*"abcd", None])
        X[rng.random(len(X)) < 0.1, 0] = 1e250
        found = batch.update(X, events, which)
        for row, s in enumerate(which.tolist()):
            seen[s].append((X[row], events[row], found[row]))
    for events in seen:
        if events:
            X, labels, found = zip(*events, strict=True)
            wanted = [model.score_samples(np.array(X), events=list(labels)) for model in models]
            np.testing.assert_allclose(np.array(found), np.transpose(wanted), **CLOSE)


def test_codes_in_place_of_labels():
    models = [fitted(1, "abc"), fitted(2, "bcd")]
    by_label, by_code = OnlineBatch(models, 5), OnlineBatch(models, 5)
    labels = ["a", "d", None, "new", "b"]
    X = np.full((5, 2), 100.0)
    codes = by_code.encode(labels)
    for _ in range(3):
        np.testing.assert_array_equal(by_label.update(X, labels), by_code.update(X, codes=codes))
    # Any form of the same labels has the same codes.
    np.testing.assert_array_equal(by_code.encode(np.array(labels, dtype=object)), codes)
    np.testing.assert_array_equal(by_code.encode(np.array(["a", "d"])), codes[:2])


def test_labels_that_are_numbers():
    X = np.exp(np.random.default_rng(1).normal(5, 0.3, (40, 1)))
    events = [1, 2, 3, 2] * 10
    model = POHMM(tol=1.0).fit(X, events=events)
    expected = model.score_samples(X[:3], events=[2, 99, None])
    for two in (2, 2.0, np.int64(2)):
        one = model.online()
        found = [one.update(x, event) for x, event in zip(X[:3], [two, 99, None], strict=True)]
        np.testing.assert_allclose(found, expected, **CLOSE)
    with pytest.raises(ValueError, match="found True"):
        model.online().update(X[0], True)
    with pytest.raises(ValueError, match="64 bits"):
        model.online().update(X[0], 2**70)


MODELS = [fitted(1, "abc"), fitted(2, "bcd")]
STRICT = [*MODELS[:1], POHMM(tol=1.0, handle_unknown="error").fit([[1.0, 1.0]] * 4, events=list("abab"))]
NO_CHAIN = POHMM.from_parameters(
    ["a", "b"], [[0.5, 0.5]] * 2, np.full((2, 2, 2, 2), 0.5), [("lognormal", np.ones((2, 2)), 1.0)] * 2,
    [0.5, 0.5], np.eye(2),
)  # fmt: skip
TWO = np.ones((2, 2))


@pytest.mark.parametrize("dense", [True, False], ids=["all pairs", "observed pairs"])
def test_a_model_without_marginals(dense):
    X, events = typing(np.random.default_rng(6), 20, "ab")
    batch = searching(OnlineBatch([NO_CHAIN], 1), dense)
    found = [batch.update(X[n : n + 1], [events[n]])[0, 0] for n in range(20)]
    np.testing.assert_allclose(found, NO_CHAIN.score_samples(X, events=events), **CLOSE)


BAD = {
    "no models": (lambda: OnlineBatch([], 1), "models is empty"),
    "not fitted": (lambda: OnlineBatch([POHMM()], 1), "model 0 is not a fitted POHMM"),
    "no model": (lambda: OnlineBatch([MODELS[0], "b"], 1), "model 1 is not a fitted POHMM"),
    "states": (lambda: OnlineBatch([MODELS[0], fitted(1, "ab", n_states=3)], 1), "model 1 has 3 states"),
    "families": (lambda: OnlineBatch([MODELS[0], fitted(1, "ab", emission="gamma")], 1), "has different"),
    "no sessions": (lambda: OnlineBatch(MODELS, 0), "n_sessions must be a whole number, 1 or more"),
    "sessions missing": (lambda: OnlineBatch(MODELS), "n_sessions must be a whole number"),
    "flat cohorts": (lambda: OnlineBatch(MODELS, cohorts=[0, 1]), "a table of whole numbers"),
    "cohort beyond": (lambda: OnlineBatch(MODELS, cohorts=[[0, 2]]), "by their numbers, 0 to 1"),
    "cohort rows": (lambda: OnlineBatch(MODELS, 3, cohorts=[[0, 1]]), "1 rows for 3 sessions"),
    "shape": (lambda: OnlineBatch(MODELS, 3).update(TWO, ["a"] * 3), r"x must have shape \(3, 2\)"),
    "labels": (lambda: OnlineBatch(MODELS, 2).update(TWO, ["a"]), "2 sessions, 1 labels"),
    "domain": (lambda: OnlineBatch(MODELS, 2).update(-TWO, ["a"] * 2), "^session 0, column 0: -1.0 is no"),
    "twice": (lambda: OnlineBatch(MODELS, 2).update(TWO, "ab", [1, 1]), "a session is named twice"),
    "beyond": (lambda: OnlineBatch(MODELS, 2).update(TWO, "ab", [0, 2]), "sessions are numbered 0 to 1"),
    "negative": (lambda: OnlineBatch(MODELS, 2).update(TWO, "ab", [-1, 0]), "sessions are numbered 0 to 1"),
    "fraction": (lambda: OnlineBatch(MODELS, 2).update(TWO, "ab", [0.5, 1.5]), "must be a list of whole"),
    "a number": (lambda: OnlineBatch(MODELS, 2).update(TWO, "ab", 0), "must be a list of whole"),
    "half a session": (lambda: OnlineBatch(MODELS, 1.5), "n_sessions must be a whole number, 1 or more"),
    "both": (lambda: OnlineBatch(MODELS, 2).update(TWO, "ab", codes=[0, 0]), "not both"),
    "code": (lambda: OnlineBatch(MODELS, 2).update(TWO, codes=[0, 9]), "codes are numbered 0 to 5"),
    "codes": (lambda: OnlineBatch(MODELS, 2).update(TWO, codes=[0.5, 1]), "one whole number per session"),
    "rejected": (lambda: OnlineBatch(STRICT, 2).update(TWO, "ac"), "^session 1, model 1: event type 'c' was"),
    "unknown": (lambda: OnlineBatch([NO_CHAIN], 2).update(TWO, "az"), "no unique stationary"),
    "restart": (lambda: OnlineBatch(MODELS, 2).restart([2]), "sessions are numbered 0 to 1"),
    "restart width": (lambda: OnlineBatch(MODELS, 2).restart([1], [[0]]), "2 models per session"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input(kind):
    call, message = BAD[kind]
    with pytest.raises(ValueError, match=message):
        call()


def test_a_refused_event_leaves_all_sessions_as_they_were():
    batch = OnlineBatch(STRICT, 2)
    batch.update(TWO, "ab")
    before = batch._bank.filters.copy()
    for X, events in ((-TWO, "ab"), (TWO, "ac")):
        with pytest.raises(ValueError, match="session"):
            batch.update(X, events)
    np.testing.assert_array_equal(batch._bank.filters, before)


def test_a_vocabulary_too_large_for_all_pairs():
    """Types as many as words: most pairs were never seen, and some types not either."""
    rng = np.random.default_rng(8)
    X, events = typing(rng, 900, np.arange(400))
    model = POHMM(tol=1.0).fit(X, events=events)
    assert len(model.event_types_) ** 2 > SMALL_TABLE
    batch, one = OnlineBatch([model], 2), model.online()
    X, events = typing(rng, 200, np.arange(420))
    expected = model.score_samples(X, events=events)
    for n in range(200):
        found = batch.update(X[[n, n]], [events[n]] * 2)[:, 0]
        np.testing.assert_allclose(found, [expected[n]] * 2, **CLOSE)
        assert one.update(X[n], events[n]) == pytest.approx(expected[n], rel=1e-11, abs=1e-11)
