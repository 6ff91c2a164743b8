"""Writes tables, figures, the report and the page of results of the transfer study from its scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from keydyn.figures.style import GREY, label_log_axis
from keydyn.lab.drawing.panels import Curve, Panels, Pen, curves_figure, draw_curves
from keydyn.lab.frame.names import dataset_name, listed, of_all, percent
from keydyn.lab.frame.outputs import SCORES, Outputs, read_frames, read_table
from keydyn.lab.frame.report import Section
from keydyn.lab.frame.study import Facts, ResultsPage, Values
from keydyn.lab.frame.tables import Table, with_interval
from keydyn.lab.transfer.claims import COUNTED, LEFT_OUT, TRUE, Pairs, rates_frame
from keydyn.lab.transfer.disturbed import disturbed_frame
from keydyn.lab.transfer.measurements import CLAIMS, DISTURBED, REPEATS, SHIPPED, WATCHING, Measured
from keydyn.lab.transfer.places import FIXED, Place
from keydyn.lab.transfer.tables import (
    OPEN_SET,
    disturbed_table,
    headline_table,
    transfer_table,
    watching_table,
)
from keydyn.lab.transfer.watching import watching_figures

LEAD = (
    "Population, cohort and calibration are learnt in one place, and everything is tested in another: other "
    "people, other keyboards, other loggers. Samples of Fable and Essay are cut into pieces of 50 keys; "
    "those of Aalto are sentences. The first samples of each person enrol, and five later ones, or as many "
    "as there are, are claimed to be from everyone who is tested."
)
NOTE = (
    f"{OPEN_SET} Strangers: share of strangers' claims accepted at each stated false-match rate, "
    "with its 95 % interval over people; bold where that includes the stated rate. Genuine: share of "
    "genuine samples accepted at the stated rate, and where the threshold is the one at which that share of "
    "these strangers is accepted. EER: equal error rate with one threshold for all, and the mean of those "
    "with a threshold per person. Cllr: cost of the likelihood ratios in bits, and the least that these "
    "scores allow."
)
FIXED_NOTE = (
    f"{NOTE} Keypad and Mobile are the same number; the keys of one are given the names that they have in "
    "the other, position by position. Of Password, another text, only the calibration is used, together "
    "with a population and a cohort of other people of the place."
)


def facts_of(places: Sequence[Place], seed: int) -> Facts:
    """Describe for run.json the people learnt from and the people tested."""
    return {
        "seed": seed,
        "data": {place.name: place.checksums for place in places},
        "people": {
            place.name: {"learnt": place.learnt["user"].nunique(), "tried": place.tried["user"].nunique()}
            for place in places
        },
    }


def write(outputs: Outputs, measured: Measured, facts: Mapping[str, Any]) -> list[Table]:
    """Write tables, figures and the report; returns the tables for the terminal."""
    seed = int(facts.get("seed", 0))
    claims = measured[CLAIMS]
    outputs.scores(pa.Table.from_pandas(claims, preserve_index=False))
    outputs.frames(**{name: frame for name, frame in measured.items() if name != CLAIMS})
    frame = rates_frame(claims, pairs_of(measured), seed)
    on_fixed = frame["dataset_to"].isin(FIXED)
    tables, sections = [], []
    titles = {False: "Free texts: learnt in one place, tested in another", True: "Fixed texts"}
    for fixed, title in titles.items():
        rows = frame[on_fixed == fixed].reset_index(drop=True)
        if len(rows):
            name, note = ("fixed_texts", FIXED_NOTE) if fixed else ("transfer", NOTE)
            if not fixed:
                tables.append(headline_table(at_the_true_rate(rows)))
            tables.append(transfer_table(rows, name, title, note))
    counted = frame[frame["repeats"] == COUNTED]
    figures = [
        outputs.figure(
            stated_figure(counted),
            "stated",
            FIGURES["stated"],
            "Strangers accepted against the stated rate, by place",
        ),
        outputs.figure(
            genuine_figure(counted),
            "genuine",
            FIGURES["genuine"],
            "Genuine samples accepted by samples enrolled",
        ),
    ]
    sections.append(Section("Stated and found", (), list(tables), figures))
    if DISTURBED in measured:
        found = disturbed_frame(measured[DISTURBED], seed)
        tables.append(disturbed_table(found))
        sections.append(Section("Disturbed keys", (), tables[-1:]))
    if WATCHING in measured:
        tables.append(watching_table(watching_frame(measured[WATCHING], seed)))
        sections.append(Section("Watching", (), tables[-1:]))
    outputs.report("Error rates away from home", [LEAD], sections, facts)
    return tables


def read(folder: Path) -> Measured:
    """Read all results that a run kept in its folder."""
    claims = read_table(folder / SCORES, ("dataset_from", "rate")).to_pandas()
    return {CLAIMS: claims, **read_frames(folder, (WATCHING, DISTURBED, REPEATS))}


def pairs_of(measured: Measured) -> dict[str, Pairs]:
    """The likely repeats of each place, as numbers of people."""
    if REPEATS not in measured:
        return {}
    return {
        str(place): list(zip(rows["one"].tolist(), rows["other"].tolist(), strict=True))
        for place, rows in measured[REPEATS].groupby("dataset", observed=True)
    }


def watching_frame(sessions: pd.DataFrame, seed: int) -> pd.DataFrame:
    """A row per place learnt from, place watched and stated rate."""
    keys = ["dataset_from", "dataset_to", "per_hour"]
    return pd.DataFrame(
        [
            dict(zip(keys, key, strict=True)) | watching_figures(rows, seed)
            for key, rows in sessions.groupby(keys, sort=False, observed=True)
        ]
    )


def answer(values: Values) -> str:
    """Whether stated rates hold with the shipped background, and between all places."""
    best = at_the_true_rate(values["transfer"])
    stated = percent(float(best["stated"].iloc[0]))
    words = [
        f"With what comes with keydyn, where {stated} is stated, {_by_amount(rows, 'strangers')} of "
        f"strangers and {_by_amount(rows, 'genuine_stated')} of genuine samples are accepted on "
        f"{dataset_name(target)}"
        for target, rows in best[best["dataset_from"] == SHIPPED].groupby("dataset_to", sort=False)
    ]
    lowest, highest = (best.iloc[int(n)] for n in (best["strangers"].argmin(), best["strangers"].argmax()))
    holds = (best["strangers_low"] <= best["stated"]) & (best["strangers_high"] >= best["stated"])
    words.append(
        f"Over all places learnt from and tested on, {_found(lowest)} to {_found(highest)} of strangers are "
        f"accepted where {stated} is stated; the interval over people includes it in "
        f"{of_all(int(holds.sum()), len(best), 'case')}"
    )
    return " ".join(f"{one}." for one in words)


def at_the_true_rate(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per case, at the stated rate nearest to `TRUE`; without likely repeats where they are known."""
    stated = frame["stated"].iloc[int((frame["stated"] - TRUE).abs().argmin())]
    return _preferred(frame[frame["stated"] == stated], LEFT_OUT)


