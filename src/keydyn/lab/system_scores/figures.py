"""Curves of systems for the figures of a report."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from keydyn.arrays import Floats
from keydyn.evaluation.rates.chosen_elsewhere import WEIGHTS
from keydyn.evaluation.rates.detection_cost import rates_at
from keydyn.evaluation.rates.error_curve import common_grid
from keydyn.evaluation.rates.likelihood_ratios import reliability
from keydyn.evaluation.rates.system_figures import SystemFigures
from keydyn.lab.drawing.curves import cmc_figure, det_figure, reliability_figure, roc_figure
from keydyn.lab.drawing.panels import Curve
from keydyn.lab.drawing.score_plots import (
    PriorErrors,
    ape_figure,
    attacks_figure,
    epc_figure,
    tippett_figure,
)

Systems = Mapping[str, SystemFigures]
# Prior log-odds of the APE, natural logarithms: a thousand to one either way.
LOG_ODDS: Floats = np.log(10.0) * np.linspace(-3.0, 3.0, 121)


def det(systems: Systems) -> Figure:
    """DET curves with bands over people."""
    return det_figure({"": {name: _curve(figures) for name, figures in systems.items()}})


def roc(systems: Systems) -> Figure:
    """ROC curves with bands over people."""
    return roc_figure({"": {name: _upside_down(_curve(figures)) for name, figures in systems.items()}})


def tippett(systems: Systems) -> Figure:
    """Tippett plots."""
    ratios = next(iter(systems.values())).ratios
    return tippett_figure({name: figures.claims.scores for name, figures in systems.items()}, ratios)


def calibration(systems: Systems) -> Figure:
    """Reliability diagrams of likelihood ratios."""
    return reliability_figure({name: reliability(*one.claims.scores) for name, one in systems.items()})


def prior_errors(figures: SystemFigures) -> PriorErrors:
    """Errors of Bayes decisions at each of `LOG_ODDS`."""
    prior = 1.0 / (1.0 + np.exp(-LOG_ODDS))
    hull = figures.curve.hull
    errors = prior[:, None] * hull.fnmr + (1.0 - prior[:, None]) * hull.fmr
    actual = None
    if figures.ratios:
        genuine, impostor = figures.claims.scores
        rates = [rates_at(genuine, impostor, -float(odds)) for odds in LOG_ODDS]
        actual = np.array([p * fnmr + (1.0 - p) * fmr for p, (fmr, fnmr) in zip(prior, rates, strict=True)])
    return PriorErrors(LOG_ODDS, errors.min(axis=1), np.minimum(prior, 1.0 - prior), actual)


def ape(systems: Systems) -> Figure:
    """Prior-error plots."""
    return ape_figure({name: prior_errors(figures) for name, figures in systems.items()})


def epc(systems: Systems) -> Figure | None:
    """Expected performance curves; None where there are too few people to choose thresholds."""
    curves = {}
    for name, figures in systems.items():
        found = figures.expected_performance
        if found is not None:
            curves[name] = Curve(WEIGHTS, found.hter, *found.band)
    return epc_figure({"": curves}) if curves else None


def cmc(systems: Systems) -> Figure | None:
    """CMC curves of systems whose samples were all compared with all people."""
    curves = {}
    for name, figures in systems.items():
        if figures.identified is not None:
            ranks = figures.identified.to_frame()
            columns = (ranks[column].to_numpy(dtype=float) for column in ("rank", "rate", "low", "high"))
            curves[name] = Curve(*columns)
    return cmc_figure({"": curves}) if curves else None


def attacks(systems: Systems) -> Figure | None:
    """IAPMR against FMR, a panel per system that was attacked."""
    panels = {}
    for name, figures in systems.items():
        claims = figures.claims
        curves = {}
        for place, kind in enumerate(claims.attacks):
            tried = np.sort(claims.score[np.asarray(claims.attack) == place])
            accepted = 1.0 - np.searchsorted(tried, figures.curve.thresholds) / len(tried)
            curves[kind] = Curve(figures.curve.fmr, accepted)
        if curves:
            panels[name] = curves
    return attacks_figure(panels) if panels else None


def _curve(figures: SystemFigures) -> Curve:
    """FNMR at each FMR of a grid, as steps are: the lowest that a threshold reaches."""
    grid = common_grid()
    curve = figures.curve
    fnmr = curve.fnmr[np.searchsorted(curve.fmr, grid, side="right") - 1]
    if figures.drawn is None:
        return Curve(grid, fnmr)
    return Curve(grid, fnmr, *figures.drawn.band(grid))


def _upside_down(curve: Curve) -> Curve:
    low, high = (None if end is None else 1.0 - end for end in (curve.high, curve.low))
    return Curve(curve.x, 1.0 - curve.y, low, high)
