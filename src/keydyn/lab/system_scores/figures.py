"""Figures of the scores of systems: DET, ROC, Tippett, prior-error (APE), performance (EPC), attacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from keydyn.arrays import Floats, Integers
from keydyn.evaluation.rates.chosen_elsewhere import WEIGHTS
from keydyn.evaluation.rates.detection_cost import rates_at
from keydyn.evaluation.rates.error_curve import common_grid
from keydyn.evaluation.rates.likelihood_ratios import reliability
from keydyn.evaluation.rates.system_figures import SystemFigures
from keydyn.figures.style import COLOURS, GREY, house_style
from keydyn.lab.drawing.curves import cmc_figure, det_figure, reliability_figure, roc_figure
from keydyn.lab.drawing.panels import (
    Curve,
    Panels,
    Pen,
    curves_figure,
    draw_curves,
    grid_of_panels,
    label_outer,
)

TEN = float(np.log(10.0))
# The number of points per line; more cannot be told apart in print.
POINTS = 600


@dataclass(frozen=True, eq=False)
class PriorErrors:
    """Error rates of Bayes decisions by prior log-odds (natural logarithms), (P,) each.

    `least` is the rate with the best thresholds, `known` with the prior alone, and `actual` with the ratios,
    or None if the scores are not ratios.
    """

    log_odds: Floats
    least: Floats
    known: Floats
    actual: Floats | None = None


def tippett_figure(systems: Mapping[str, tuple[Floats, Floats]], ratios: bool) -> Figure:
    """Plot the share of genuine and of impostor claims with at least each score, a panel per system.

    Genuine scores should be high and impostors' low, so that the lines stay apart. Ratios are in powers of
    ten; on the thin line they carry no evidence.
    """
    with house_style():
        figure, grid = grid_of_panels(list(systems), height=2.5, sharey=True)
        for axes, scores in zip(grid, systems.values(), strict=True):
            for values, colour, name, dash in zip(
                scores, COLOURS, ("genuine", "impostors"), ("solid", "dashed"), strict=False
            ):
                ordered = np.sort(values) / (TEN if ratios else 1.0)
                at = _some(len(ordered))
                share = 100.0 * (1.0 - at / len(ordered))
                axes.plot(ordered[at], share, color=colour, linestyle=dash, drawstyle="steps-pre", label=name)
            if ratios:
                axes.axvline(0.0, color=GREY, linewidth=0.6, zorder=1)
            axes.set(ylim=(0.0, 101.0))
        handles, names = grid[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2)
        label_outer(grid, "at least this log₁₀ ratio" if ratios else "at least this score", "claims (%)")
        return figure


def ape_figure(systems: Mapping[str, PriorErrors]) -> Figure:
    """Plot errors of Bayes decisions against the prior, a panel per system.

    The lower line shows the best thresholds, the upper one the prior alone. The line of the actual ratios
    should be near the lower line and never above the upper one.
    """
    names = ("prior alone", "scores as they are", "best thresholds")
    with house_style():
        figure, grid = grid_of_panels(list(systems), height=2.5, sharey=True, sharex=True)
        for axes, one in zip(grid, systems.values(), strict=True):
            odds = one.log_odds / TEN
            axes.plot(odds, 100 * one.known, color=GREY, linestyle="dotted", label=names[0])
            if one.actual is not None:
                axes.plot(odds, 100 * one.actual, color=COLOURS[1], label=names[1])
            axes.plot(odds, 100 * one.least, color=COLOURS[0], linestyle="dashed", label=names[2])
            highest = max(
                float(each.max()) for each in (one.least, one.least if one.actual is None else one.actual)
            )
            axes.set(xlim=(odds[0], odds[-1]), ylim=(0.0, min(52.0, max(1.0, 160.0 * highest))))
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
        label_outer(grid, "prior, log₁₀ odds of genuine", "error rate (%)")
        return figure


def epc_figure(panels: Panels) -> Figure:
    """Plot the half total error rate against the weight of false matches, at others' thresholds."""

    def draw(axes: Axes, curves: Mapping[str, Curve], pens: Mapping[str, Pen]) -> None:
        draw_curves(axes, curves, pens)
        axes.set(xlim=(0.0, 1.0))
        axes.set_ylim(bottom=0.0)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}"))

    labels = ("weight of false matches", "half total error rate (%)")
    return curves_figure(panels, labels, draw, height=2.7)


def attacks_figure(panels: Panels) -> Figure:
    """Plot the share of attacks accepted (IAPMR) against the false match rate, a panel per system.

    On the thin line, attacks are accepted as often as impostors who make no effort.
    """

    def draw(axes: Axes, curves: Mapping[str, Curve], pens: Mapping[str, Pen]) -> None:
        same = np.geomspace(1e-4, 1.0, 100)
        axes.plot(same, same, color=GREY, linewidth=0.5, zorder=1)
        draw_curves(axes, curves, pens)
        axes.set(xlim=(1e-4, 1.0), ylim=(0.0, 1.02), xscale="log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}"))

    labels = ("false match rate (%)", "attacks accepted, IAPMR (%)")
    return curves_figure(panels, labels, draw, height=2.7, sharex=True, sharey=True)


def _some(n: int) -> Integers:
    """Indices into n sorted values: both ends and evenly spaced ones in between."""
    return np.unique(np.linspace(0, n - 1, min(n, POINTS)).astype(np.int64))


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
    """Expected performance curves; None if there are too few people to choose thresholds."""
    curves = {}
    for name, figures in systems.items():
        found = figures.expected_performance
        if found is not None:
            curves[name] = Curve(WEIGHTS, found.hter, *found.band)
    return epc_figure({"": curves}) if curves else None


def cmc(systems: Systems) -> Figure | None:
    """CMC curves of the systems in which all samples were compared with all people."""
    curves = {}
    for name, figures in systems.items():
        if figures.identified is not None:
            ranks = figures.identified.to_frame()
            columns = (ranks[column].to_numpy(dtype=float) for column in ("rank", "rate", "low", "high"))
            curves[name] = Curve(*columns)
    return cmc_figure({"": curves}) if curves else None


def attacks(systems: Systems) -> Figure | None:
    """IAPMR against FMR, a panel per attacked system."""
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
    """FNMR at each FMR of a grid, as a step function: the lowest that a threshold reaches."""
    grid = common_grid()
    curve = figures.curve
    fnmr = curve.fnmr[np.searchsorted(curve.fmr, grid, side="right") - 1]
    if figures.drawn is None:
        return Curve(grid, fnmr)
    return Curve(grid, fnmr, *figures.drawn.band(grid))


def _upside_down(curve: Curve) -> Curve:
    low, high = (None if end is None else 1.0 - end for end in (curve.high, curve.low))
    return Curve(curve.x, 1.0 - curve.y, low, high)
