"""Estimators in several threads, and estimators whose fit fails or is interrupted."""

import gc
import signal
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone

from keydyn import HMM, POHMM, POHMMClassifier, Sequences, fit_many
from keydyn.model import ContextHMM, PartiallyHMM, PartlyHMM
from keydyn.model.fit.many import score_many
from keydyn.model.fit.threads import run_hearing_signals

needs_signals = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no SIGALRM here")


class AlarmError(Exception):
    """What the signal handler of these tests raises."""


@pytest.fixture
def alarm():
    """A call during which SIGALRM is sent to this process after some seconds; its handler raises.

    Python ignores what is raised while it collects garbage, so it does not, and the signal is sent again:
    much later, because a second one in the midst of handling the first would leave threads at work.
    """
    rings = []

    def ring(*_):
        if rings:
            raise AlarmError

    def disturbed(seconds, call):
        gc.disable()
        rings.append(True)
        signal.setitimer(signal.ITIMER_REAL, seconds, 30.0)
        try:
            return quiet(call)
        finally:
            rings.clear()
            gc.enable()

    before = signal.signal(signal.SIGALRM, ring)
    try:
        yield disturbed
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def typing(n=60, types="abc", seed=0):
    rng = np.random.default_rng(seed)
    return rng.lognormal(5.0, 0.4, (n, 2)), rng.choice(list(types), n)


