"""The estimators' public interface in any order, with odd inputs among the usual ones.

Whatever is asked, the answer has no NaN, or there is a `ValueError` (scikit-learn's `NotFittedError` is one)
and the estimator is as it was.
"""

from __future__ import annotations

import copy
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sklearn.base import clone

from keydyn import HMM, POHMM, ContextHMM, PartiallyHMM, PartlyHMM, Sequences, load
from tests.examples import examples
from tests.fuzz.questions import refuse_nan

X = np.exp(np.random.default_rng(0).normal(4.0, 0.4, (24, 1)))
EVENTS = np.resize(np.array(["a", "b", "a", "c"], dtype=object), 24)
GAPS = np.where(np.arange(24)[:, None] % 5 == 2, np.nan, X)
FULL = Sequences.from_arrays(X, EVENTS, [10, 14])

# What may be given as X, events and lengths.
USUAL: dict[str, tuple[Any, Any, Any]] = {
    "flat": (X, EVENTS, None),
    "lengths": (X, EVENTS, [10, 14]),
    "a list": ([X[:9], X[9:]], [EVENTS[:9], EVENTS[9:]], None),
    "sequences": (FULL, None, None),
    "missing values": (GAPS, EVENTS, None),
    "missing types": (X, np.where(np.arange(24) % 3 == 0, None, EVENTS), None),
    "no events": (X, None, None),
    "other types": (X, np.resize(["b", "d"], 24), None),
    "numbers as types": (X, np.resize([1, 2, 3], 24), None),
    "one event": (X[:1], EVENTS[:1], None),
    "equal values": (np.full((24, 1), 60.0), EVENTS, None),
    "a frame": (pd.DataFrame({"tau": X[:, 0]}), EVENTS, None),
    "masked": (np.ma.array(X, mask=np.isnan(GAPS)), EVENTS, None),
    "extremes": (np.where(np.arange(24)[:, None] % 2 == 0, 1e-99, 1e99), EVENTS, None),
}
ODD: dict[str, tuple[Any, Any, Any]] = {
    "negative": (-X, EVENTS, None),
    "infinite": (np.where(np.isnan(GAPS), np.inf, X), EVENTS, None),
    "only NaN": (np.full((24, 1), np.nan), EVENTS, None),
    "text": ([["x"]], ["a"], None),
    "complex": (X + 1j, EVENTS, None),
    "objects": (np.array([[{}]], dtype=object), ["a"], None),
    "none": (None, None, None),
    "empty": (X[:0], EVENTS[:0], None),
    "no sequences": (FULL[[]], None, None),
    "an empty list": ([], [], None),
    "two features": (np.c_[X, X], EVENTS, None),
    "three dimensions": (X[None], EVENTS, None),
    "lengths that wrap": (X, EVENTS, [2**62] * 4 + [24]),
    "lengths of 64 bits": (X, EVENTS, np.array([2**64 - 1, 25], dtype=np.uint64)),
    "lengths of text": (X, EVENTS, "ab"),
    "events too few": (X, EVENTS[:5], None),
    "events of lists": (X, [[]] * 24, None),
    "mixed events": (X, np.resize(np.array(["a", 1], dtype=object), 24), None),
    "a number": (5, None, None),
    "digits": ([[10**400]], ["a"], None),
}
GOOD = st.sampled_from([*USUAL]).map(USUAL.__getitem__)
ANY = st.sampled_from([*USUAL, *ODD]).map((USUAL | ODD).__getitem__)
WEIGHTS = st.sampled_from([[1.0], [2.0, 0.5], [0.0], [-1.0], [np.nan], "x", [1e300], [[1.0]], [1j]])
LEARNING = st.sampled_from(["fit", "fit", "partial_fit", "accumulate"])
SETTINGS: dict[str, list[Any]] = {
    "n_states": [1, 2, 3, 0, -1, 2.5, "two", None, 10**30, True],
    "emission": ["lognormal", "normal", "gamma", ["lognormal", "lognormal"], "cauchy", None, 7, []],
    "smoothing": [None, "frequency", 0.3, {"start": 0.5}, "often", -1, np.nan, {"end": 1}],
    "spread": [2.0, 0.5, 0, -1, np.nan, 1e300, 10**400, "wide"],
    "tol": [0.1, 1.0, -1, np.inf, None],
    "max_iter": [1, 5, 0, 10**30, "many"],
    "density_floor": [None, 1e-9, 10**30, 0.0, -1.0, np.nan, "low"],
    "min_scale": ["auto", 1e-3, 1e-90, 0.0, np.inf, "none"],
    "count_floor": [0.0, 1e-3, 1e300, -1.0, np.nan],
    "order_states": [True, False, "yes"],
    "marginals": ["printed", "exact", "none"],
    "handle_unknown": ["marginal", "error", "ignore"],
    "fixed": [(), ("start",), ("emission",), ("end",), 5],
    "leading_feature": [0, 1, -1, 10**30, "first"],
    "random_state": [None, 0, "seed", -5],
    "previous_feature": [0, 1, -1, "first", None],
    "emission_context": [None, 2, 0, "unknown", 1.5],
    "p_true": ["estimate", 0.9, 2.0, None],
    "memory": [1, 2, 0, "long", None],
}
ASKED = (
    "score",
    "score_sequences",
    "score_samples",
    "predict_proba",
    "filter_proba",
    "predict",
    "decode",
    "aic",
    "bic",
)
OF_POHMM = ("score_joint", "predict_events", "decode_events", "forecast_residuals")


