"""What is stored of a followed session so that it can be resumed: plain values that JSON can hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from keydyn.arrays import Floats, Integers, Truths
from keydyn.files import anything, many, record, whole
from keydyn.model.engine.online_step import EXTRA
from keydyn.model.watch.filter_bank import FilterBank

STATE_VERSION = 1
# Logarithms of probabilities that are also saved exactly agree with them to this.
ROUNDING = 1e-9


def to_plain(bank: FilterBank, fingerprint: str, rows: slice) -> dict[str, Any]:
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
        "log_filtered": plain_numbers(logs),
        "filtered": [None if log else row.tolist() for row, log in zip(kept, in_logs, strict=True)],
        "last": bank.last[rows].astype(np.int64).tolist(),
        "n_events": counts.astype(np.int64).tolist(),
        "log_likelihood": plain_numbers(bank.totals[rows]),
    }


def from_plain(state: dict[str, Any], fingerprint: str, n_states: int, n_types: int) -> Floats:
    """The filters of a saved state, (B, M + EXTRA); a `ValueError` says what does not fit."""
    try:
        # A state without `filtered` was saved before it was kept.
        values = FIELDS("", {"filtered": None, **state} if isinstance(state, dict) else state)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"this is not a saved state of a stream: {error}") from None
    if values["version"] != STATE_VERSION:
        raise ValueError(f"the state has version {values['version']!r}; this reads {STATE_VERSION}")
    if values["model"] != fingerprint:
        raise ValueError("the state belongs to another model")
    log_filtered, log_likelihood = values["log_filtered"], values["log_likelihood"]
    last, n_events = values["last"], values["n_events"]
    n = len(n_events)
    exact = _exact(values["filtered"], n, n_states)
    if log_filtered.shape != (n, n_states) or not last.shape == log_likelihood.shape == (n,) or n == 0:
        raise ValueError("the state's parts have different lengths")
    probabilities = np.exp(np.minimum(log_filtered, 1.0))
    held = np.isneginf(log_likelihood) | (n_events == 0) | np.isnan(exact).all(axis=1)
    held |= ((np.abs(exact - probabilities) < ROUNDING) & (exact >= 0.0)).all(axis=1)
    right = consistent(log_filtered, log_likelihood, n_events) & held & (last >= 0) & (last <= n_types)
    if not right.all():
        raise ValueError("the state has values out of range")
    filters = np.zeros((n, n_states + EXTRA))
    begun = n_events > 0
    # Only what can be held without logarithms was saved exactly; an impossible stream has nothing to hold.
    in_logs = begun & (np.isnan(exact).any(axis=1) | np.isneginf(log_likelihood))
    filters[:, :n_states] = np.where(in_logs[:, None], log_filtered, np.where(begun[:, None], exact, 0.0))
    filters[:, n_states:] = np.stack([in_logs, last, n_events, log_likelihood], axis=1)
    return filters


def consistent(log_filtered: Floats, log_likelihood: Floats, n_events: Integers) -> Truths:
    """(B,) whether the states of a stream have probabilities, unless it is impossible or has not begun."""
    total = np.exp(np.minimum(log_filtered, 1.0)).sum(axis=1)
    possible = np.isfinite(log_likelihood) & (np.abs(total - 1.0) < ROUNDING)
    impossible = np.isneginf(log_likelihood) & (total == 0.0)
    fresh = (n_events == 0) & (log_filtered == 0.0).all(axis=1) & (log_likelihood == 0.0)
    found: Truths = ((n_events > 0) & (possible | impossible)) | fresh
    return found


def plain_numbers(values: Floats) -> Any:
    """Nested lists; JSON has no minus infinity, so it is null."""
    plain = values.astype(object)
    plain[~np.isfinite(values)] = None
    return plain.tolist()


def logarithms(name: str, nested: Any) -> Floats:
    """A field of logarithms in lists; null stands for minus infinity."""
    array = np.array(nested, dtype=object)
    return np.where(array == None, -np.inf, array).astype(np.float64)  # noqa: E711


def wholes(name: str, values: Any) -> Integers:
    """A field with a list of whole numbers."""
    return np.array(many(whole())(name, values), dtype=np.int64)


def _exact(rows: Any, n: int, n_states: int) -> Floats:
    """(B, M) the probabilities that were saved exactly, NaN where only logarithms were."""
    try:
        listed = [None] * n if rows is None else list(rows)
        exact = np.array([[np.nan] * n_states if row is None else [float(v) for v in row] for row in listed])
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"this is not a saved state of a stream: filtered: {error}") from None
    if exact.shape != (n, n_states):
        raise ValueError("the state's parts have different lengths")
    return exact


FIELDS = record(
    {
        "version": anything,
        "model": anything,
        "log_filtered": logarithms,
        "filtered": anything,
        "last": wholes,
        "n_events": wholes,
        "log_likelihood": logarithms,
    }
)
