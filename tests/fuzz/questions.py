"""Every question that a model answers, asked at once: no answer is NaN, and no error but a `ValueError`."""

from __future__ import annotations

from typing import Any

import numpy as np

ASKED_OF_ALL = (
    "score",
    "score_sequences",
    "score_samples",
    "predict_proba",
    "filter_proba",
    "predict",
    "decode",
)
FURTHER = (
    *("aic", "bic", "score_joint", "predict_events", "decode_events"),
    *("forecast_residuals", "ordinary_residuals"),
)
ATTRIBUTES = (
    *("startprob_", "transmat_", "event_startprob_", "event_transmat_", "event_prob_", "stationary_"),
    *("n_parameters_", "n_parameters_full_"),
)


def inputs(families: list[Any]) -> list[np.ndarray]:
    """Finite values that the families take: usual, small and large ones, and the ends of their range."""
    usual = np.tile(np.array([1.0, 0.0, 1.0, 1.0])[:, None], (1, len(families)))
    made = []
    for name in ("usual", "small", "large", "lowest", "highest"):
        X = usual.copy()
        for k, family in enumerate(families):
            low, high = max(family.lowest, -1e100), min(family.highest, 1e100)
            value = {"usual": 60.0, "small": 1e-9, "large": 1e9, "lowest": low, "highest": high}[name]
            X[:, k] = np.clip(value * usual[:, k], low, high)
            if family.name == "categorical":
                X[:, k] = np.round(np.clip(X[:, k], 0, family.highest))
        made.append(X)
    return made


def refuse_nan(name: str, answer: Any) -> None:
    """`AssertionError` if any number in an answer is NaN."""
    for part in answer if isinstance(answer, tuple) else (answer,):
        values = np.asarray(part)
        if values.dtype.kind == "f":
            assert not np.isnan(values).any(), f"{name} is NaN"


def interrogate(model: Any) -> int:
    """Ask everything; how many questions were refused."""
    families = [emission.distribution for emission in model.emission_]
    types = list(getattr(model, "event_types_", []))[:3]
    refused = 0
    with np.errstate(all="ignore"):
        for X in inputs(families):
            events = [*types, None, "never seen" if not types or isinstance(types[0], str) else -7][:4]
            events = np.resize(np.array(events, dtype=object), len(X))
            for name in (*ASKED_OF_ALL, *FURTHER):
                if hasattr(model, name):
                    refused += _asked(name, lambda n=name, x=X, e=events: getattr(model, n)(x, events=e))
            if hasattr(model, "online"):
                refused += _asked("online", lambda x=X, e=events: _streamed(model, x, e))
                refused += _asked("predict_next", lambda x=X, e=events: _next(model, x, e))
        refused += _asked("sample", lambda: model.sample(8, random_state=0)[0])
        for name in ATTRIBUTES:
            if hasattr(type(model), name):
                refused += _asked(name, lambda n=name: getattr(model, n))
    return refused


def _asked(name: str, question: Any) -> int:
    try:
        refuse_nan(name, question())
    except (ValueError, AttributeError) as error:
        if isinstance(error, AttributeError) and not name.endswith("_"):
            raise
        return 1
    return 0


def _streamed(model: Any, X: np.ndarray, events: np.ndarray) -> np.ndarray:
    stream = model.online()
    answers = [stream.update(x, event) for x, event in zip(X, events, strict=True)]
    return np.append(answers, stream.proba)


def _next(model: Any, X: np.ndarray, events: np.ndarray) -> np.ndarray:
    following = model.predict_next(X, events=events, next_event=events[0])
    answers = [following.logpdf(X[0]), following.cdf(X[0]).ravel(), following.quantile(0.5).ravel()]
    return np.concatenate(answers)