def snapshot(model: Any) -> dict[str, bytes | str]:
    """All that makes up an estimator, so that two can be compared."""
    parts = {f"setting {name}": repr(value) for name, value in model.get_params(deep=False).items()}
    for name, value in sorted(vars(model).items()):
        if name != "_state":
            parts[name] = repr(value)
    state = vars(model).get("_state")
    if isinstance(model, POHMM) and state is not None:
        known = state.result.__getstate__()
        parts |= _numbers("theta", vars(known.pop("parameters")))
        parts |= _numbers("result", known)
        parts |= {name: repr(getattr(state, name)) for name in ("feature_names", "closed", "totals_from_fit")}
    elif state is not None:
        parts |= _numbers("state", state)
    return parts


def _numbers(name: str, value: Any) -> dict[str, Any]:
    """The arrays and numbers in a nest of dicts, lists and objects, without what is computed from them."""
    if isinstance(value, np.ndarray):
        return {name: value.tobytes() if value.dtype != object else repr(value)}
    if hasattr(value, "__dataclass_fields__"):
        value = {field: getattr(value, field) for field in value.__dataclass_fields__}
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k not in CACHED}
        return {k: v for key, part in kept.items() for k, v in _numbers(f"{name} {key}", part).items()}
    if isinstance(value, (list, tuple)):
        return {k: v for n, part in enumerate(value) for k, v in _numbers(f"{name} {n}", part).items()}
    return {name: repr(value)}


# Properties that keep what they computed.
CACHED = {
    name
    for kind in (
        type(POHMM(tol=1.0).fit(X)._parameters),
        type(POHMM(tol=1.0).fit(X)._state.result.statistics),
    )
    for name, member in vars(kind).items()
    if type(member).__name__ == "cached_property"
}


