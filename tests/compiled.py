"""Compile what many tests use: `python -m tests.compiled`, before several processes run them."""

from __future__ import annotations

import contextlib
import tempfile

from keydyn.service.serving import warm
from tests.fuzz.targets import makers
from tests.test_reference import check

# Their examples run what else is compiled: filters, forecasts, walks, and what is computed from scores.
EXAMPLES = (
    "keydyn.detectors.Detector",
    "keydyn.detectors.Markov",
    "keydyn.evaluation.PenaltyAndReward",
    "keydyn.evaluation.continuous.continuous",
    "keydyn.evaluation.rank_penalty",
    "keydyn.figures.residuals_figure",
    "keydyn.keystrokes.quality_of",
    "keydyn.model.Bootstrap",
    "keydyn.model.Criterion",
    "keydyn.model.GoodnessOfFit",
    "keydyn.model.NextEmission",
    "keydyn.model.OnlineBatch",
    "keydyn.model.OnlineFilters",
    "keydyn.model.POHMM",
)


def main() -> None:
    """Take the ways of a request, make models of all families and relatives, and run some examples."""
    warm()
    for maker in makers():
        maker()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name in EXAMPLES:
            check(name)


if __name__ == "__main__":
    main()
