"""Verification of claimed identities: error rates from the scores of a protocol.

There are two kinds of figure, with different names. With *own thresholds* each user's rates are taken at a
threshold of that user's own, then averaged over users; the published equal error rates are of this kind.
With *one threshold* all users' trials are pooled and share a threshold, as in a system that cannot tune it
for each user.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from keydyn.arrays import Floats
from keydyn.evaluation.rates.confidence import (
    REPLICATES,
    Rate,
    bootstrap_mean,
    interval,
    mean_rate,
    trials_needed,
    unsupported,
)
from keydyn.evaluation.rates.error_curve import ErrorCurve, common_grid, crossing, curves_on, equal_error_rate
from keydyn.evaluation.rates.identification import identification
from keydyn.evaluation.rates.replicates import Replicates, replicated_curves
from keydyn.evaluation.scores import Scores
from keydyn.short_repr import short_repr

OWN, ONE = "own thresholds", "one threshold"
FMR_TARGETS = {
    "fnmr_at_fmr_10": 0.1,
    "fnmr_at_fmr_1": 0.01,
    "fnmr_at_fmr_0.1": 0.001,
    "fnmr_at_fmr_0.01": 0.0001,
}
#: Titles of the figures for reports, by the names that programs use.
TITLES = {
    "eer": "equal error rate",
    **{name: f"FNMR at FMR {100 * target:g} %" for name, target in FMR_TARGETS.items()},
    "zero_miss": "FNMR at FMR 0 (zero-miss)",
    "zero_rejection": "FMR at FNMR 0",
}


@dataclass(frozen=True, eq=False)
class Verification:
    """Error rates of a detector under a protocol.

    Attributes
    ----------
    per_user : one row per user: genuine and impostor trials, and each figure at a threshold of the user's own
    own : each figure as a mean over users, each at a threshold of their own
    one : each figure of all trials together, at one threshold for all users
    curves : the error curve of each user in `per_user`; pooled : the curve of all trials together
    open_set : whether the impostor was left out of the cohort that normalises the score
    left_out : users without a genuine or without an impostor trial

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.evaluation import LeaveOneOut, score_protocol, verification
    >>> from keydyn.keystrokes import Samples
    >>> scores = score_protocol(LeaveOneOut(), "manhattan", Samples.of(make_typists(4, 6)))
    >>> found = verification(scores)
    >>> found.per_user.shape[0], len(found.curves), found.left_out
    (4, 4, ())
    >>> found.to_frame().columns.tolist()
    ['thresholds', 'figure', 'value', 'std', 'low', 'high', 'trials', 'needed', 'text']
    """

    per_user: pd.DataFrame
    own: dict[str, Rate]
    one: dict[str, Rate]
    curves: list[ErrorCurve]
    pooled: ErrorCurve
    open_set: bool
    left_out: tuple[object, ...]

    __repr__ = short_repr

    def to_frame(self) -> pd.DataFrame:
        """One row per figure: thresholds, figure, value, std, low, high, trials, needed, text."""
        rows = [
            (kind, name, rate.value, rate.std, rate.low, rate.high, rate.trials, rate.needed, rate.text())
            for kind, rates in ((OWN, self.own), (ONE, self.one))
            for name, rate in rates.items()
        ]
        columns = ["thresholds", "figure", "value", "std", "low", "high", "trials", "needed", "text"]
        frame = pd.DataFrame(rows, columns=columns)
        numbers = ["value", "std", "low", "high"]
        return frame.astype(dict.fromkeys(numbers, np.float64))


def verification(
    scores: Scores, open_set: bool = False, replicates: int = REPLICATES, seed: int = 0
) -> Verification:
    """Compute all verification figures of these scores, with 95 % intervals by bootstrap over users.

    `open_set` normalises the scores as if the impostor were unknown to the system.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.evaluation import LeaveOneOut, score_protocol, verification
    >>> from keydyn.keystrokes import Samples
    >>> scores = score_protocol(LeaveOneOut(), "manhattan", Samples.of(make_typists(4, 6)))
    >>> found = verification(scores, open_set=True)
    >>> found.open_set, found.own["eer"].trials
    (True, 24)
    """
    if open_set and not scores.has_open_set:
        raise ValueError(
            "without the impostor's own template a single one is left, and scores cannot be scaled over it: "
            "an open set needs three users or more"
        )
    values, own_template = scores.open_set if open_set else scores.normalised, scores.own
    is_genuine, is_impostor = scores.trials & own_template, scores.trials & ~own_template
    tried = is_genuine.any(axis=0) & is_impostor.any(axis=0)
    if not tried.any():
        raise ValueError("no user has both genuine and impostor trials; verification needs two users or more")
    genuine, impostor = (
        [np.sort(values[trial[:, u], u]) for u in np.flatnonzero(tried)]
        for trial in (is_genuine, is_impostor)
    )
    curves = [ErrorCurve.of(g, i) for g, i in zip(genuine, impostor, strict=True)]
    table = pd.DataFrame([_figures(curve) for curve in curves], columns=list(TITLES))
    table.insert(0, "user", scores.users[tried])
    table.insert(1, "genuine", [len(g) for g in genuine])
    table.insert(2, "impostor", [len(i) for i in impostor])
    pooled = ErrorCurve.of(np.concatenate(genuine), np.concatenate(impostor))
    # Samples typed by an impostor, each counted once, even if compared with several templates.
    strangers = int(is_impostor[:, tried].any(axis=1).sum())
    drawn = replicated_curves(genuine, impostor, replicates, seed) if len(genuine) > 1 else None
    return Verification(
        table.set_index("user"),
        _own_thresholds(table, replicates, seed),
        pooled_rates(pooled, drawn, sum(map(len, genuine)), strangers),
        curves,
        pooled,
        open_set,
        tuple(scores.users[~tried].tolist()),
    )


@dataclass(frozen=True, eq=False)
class MeanCurve:
    """The mean of the users' error curves at the same FMR, with a 95 % band over users, (G,) each."""

    fmr: Floats
    fnmr: Floats
    low: Floats
    high: Floats

    __repr__ = short_repr