def quiet(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def state_of(model):
    """All that a model knows, as it stands."""
    return {name: value for name, value in vars(model).items() if name not in model.get_params(deep=False)}


ENDLESS = {"max_iter": 10**9, "tol": 0.0}


def noise(n_events):
    """No model comes to an end with these soon."""
    rng = np.random.default_rng(1)
    return np.exp(rng.normal(5.0, 0.4, (n_events, 2))), rng.integers(0, 20, n_events)


@needs_signals
@pytest.mark.parametrize(
    "model",
    [
        POHMM(),
        POHMM(n_states=8),
        HMM(n_states=3),
        POHMM(emission="gamma"),
        POHMM(callback=lambda iteration: False),
        PartlyHMM(),
        ContextHMM(),
        PartiallyHMM(),
    ],
    ids=lambda model: f"{type(model).__name__}-{model.n_states}",
)
def test_a_signal_stops_a_fit_and_leaves_the_model_as_it_was(model, alarm):
    """Whatever the signal handler raises comes out of `fit`, soon: the fit itself would never end."""
    X, events = typing()
    model = quiet(lambda: clone(model).set_params(max_iter=5).fit(X, events=events))
    before, score = state_of(model), model.score(X, events=events)
    model.set_params(**ENDLESS)
    X_long, events_long = noise(50_000)
    with pytest.raises(AlarmError):
        alarm(0.7, lambda: model.fit(X_long, events=events_long))
    assert state_of(model) == before
    assert model.score(X, events=events) == score


@needs_signals
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("n_models", [4, 200], ids=["alone", "in lanes"])
def test_a_signal_stops_many_fits(n_models, n_jobs, alarm):
    X, events = noise(100_000 // n_models)
    data = [Sequences.from_arrays(X, events) for _ in range(n_models)]
    quiet(lambda: fit_many(POHMM(max_iter=1), data))
    with pytest.raises(AlarmError):
        alarm(0.7, lambda: fit_many(POHMM(smoothing=None, **ENDLESS), data * 100, n_jobs))
    # The threads are free for other work.
    assert len(quiet(lambda: fit_many(POHMM(max_iter=1), data[:4], n_jobs))) == 4


@needs_signals
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_signal_stops_scoring_by_many_models(n_jobs, alarm):
    data = Sequences.from_arrays(*noise(5_000))
    model = quiet(lambda: POHMM(max_iter=2).fit(data))
    with pytest.raises(AlarmError):
        alarm(0.5, lambda: score_many([model] * 100_000, data, n_jobs))


@needs_signals
def test_a_signal_is_heard_during_a_single_long_call(alarm):
    stop = threading.Event()
    with pytest.raises(AlarmError):
        alarm(0.3, lambda: run_hearing_signals(stop.wait, is_long=True))
    stop.set()


def test_a_long_call_leaves_the_main_thread_free_and_no_other():
    """Only the main thread hears signals."""
    found = []

    def note():
        found.append(threading.current_thread())

    run_hearing_signals(note, is_long=True)
    run_hearing_signals(note, is_long=False)
    other = threading.Thread(target=run_hearing_signals, args=(note, True))
    other.start()
    other.join()
    main = threading.main_thread()
    assert [one is main for one in found] == [False, True, False]
    assert found[2] is other


def test_what_a_long_call_raises_is_raised():
    def fail():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run_hearing_signals(fail, is_long=True)


@pytest.mark.parametrize(
    "model", [POHMM(), HMM(), PartlyHMM(), ContextHMM(), PartiallyHMM()], ids=lambda m: type(m).__name__
)
def test_a_fit_that_fails_leaves_the_model_as_it_was(model):
    X, events = typing()
    model = quiet(lambda: clone(model).set_params(max_iter=3).fit(X, events=events))
    before, score = state_of(model), model.score(X, events=events)
    with pytest.raises(ValueError, match="no value at all"):
        model.fit(np.full((5, 2), np.nan), events=list("abcab"))
    with pytest.raises(ValueError, match="n_states"):
        model.set_params(n_states=0).fit(X, events=events)
    assert state_of(model) == before
    assert model.score(X, events=events) == score


@pytest.mark.parametrize("how", ["fit", "partial_fit"])
def test_scores_during_a_fit_are_those_of_the_model_before_or_after_it(how):
    """A model is fitted to one set of data and another in turn, with other types, while others score."""
    sets = [typing(60, "abc", 1), typing(90, "abcdefgh", 2)]
    asked, asked_events = typing(40, "abcd", 3)

    def learn(model, which):
        X, events = sets[which]
        quiet(lambda: getattr(model, how)(X, events=events))

    model, allowed = POHMM(max_iter=3), set()
    learn(model, 0)
    twin = clone(model)
    learn(twin, 0)
    n_turns = 30
    for turn in range(n_turns):
        allowed.add(twin.score(asked, events=asked_events))
        learn(twin, (turn + 1) % 2)
    allowed.add(twin.score(asked, events=asked_events))

    done, found = threading.Event(), []

    def ask():
        while not done.is_set():
            found.append(model.score(asked, events=asked_events))
            found.append(float(model.score_samples(asked, events=asked_events).sum()))
            assert model.predict_proba(asked, events=asked_events).shape == (40, 2)
            assert len(model.emission_[0].params["loc"]) in (3, 8)

    with ThreadPoolExecutor(3) as threads:
        asking = [threads.submit(ask) for _ in range(3)]
        try:
            for turn in range(n_turns):
                learn(model, (turn + 1) % 2)
        finally:
            done.set()
        for one in asking:
            one.result()
    sums = np.array(sorted(allowed))
    nearest = np.abs(np.array(found)[:, None] - sums).min(axis=1)
    assert len(found) > 0
    assert nearest.max() < 1e-9


def test_no_thread_loses_what_another_learns():
    chunks = [typing(50, "abc", seed) for seed in range(24)]
    model = POHMM().partial_fit(*chunks[0][:1], events=chunks[0][1])
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda chunk: model.partial_fit(chunk[0], events=chunk[1]), chunks[1:]))
    assert model._state.result.statistics.counts.type_counts.sum() == 50 * len(chunks)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda chunk: model.accumulate(chunk[0], events=chunk[1]), chunks))
    assert model.update()._state.result.statistics.counts.type_counts.sum() == 2 * 50 * len(chunks)


def test_a_classifier_is_replaced_at_once():
    X, events = typing(120)
    first = POHMMClassifier(POHMM(max_iter=2))
    quiet(lambda: first.fit(X, ["a", "b"] * 2, events=events, lengths=[30] * 4))
    before = state_of(first)
    with pytest.raises(ValueError, match="one class only"):
        first.fit(X, ["a"] * 4, events=events, lengths=[30] * 4)
    assert state_of(first) == before


def test_a_subclass_may_add_to_a_method():
    """A method of one's own, and one that extends `fit`."""

    class Counting(POHMM):
        def fit(self, X, y=None, **options):
            super().fit(X, y, **options)
            self.n_fits_ = getattr(self, "n_fits_", 0) + 1
            return self

        def mean_score(self, X, events):
            return self.score(X, events=events) / len(X)

    X, events = typing()
    model = Counting(max_iter=3)
    assert quiet(lambda: model.fit(X, events=events)) is model
    assert quiet(lambda: model.fit(X, events=events)).n_fits_ == 2
    assert model.mean_score(X, events) == model.score(X, events=events) / 60