class AnyOrder(RuleBasedStateMachine):
    """Everything that an estimator can be asked."""

    kind: Any = POHMM

    @initialize()
    def begin(self) -> None:
        self.model = self.kind(tol=0.5, max_iter=10)
        self.streams: list[Any] = []
        self.learn("fit", USUAL["lengths"])
        self.open_a_stream()

    def attempt(self, name: str, call: Any) -> Any:
        """The answer, or None where it was refused and nothing has changed."""
        before = snapshot(self.model)
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answer = call()
        except ValueError:
            after = snapshot(self.model)
            assert [part for part in before | after if before.get(part) != after.get(part)] == []
            return None
        refuse_nan(name, answer if isinstance(answer, (tuple, np.ndarray, float)) else 0.0)
        return answer

    def learn(self, name: str, data: tuple[Any, Any, Any], weights: Any = None) -> None:
        if hasattr(self.model, name):
            values, events, lengths = data
            method = getattr(self.model, name)
            self.attempt(name, lambda: method(values, events=events, lengths=lengths, sample_weight=weights))

    @rule(name=LEARNING, data=GOOD)
    def learn_from_the_usual(self, name: str, data: tuple[Any, Any, Any]) -> None:
        self.learn(name, data)

    @rule(name=LEARNING, data=ANY)
    def learn_from_anything(self, name: str, data: tuple[Any, Any, Any]) -> None:
        self.learn(name, data)

    @rule(name=LEARNING, data=GOOD, weights=WEIGHTS)
    def learn_with_weights(self, name: str, data: tuple[Any, Any, Any], weights: Any) -> None:
        self.learn(name, data, weights)

    @rule(forget=st.booleans())
    def update(self, forget: bool) -> None:
        if hasattr(self.model, "update"):
            self.attempt("update", lambda: self.model.update(forget=forget))

    @rule(data=st.one_of(GOOD, GOOD, ANY), name=st.sampled_from((*ASKED, *OF_POHMM)))
    def ask(self, data: tuple[Any, Any, Any], name: str) -> None:
        if hasattr(self.model, name):
            values, events, lengths = data
            # A residual is NaN where the value is.
            if name != "forecast_residuals" or not isinstance(values, np.ndarray) or values is X:
                self.attempt(name, lambda: getattr(self.model, name)(values, events=events, lengths=lengths))

    @rule(data=st.one_of(GOOD, GOOD, ANY), following=st.sampled_from([None, "a", "never", 3, [], {}]))
    def what_comes_next(self, data: tuple[Any, Any, Any], following: Any) -> None:
        if not hasattr(self.model, "predict_next"):
            return
        values, events, lengths = data

        def call() -> Any:
            answer = self.model.predict_next(values, events=events, lengths=lengths, next_event=following)
            return answer.logpdf(50.0), answer.cdf(50.0), answer.quantile(0.5)

        self.attempt("predict_next", call)

    @rule(name=st.sampled_from(sorted(SETTINGS)), number=st.integers(0, 1))
    def set(self, name: str, number: int) -> None:
        if hasattr(self.model, name):
            self.model.set_params(**{name: SETTINGS[name][number]})

    @rule(name=st.sampled_from(sorted(SETTINGS)), number=st.integers(0, 9), how=LEARNING)
    def set_for_once(self, name: str, number: int, how: str) -> None:
        value = SETTINGS[name][number % len(SETTINGS[name])]
        before = getattr(self.model, name, None)
        self.attempt("set_params", lambda: self.model.set_params(**{name: value}) and None)
        if hasattr(self.model, name):
            self.learn(how, USUAL["lengths"])
            self.attempt("score", lambda: self.model.score_samples(X, events=EVENTS))
            self.model.set_params(**{name: before})

    @rule()
    def begin_again(self) -> None:
        self.model = clone(self.model)
        assert not self.model.__sklearn_is_fitted__()
        self.attempt("score", lambda: self.model.score(X))

    @rule()
    def copied(self) -> None:
        self.model = copy.deepcopy(self.model)

    @rule()
    def through_a_file(self) -> None:
        if not hasattr(self.model, "save"):
            return
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.keydyn"
            self.attempt("save", lambda: self.model.save(path) or 0.0)
            if path.exists():
                back = load(path)
                one, other = (
                    self.attempt("score", lambda m=model: m.score_samples(X, events=EVENTS))
                    for model in (self.model, back)
                )
                np.testing.assert_array_equal(one, other)
                # What says how to run a fit is not in the file.
                self.model = back.set_params(tol=0.5, max_iter=10)

    @rule(
        n=st.sampled_from([5, 1, 0, -1, 2.5, "x", None]),
        lengths=st.sampled_from([None, [2, 3], [0], [2**62] * 4]),
    )
    def sample(self, n: Any, lengths: Any) -> None:
        if hasattr(self.model, "sample"):
            self.attempt("sample", lambda: self.model.sample(n, random_state=0, lengths=lengths)[0])

    @rule()
    def open_a_stream(self) -> None:
        stream = self.attempt("online", lambda: self.model.online()) if hasattr(self.kind, "online") else None
        if stream is not None:
            self.streams.append(stream)

    @rule(
        value=st.sampled_from(
            [[50.0], [np.nan], [1e-99], [1e99], [-1.0], [np.inf], [1j], "x", None, [], [10**400]]
        ),
        event=st.sampled_from(["a", "b", None, "never", 3, 1.5, [], np.nan]),
    )
    def follow(self, value: Any, event: Any) -> None:
        for stream in self.streams:
            before = stream._batch._bank.filters.tobytes()
            if self.attempt("online", lambda s=stream: s.update(value, event)) is None:
                assert stream._batch._bank.filters.tobytes() == before

    @invariant()
    def fitted_parameters_are_numbers(self) -> None:
        if hasattr(self, "model") and self.model.__sklearn_is_fitted__():
            refuse_nan("startprob_", self.model.startprob_)
            for emission in self.model.emission_:
                refuse_nan("emission_", tuple(emission.params.values()))


class OfHMM(AnyOrder):
    kind = HMM


class OfContextHMM(AnyOrder):
    kind = ContextHMM


class OfPartlyHMM(AnyOrder):
    kind = PartlyHMM


class OfPartiallyHMM(AnyOrder):
    kind = PartiallyHMM


MANY = settings(stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck))
MACHINES = (AnyOrder, OfHMM, OfContextHMM, OfPartlyHMM, OfPartiallyHMM)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.kind.__name__)
def test_any_order(machine):
    number = examples(40 if machine is AnyOrder else 15)
    run_state_machine_as_test(machine, settings=settings(MANY, max_examples=number))


@pytest.mark.parametrize("floor", ["low", np.nan, 0.0, -1.0, np.inf, 10**400])
@pytest.mark.parametrize("kind", [POHMM, PartlyHMM])
def test_a_density_floor_that_is_none_is_refused_after_fitting_too(kind, floor):
    model = kind(tol=0.5).fit(X).set_params(density_floor=floor)
    opened = [lambda values: model.online()] if kind is POHMM else []
    for ask in (model.score, model.predict_proba, *opened):
        with pytest.raises(ValueError, match="density_floor must be None or greater than zero"):
            ask(X)


def test_a_memory_that_is_none_is_refused_after_fitting_too():
    model = ContextHMM(emission_context=lambda past: past.events[:, -1], tol=0.5).fit(X, events=EVENTS)
    with pytest.raises(ValueError, match="memory must be a whole number"):
        model.set_params(memory="long").score(X, events=EVENTS)