def _by_amount(rows: pd.DataFrame, column: str) -> str:
    """The figure for each number of samples enrolled."""
    figures = [f"{percent(row[column])} ({_samples(row['enrolled'])})" for row in rows.to_dict("records")]
    return listed(figures)


def _preferred(frame: pd.DataFrame, repeats: str) -> pd.DataFrame:
    """One row per case: without repeats where there are such figures."""
    key = ["dataset_from", "dataset_to", "enrolled"]
    ordered = frame.assign(last=frame["repeats"] == repeats).sort_values("last", kind="stable")
    return ordered.drop_duplicates(key, keep="last").sort_index()


def _found(row: Mapping[Any, Any] | pd.Series) -> str:
    return (
        f"{percent(row['strangers'])} ({dataset_name(row['dataset_from'])} to "
        f"{dataset_name(row['dataset_to'])}, {_samples(row['enrolled'])})"
    )


def _samples(count: int) -> str:
    return f"{count} sample{'' if count == 1 else 's'}"


FIGURES = {
    "stated": "Strangers accepted against the stated false-match rate, five samples enrolled: a panel per "
    "place tested on, a line per place learnt from, with 95 % intervals over people; on the thin line, "
    "stated rates hold.",
    "genuine": "Genuine samples accepted where 1 % of strangers are, by the number of samples enrolled.",
}
PAGE = ResultsPage(
    "Error rates away from home",
    "Do stated error rates hold for people, keyboards and places that nothing was learnt from?",
    answer,
    ("transfer",),
    {
        "headline": "Each line is a place learnt from and a place tested on; 1 % of strangers should be "
        "accepted, whatever was enrolled, and as many genuine samples as possible.",
        "transfer": "Each line is a place learnt from, a place tested on, and a number of samples enrolled; "
        "strangers should be accepted at the rate that heads the column.",
        "fixed_texts": "The same for short fixed texts.",
        "disturbed": "Each line is a fault in the recording of some keys, and its cost for genuine people.",
        "watching": "Each line is a place learnt from and a place watched; lock-outs should be as frequent "
        "as stated, and impostors should be noticed soon.",
    },
    FIGURES,
)