def mean_curve(curves: list[ErrorCurve]) -> MeanCurve:
    """The mean ROC of users, each with their own thresholds; with one user the band has no width.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.evaluation import LeaveOneOut, mean_curve, score_protocol, verification
    >>> from keydyn.keystrokes import Samples
    >>> scores = score_protocol(LeaveOneOut(), "manhattan", Samples.of(make_typists(4, 6)))
    >>> curve = mean_curve(verification(scores).curves)
    >>> bool((curve.low <= curve.fnmr).all() and (curve.fnmr <= curve.high).all())
    True
    """
    places = common_grid()
    fnmr = curves_on(curves, places)
    return MeanCurve(places, fnmr.mean(axis=0), *bootstrap_mean(fnmr))


def _figures(curve: ErrorCurve) -> list[float]:
    """The figures of one curve, in the order of `TITLES`."""
    at_targets = [curve.fnmr_at_fmr(target) for target in FMR_TARGETS.values()]
    return [curve.eer, *at_targets, curve.fnmr_at_fmr(0.0), curve.fmr_at_fnmr(0.0)]


def _own_thresholds(table: pd.DataFrame, replicates: int, seed: int) -> dict[str, Rate]:
    """Means over users; every user's own impostor trials must be enough to support the figure."""
    impostors = int(table["impostor"].min())
    rates = {}
    for name in TITLES:
        needed = trials_needed(FMR_TARGETS[name]) if name in FMR_TARGETS else 0
        counted = impostors if name == "zero_rejection" else table["genuine"].sum()
        values = table[name].to_numpy(dtype=np.float64)
        rate = mean_rate(values, int(counted), replicates, seed)
        rates[name] = rate if impostors >= needed else unsupported(impostors, needed)
    return rates


def pooled_rates(
    pooled: ErrorCurve, curves: Replicates | None, genuine: int, strangers: int
) -> dict[str, Rate]:
    """The figures of the pooled curve, given the numbers of genuine and impostor trials.

    Each replicate pools the trials of the users drawn; without replicates there are no intervals.
    """
    ends = None if curves is None else np.stack(interval(replicated_figures(curves)), axis=1)
    rates = {}
    for f, (name, value) in enumerate(zip(TITLES, _figures(pooled), strict=True)):
        needed = trials_needed(FMR_TARGETS[name]) if name in FMR_TARGETS else 0
        counted = strangers if name == "zero_rejection" else genuine
        low, high = (None, None) if ends is None else (float(end) for end in ends[f])
        rates[name] = (
            unsupported(strangers, needed) if strangers < needed else Rate(value, low, high, counted)
        )
    return rates


def replicated_figures(curves: Replicates) -> Floats:
    """The pooled figures of each replicate, (R, figures), in the order of `TITLES`."""
    at_targets = [curves.fnmr_at_fmr(target) for target in (*FMR_TARGETS.values(), 0.0)]
    return np.stack([crossing(curves.fmr, curves.fnmr), *at_targets, curves.fmr_at_fnmr(0.0)], axis=1)


def recognition(scores: Scores) -> pd.DataFrame:
    """The accuracy of each user, and their equal error rate with three normalisations.

    `eer` is computed from all trials against the user's template, normalised as the protocol requires.
    `eer_open` leaves an impostor's own template out of the cohort; it is NaN if a single template is left,
    over which scores cannot be scaled. `eer_raw` is that of the raw scores.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.evaluation import LeaveOneOut, recognition, score_protocol
    >>> from keydyn.keystrokes import Samples
    >>> scores = score_protocol(LeaveOneOut(), "manhattan", Samples.of(make_typists(4, 6)))
    >>> table = recognition(scores)
    >>> table.shape[0], table.columns.tolist()
    (4, ['acc', 'eer', 'eer_open', 'eer_raw'])
    """
    users = identification(scores, replicates=1).per_user[["acc"]].copy()
    normalisations = {"eer": scores.normalised, "eer_open": scores.open_set, "eer_raw": scores.raw}
    for name, values in normalisations.items():
        if name == "eer_open" and not scores.has_open_set:
            users[name] = np.nan
            continue
        users[name] = [
            equal_error_rate(*scores.trials_of(u, values))
            for u, user in enumerate(scores.users.tolist())
            if user in users.index
        ]
    return users
