"""The population model from end to end."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import integrate
from sklearn.metrics import roc_auc_score

from keydyn import Sequences
from keydyn.datasets import make_typists
from keydyn.keystrokes.samples import Samples
from keydyn.population import PopulationModel
from keydyn.population.chain import posteriors
from keydyn.population.score.fitted import _pieces
from tests.population.simulated import people, samples_of_people

WITH_AND_WITHOUT = pytest.mark.parametrize("states", [False, True])


@pytest.fixture(scope="module")
def samples():
    return samples_of_people()


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "states"])
def fitted(request, samples):
    return PopulationModel(hidden_states=request.param).fit(samples)


def of(samples, user):
    return samples[samples.users == user]


def test_people_are_recognised(fitted):
    later = samples_of_people(n_samples=8)
    first, rest = later[later.numbers < 4], later[later.numbers >= 4]
    templates = [fitted.enrol(of(first, user)) for user in range(12)]
    scores = fitted.log_likelihoods(templates, rest)
    assert scores.shape == (len(rest), 12)
    assert np.mean(scores.argmax(axis=1) == rest.users) > 0.6


def test_events_add_up_to_the_score(fitted, samples):
    templates = [fitted.enrol(of(samples, user)) for user in (0, 1)]
    events = fitted.event_log_likelihoods(templates, samples)
    sums = np.add.reduceat(events, samples.sequences.offsets[:-1], axis=0)
    np.testing.assert_allclose(sums, fitted.log_likelihoods(templates, samples), rtol=1e-12)


def test_events_are_causal(fitted, samples):
    """What comes after the next key changes no term."""
    template = fitted.enrol(of(samples, 0))
    keystrokes = people(n_people=1, n_samples=1)
    cut = keystrokes.iloc[:12].reset_index(drop=True)
    whole = fitted.event_log_likelihoods([template], Samples.of(keystrokes, kind="long text"))
    part = fitted.event_log_likelihoods([template], Samples.of(cut, kind="long text"))
    np.testing.assert_allclose(part[:11], whole[:11], rtol=1e-12)
    assert abs(part[11, 0] - whole[11, 0]) > 1e-6


def test_densities_integrate_to_one(fitted, samples):
    """The density of an interval given all before, and that of the first hold, over all they may be."""
    template = fitted.enrol(of(samples, 0))
    one = samples_of_people(n_people=1, n_samples=1, n_keys=6)
    grid = np.linspace(-25.0, 35.0, 1201)
    names = one.sequences.feature_names
    index = pd.MultiIndex.from_product([[0], range(len(grid))], names=["user", "session"])
    for name, row in (("duration", 0), ("tau", 5)):
        X = np.tile(one.sequences.X, (len(grid), 1, 1))
        X[:, row, :] = np.nan
        X[:, row, names.index(name)] = np.exp(grid)
        frame = pd.DataFrame(X.reshape(-1, 2), columns=names)
        sequences = Sequences.from_arrays(
            frame, np.tile(one.sequences.labels(), len(grid)), np.full(len(grid), 6)
        )
        many = Samples(index, sequences, one.emission, pd.DataFrame(index=index), "given")
        terms = fitted.event_log_likelihoods([template], many).reshape(-1, 6)[:, row]
        # Tails of a Student t with four degrees of freedom beyond the grid: some 1e-5.
        assert integrate.simpson(np.exp(terms + grid), x=grid) == pytest.approx(1.0, abs=1e-3)


def test_explanation_adds_up(fitted, samples):
    template, sample = fitted.enrol(of(samples, 0)), samples[[0]]
    table = fitted.explain(template, sample)
    score = fitted.log_likelihoods([template, fitted.anyone()], sample)[0]
    assert table["log_likelihood"].sum() == pytest.approx(score[0], rel=1e-10)
    assert table["evidence"].sum() == pytest.approx(score[0] - score[1], rel=1e-10)
    assert not table.duplicated(["key", "feature"]).any()
    assert table["count"].sum() == 2 * samples.sequences.lengths[0] - 1


def test_drawn_typing_is_the_persons(fitted, samples):
    """A person's template finds what was drawn from it more probable than another's does, and recovers it."""
    templates = [fitted.enrol(of(samples, user)) for user in (0, 1)]
    events = samples.sequences[0].labels()
    rows = []
    for session in range(10):
        typed = fitted.sample(templates[0], events, random_state=session)
        assert np.isnan(typed["tau"].iloc[0])
        press = typed["tau"].fillna(0.0).cumsum()
        rows.append(
            pd.DataFrame(
                {
                    "user": 0,
                    "session": session,
                    "keyname": typed["keyname"],
                    "timepress": press,
                    "timerelease": press + typed["duration"],
                }
            )
        )
    scores = fitted.log_likelihoods(templates, Samples.of(pd.concat(rows, ignore_index=True)))
    assert (scores[:, 0] > scores[:, 1]).mean() > 0.7
    again = fitted.sample(templates[0], events, random_state=0)
    pd.testing.assert_frame_equal(again, fitted.sample(templates[0], events, random_state=0))


def test_a_template_of_another_population_is_refused(fitted, samples):
    other = PopulationModel(hidden_states=False).fit(samples[samples.users < 8])
    template = other.enrol(of(samples, 0))
    for use in (
        lambda: fitted.log_likelihoods([template], samples),
        lambda: fitted.event_log_likelihoods([template], samples),
        lambda: fitted.explain(template, samples[[0]]),
        lambda: fitted.sample(template, ["a"]),
    ):
        with pytest.raises(ValueError, match="another population"):
            use()
    with pytest.raises(ValueError, match="read-only"):
        template.mean[0] = 1.0


def test_fitting_again_and_threads_change_nothing(samples):
    model = PopulationModel().fit(samples)
    assert model.sha256 == PopulationModel().fit(samples).sha256
    templates = [model.enrol(of(samples, user)) for user in range(12)]
    np.testing.assert_array_equal(
        model.log_likelihoods(templates, samples), model.log_likelihoods(templates, samples, n_jobs=2)
    )


@WITH_AND_WITHOUT
@pytest.mark.parametrize("n_people", [2, 3, 5])
def test_few_people_and_one_sample(n_people, states):
    samples = samples_of_people(n_people=n_people, n_samples=1)
    model = PopulationModel(states).fit(samples)
    templates = [model.enrol(samples[[u]]) for u in range(n_people)]
    scores = model.log_likelihoods(templates, samples)
    assert np.isfinite(scores).all()
    assert (scores.argmax(axis=1) == np.arange(n_people)).all()


def test_unknown_keys_one_keystroke_and_missing_releases(fitted, samples):
    strange = people(n_people=1, n_samples=2)
    strange.loc[3, "keyname"] = "é"
    strange.loc[5:8, "timerelease"] = np.nan
    one = strange.iloc[[0]].reset_index(drop=True)
    lost = one.assign(timerelease=np.nan)
    for keystrokes in (strange, one, lost):
        with_them = Samples.of(keystrokes, kind="long text")
        template = fitted.enrol(with_them)
        assert np.isfinite(fitted.log_likelihoods([template, fitted.anyone()], with_them)).all()
    nothing = Samples.of(lost, kind="long text")
    # No value at all: nothing was learnt and nothing is said.
    np.testing.assert_allclose(fitted.enrol(nothing).mean, fitted.anyone().mean)
    assert fitted.log_likelihoods([fitted.anyone()], nothing)[0, 0] == pytest.approx(0.0, abs=1e-12)


@WITH_AND_WITHOUT
def test_positions_sensors_and_constant_features(states):
    keystrokes = people(text="abcdabc")
    keystrokes["pressure"] = np.random.default_rng(0).normal(keystrokes["user"], 1.0)
    keystrokes["always"] = 3.0
    samples = Samples.of(keystrokes, sensors=["pressure", "always"], events="position")
    model = PopulationModel(states).fit(samples)
    templates = [model.enrol(of(samples, user)) for user in range(12)]
    scores = model.log_likelihoods(templates, samples)
    assert np.isfinite(scores).all()
    assert np.mean(scores.argmax(axis=1) == samples.users) > 0.8
    with pytest.raises(ValueError, match="knows the features"):
        model.enrol(Samples.of(people(n_people=1)))


def test_times_that_never_vary():
    keystrokes = people(n_people=3, text="abc")
    n = keystrokes.groupby(["user", "session"]).cumcount()
    keystrokes["timepress"] = 100.0 * n
    keystrokes["timerelease"] = 100.0 * n + 50.0
    samples = Samples.of(keystrokes)
    model = PopulationModel().fit(samples)
    assert np.isfinite(model.log_likelihoods([model.enrol(of(samples, 0))], samples)).all()


def test_bad_input_is_refused(samples):
    with pytest.raises(ValueError, match="2 people or more"):
        PopulationModel().fit(of(samples, 0))
    with pytest.raises(ValueError, match="not fitted"):
        PopulationModel().enrol(of(samples, 0))
    with pytest.raises(ValueError, match="no samples"):
        PopulationModel().fit(samples[[]])
    model = PopulationModel(hidden_states=False).fit(samples)
    with pytest.raises(ValueError, match="one person"):
        model.enrol(samples)
    with pytest.raises(ValueError, match="no samples"):
        model.enrol(samples[[]])
    with pytest.raises(ValueError, match="no events"):
        model.sample(model.anyone(), [])


def test_a_time_of_0_is_missing(samples):
    """It has no logarithm, and says no more than that the clock is coarse."""
    model = PopulationModel(hidden_states=False).fit(samples)
    zero = people(n_people=1, n_samples=1)
    zero.loc[2, "timerelease"] = zero.loc[2, "timepress"]
    lost = zero.assign(timerelease=zero["timerelease"].where(zero.index != 2))
    found, expected = (model.enrol(Samples.without_vectors(frame)) for frame in (zero, lost))
    np.testing.assert_array_equal(found.mean, expected.mean)
    np.testing.assert_array_equal(found.scale, expected.scale)


def test_pieces_cover_everything_once():
    offsets = np.array([0, 5, 900_000, 900_001, 3_000_000, 3_000_002])
    counted = np.zeros((5, 7), dtype=int)
    for first, end, users in _pieces(offsets, 7):
        assert end > first
        counted[first:end, users] += 1
    np.testing.assert_array_equal(counted, 1)


def test_hidden_states_are_those_that_were_drawn(fitted, samples):
    """Probabilities are calibrated: where a pause has probability p, a share p of the events are pauses."""
    if not fitted.hidden_states:
        probability = fitted.predict_proba(fitted.anyone(), samples)
        np.testing.assert_array_equal(probability, np.ones((samples.sequences.n_events, 1)))
        return
    chain = fitted.parameters.chain
    random = np.random.default_rng(0)
    n, length = 400, 30
    classes = np.zeros(n * length, dtype=np.int64)
    states = np.empty(n * length, dtype=np.int64)
    for k in range(n * length):
        odds = chain.start if k % length == 0 else chain.transitions[0, 0, states[k - 1]]
        states[k] = random.choice(2, p=odds)
    e = chain.location[states] + chain.scale[states] * random.standard_t(chain.degrees[states])[:, None]
    e[:, 1] = chain.location[states, 1] + chain.scale[states, 1] * random.standard_t(chain.degrees[states])
    found = posteriors(chain, e, classes, np.arange(0, n * length + 1, length))
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-9)
    for low, high in ((0.0, 0.1), (0.1, 0.4), (0.4, 0.8), (0.8, 1.01)):
        some = (found[:, 1] >= low) & (found[:, 1] < high)
        if some.sum() > 200:
            assert states[some].mean() == pytest.approx(found[some, 1].mean(), abs=0.06)


def test_hidden_states_are_those_of_simulated_typists():
    """Whether a key was typed after a pause is found out better than by the interval alone."""
    keystrokes = make_typists(20, 6, "free", 60, return_states=True)
    everyone = Samples.of(keystrokes, first="missing")
    model = PopulationModel().fit(everyone)
    by_state, by_interval = [], []
    for user in range(5):
        own = of(everyone, user)
        template = model.enrol(own)
        probability = model.predict_proba(template, own)
        assert probability.shape == (own.sequences.n_events, 2)
        np.testing.assert_array_equal(model.predict(template, own), probability.argmax(axis=1))
        paused = keystrokes.loc[keystrokes["user"] == user, "state"].to_numpy() == 1
        tau = own.sequences.X[:, own.sequences.feature_names.index("tau")]
        later = np.isfinite(tau)
        by_state.append(roc_auc_score(paused[later], probability[later, 1]))
        by_interval.append(roc_auc_score(paused[later], tau[later]))
    assert np.mean(by_state) > max(np.mean(by_interval), 0.9)
