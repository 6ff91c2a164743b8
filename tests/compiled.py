"""Compile what many tests use before several processes run them, each of which would compile it for itself.

`python -m tests.compiled people` and `… models` are the halves, for two processes; without a name, both.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import warnings
from collections.abc import Callable

import numpy as np

from keydyn import POHMM, Sequences, fit_many
from keydyn.model.fit.many import FEW
from keydyn.service.serving import warm
from tests.fuzz.targets import makers
from tests.test_reference import check

# Their examples run what else is compiled: filters, forecasts, walks, and what is computed from scores.
EXAMPLES = (
    "keydyn.detectors.Detector",
    "keydyn.detectors.Markov",
    "keydyn.evaluation.continuous.continuous",
    "keydyn.figures.residuals_figure",
    "keydyn.keystrokes.quality_of",
    "keydyn.model.Criterion",
    "keydyn.model.GoodnessOfFit",
    "keydyn.model.NextEmission",
    "keydyn.model.OnlineBatch",
    "keydyn.model.OnlineFilter",
    "keydyn.model.POHMM",
)


EVENTS = [*"abcd"] * 5


def typing() -> Sequences:
    """A few values, one of which makes all densities underflow."""
    values = np.random.default_rng(0).lognormal(5.0, 0.4, (len(EVENTS), 2))
    values[3, 0] = 1e90
    return Sequences.from_arrays(values, EVENTS)


def people() -> None:
    """Take the ways of a request and of a population, and fit models side by side."""
    warm()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for emission in ("lognormal", "student"):
            fit_many(POHMM(max_iter=1, emission=emission), [typing()] * FEW)


def models() -> None:
    """Make models of all families and relatives, fit them in chunks and in logarithms, and run examples."""
    for maker in makers():
        maker()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in ({}, {"emission": "student"}, {"n_states": 3}):
            model = POHMM(max_iter=1, **kind).fit(typing())
            model.score_samples(typing())
            model.predict_proba(typing())
            model.partial_fit(typing())
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name in EXAMPLES:
            check(name)


PARTS: dict[str, Callable[[], None]] = {"people": people, "models": models}


if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