# The amount of which stated rates are drawn, and the lowest share that has a place.
ENROLLED, LEAST = 5, 1e-4


def stated_figure(frame: pd.DataFrame) -> Figure:
    """A panel per place tested on, a line per place learnt from; on the thin line, stated rates hold."""
    stated = [100 * one for one in sorted(frame["stated"].unique())]

    def draw(axes: Axes, curves: Mapping[str, Curve], pens: Mapping[str, Pen]) -> None:
        ends = [stated[0], stated[-1]]
        axes.plot(ends, ends, color=GREY, linewidth=0.7, zorder=1)
        draw_curves(axes, curves, pens, 4)
        axes.set(xscale="log", yscale="log")
        label_log_axis(axes.yaxis, wide=True)
        axes.set_xticks(stated, [f"{one:g}" for one in stated])
        axes.xaxis.set_minor_locator(NullLocator())

    labels = ("stated false-match rate (%)", "strangers accepted (%)")
    return curves_figure(
        stated_panels(frame), labels, draw, markers=True, height=2.7, sharex=True, sharey=True
    )


def stated_panels(frame: pd.DataFrame) -> Panels:
    """Place tested on → place learnt from → strangers accepted by stated rate, in per cent, five enrolled."""
    panels: dict[str, dict[str, Curve]] = {}
    some = frame[frame["enrolled"] == ENROLLED]
    for (target, source), rows in some.groupby(["dataset_to", "dataset_from"], sort=False, observed=True):
        columns = [rows[name].to_numpy(dtype=np.float64) for name in ("stated", *with_interval("strangers"))]
        percent = [100 * np.maximum(column, LEAST) for column in columns]
        panels.setdefault(str(target), {})[dataset_name(source)] = Curve(*percent)
    return panels


def genuine_figure(frame: pd.DataFrame) -> Figure:
    """Genuine samples accepted at the true rate, by samples enrolled; a panel per place tested on."""
    amounts = sorted(frame["enrolled"].unique())

    def draw(axes: Axes, curves: Mapping[str, Curve], pens: Mapping[str, Pen]) -> None:
        draw_curves(axes, curves, pens, 4)
        axes.set(xscale="log", ylim=(0.0, 100.0))
        axes.set_xticks(amounts, [f"{amount:g}" for amount in amounts])
        axes.xaxis.set_minor_locator(NullLocator())

    labels = ("samples enrolled", "genuine accepted (%)")
    return curves_figure(genuine_panels(frame), labels, draw, markers=True, sharex=True, sharey=True)


def genuine_panels(frame: pd.DataFrame) -> Panels:
    """Place tested on → place learnt from → genuine samples accepted by samples enrolled, in per cent."""
    panels: dict[str, dict[str, Curve]] = {}
    some = frame[frame["stated"] == frame["stated"].max()]
    for (target, source), rows in some.groupby(["dataset_to", "dataset_from"], sort=False, observed=True):
        x, y = (rows[name].to_numpy(dtype=np.float64) for name in ("enrolled", "genuine_true"))
        panels.setdefault(str(target), {})[dataset_name(source)] = Curve(x, 100 * y)
    return panels
