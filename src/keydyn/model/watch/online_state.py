"""The state of online filters as plain values that JSON can hold, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from keydyn.arrays import Floats, Integers
from keydyn.model.engine.online_step import EXTRA
from keydyn.model.watch.filter_bank import FilterBank

STATE_VERSION = 1
# Logarithms of what is kept as it is are given to so many digits.
ROUNDING = 1e-9


def to_plain(bank: FilterBank, fingerprint: str, rows: slice = slice(None)) -> dict[str, Any]:
    """All that is needed to resume later.

    `filtered` is what `log_filtered` is the logarithm of, to the last digit; None where only logarithms
    can hold it.
    """
    kept, in_logs, counts = bank.kept[rows], bank.in_logs[rows], bank.counts[rows]
    logs = np.where(in_logs[:, None], kept, 0.0)
    plain = (counts > 0) & ~in_logs
    with np.errstate(divide="ignore"):
        logs[plain] = np.log(kept[plain])
    return {
        "version": STATE_VERSION,
        "model": fingerprint,
        "log_filtered": [[_plain(v) for v in row] for row in logs],
        "filtered": [None if log else row.tolist() for row, log in zip(kept, in_logs, strict=True)],
        "last": bank.last[rows].astype(np.int64).tolist(),
        "n_events": counts.astype(np.int64).tolist(),
        "log_likelihood": [_plain(v) for v in bank.totals[rows]],
    }


def from_plain(state: dict[str, Any], fingerprint: str, n_states: int, n_types: int) -> Floats:
    """The filters of a saved state, (B, M + EXTRA); a `ValueError` says what does not fit."""
    try:
        version, model = state["version"], state["model"]
        log_filtered = np.array([[_float(v) for v in row] for row in state["log_filtered"]])
        last, n_events = (_whole(state[name]) for name in ("last", "n_events"))
        log_likelihood = np.array([_float(v) for v in state["log_likelihood"]])
        rows = state.get("filtered", [None] * len(last))
        exact = np.array([[np.nan] * n_states if row is None else [float(v) for v in row] for row in rows])
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"this is not a saved state of an online filter: {error!r}") from None
    if version != STATE_VERSION:
        raise ValueError(f"the state has version {version!r}; this reads {STATE_VERSION}")
    if model != fingerprint:
        raise ValueError("the state belongs to another model")
    n = len(last)
    if (
        not log_filtered.shape == exact.shape == (n, n_states)
        or not len(n_events) == len(log_likelihood) == n
    ):
        raise ValueError("the state's parts have different lengths")
    _check_range(log_filtered, exact, last, n_events, log_likelihood, n_types)
    filters = np.zeros((n, n_states + EXTRA))
    begun = n_events > 0
    # Only what can be held without logarithms was saved exactly; an impossible stream has nothing to hold.
    in_logs = begun & (np.isnan(exact).any(axis=1) | np.isneginf(log_likelihood))
    filters[:, :n_states] = np.where(in_logs[:, None], log_filtered, np.where(begun[:, None], exact, 0.0))
    filters[:, n_states:] = np.stack([in_logs, last, n_events, log_likelihood], axis=1)
    return filters


def _check_range(
    log_filtered: Floats,
    exact: Floats,
    last: Integers,
    n_events: Integers,
    log_likelihood: Floats,
    n_types: int,
) -> None:
    probabilities = np.exp(np.minimum(log_filtered, 1.0))
    total = probabilities.sum(axis=1)
    agrees = (np.isnan(exact) | (np.abs(exact - probabilities) < ROUNDING)).all(axis=1)
    right = np.isneginf(log_likelihood) & (total == 0.0)
    right |= (
        np.isfinite(log_likelihood) & (np.abs(total - 1.0) < ROUNDING) & agrees & (exact >= 0.0).all(axis=1)
    )
    right |= np.isfinite(log_likelihood) & (np.abs(total - 1.0) < ROUNDING) & np.isnan(exact).all(axis=1)
    right &= n_events > 0
    right |= (n_events == 0) & (log_filtered == 0.0).all(axis=1) & (log_likelihood == 0.0)
    right &= (last >= 0) & (last <= n_types)
    if len(right) == 0 or not right.all():
        raise ValueError("the state has values out of range")


def _plain(value: float) -> float | None:
    """JSON has no minus infinity."""
    return None if value == -np.inf else float(value)


def _float(value: float | None) -> float:
    return -np.inf if value is None else float(value)


def _whole(values: Any) -> Integers:
    if not all(isinstance(value, int) for value in values):
        raise ValueError(f"{values!r} are not whole numbers")
    return np.array(values, dtype=np.int64)
