"""Runs and reports the study of the test of fit: its size under right models, and its power."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from keydyn.figures.style import COLOURS, GREY, drawing
from keydyn.lab.calibration.measurements import (
    FOR_POWER,
    TRUE,
    WRONG,
    calibration_calls,
    calibration_table,
    power_table,
    share_interval,
)
from keydyn.lab.frame.names import dataset_name, detector_name, listed, percent
from keydyn.lab.frame.outputs import Outputs
from keydyn.lab.frame.report import Section
from keydyn.lab.frame.resuming import Parts, frame_of, run_pieces, text_piece
from keydyn.lab.frame.study import ResultsPage, Values
from keydyn.lab.frame.study_data import MODELS, LongText, recorded_settings
from keydyn.lab.frame.tables import Table, plain_table
from keydyn.lab.goodness_of_fit.measurements import LEVEL, SurrogateTest
from keydyn.lab.goodness_of_fit.report import draw_cumulative

P_NAMES = {"p_value": "two-sided", "p_one_sided": "one-sided", "p_double": "double bootstrap"}
LEAD = (
    "Data are drawn from models that were fitted to each user with the recommended settings, along the "
    "user's own keys, so that the truth is known and resembles typing. Fable gives short samples, Essay long "
    "ones. Then the test is applied to the true model, whose p-values should be uniform, and to wrong ones, "
    "which should be rejected."
)


def calibrate(texts: Sequence[LongText], settings: Mapping[str, Any], parts: Parts) -> pd.DataFrame:
    """Run tests on data from fitted models: with true hypotheses, several per user, then with wrong ones.

    `settings` are those of the test as in run.json: seed, surrogates, second and repeats.
    """
    seed, repeats = settings["seed"], settings["repeats"]
    numbers = {"n_surrogates": settings["surrogates"], "n_second": settings["second"], "repeats": repeats}
    true = SurrogateTest(settings["surrogates"], settings["second"], seed=seed)
    wrong = SurrogateTest(FOR_POWER, seed=seed)
    against = {"wrong": list(WRONG), "surrogates": FOR_POWER}
    pieces = []
    for text, model in product(texts, MODELS):
        typed, recorded = (text.keystrokes, text.name), recorded_settings(model, "recommended")
        calls = calibration_calls(*typed, TRUE, true, (model,), repeats)
        name = f"{text.name}-{model}"
        pieces.append(text_piece(f"true-{name}", text, calls, seed=seed, model=recorded, **numbers))
        calls = calibration_calls(*typed, WRONG, wrong, (model,))
        pieces.append(text_piece(f"wrong-{name}", text, calls, seed=seed, model=recorded, **against))
    return frame_of(run_pieces(pieces, parts), pieces)


def write(outputs: Outputs, tests: pd.DataFrame, facts: Mapping[str, Any]) -> list[Table]:
    """Write tables, figures and the report; returns the tables for the terminal."""
    outputs.frames(tests=tests)
    right = tests["hypothesis"] == "true"
    size, power = calibration_table(tests[right]), power_table(tests[~right])
    tables = [
        plain_table(
            "calibration",
            "Is p uniform if the model is right?",
            "Size: share of p-values of at most 0.05, with its 95 % interval (Clopper and Pearson). "
            "Distance: Kolmogorov and Smirnov's from the uniform distribution; by chance alone it exceeds "
            "the value in the next column in one case of twenty.",
            size.assign(p=size["p"].map(P_NAMES)),
            labels=3,
        ),
        plain_table(
            "power",
            "How often is a wrong model rejected?",
            f"Shares rejected at 0.05 with {FOR_POWER} surrogates, and the 95 % interval of the one-sided "
            "share. Missed: the share of wrong models that pass the one-sided test. The data have two states "
            "with heavy tails (log-t). Areas are over ln x, for the normal distribution over x.",
            power,
            labels=3,
        ),
    ]
    figures = [
        outputs.drawn(
            partial(draw_calibration, tests[right]),
            "calibration",
            "p-values where the model is right, cumulative; a test that is calibrated stays in the grey band "
            "in 95 % of cases.",
            "Cumulative p-values by dataset and model with a diagonal.",
        ),
        outputs.drawn(
            partial(draw_power, power),
            "power",
            "Share of wrong models that are rejected, with 95 % intervals.",
            "Bars by dataset, model and wrong hypothesis.",
        ),
    ]
    words = outputs.words([*size_words(size), pooled_words(size), power_words(power)])
    sections = [Section("Size and power", words, tables, figures)]
    outputs.report("How far the test can be trusted", [LEAD], sections, facts)
    return tables


def size_words(table: pd.DataFrame) -> list[str]:
    """A sentence per model that says whether its p-values have the right size and are uniform."""
    lines = []
    for (dataset, model), model_rows in table.groupby(["dataset", "model"], sort=False):
        judgements = []
        for row in model_rows.to_dict("records"):
            holds = row["size_low"] <= LEVEL <= row["size_high"]
            even = row["ks_distance"] <= row["ks_by_chance"]
            verdict = {
                (True, True): "is calibrated as far as can be seen",
                (True, False): "has the right size, but its p-values are not uniform",
                (False, True): "does not have the right size",
                (False, False): "is not calibrated",
            }[holds, even]
            judgements.append(f"the {P_NAMES[row['p']]} test {verdict}")
        lines.append(f"{dataset_name(dataset)}, {detector_name(model)}: {'; '.join(judgements)}.")
    return lines


def pooled_words(table: pd.DataFrame) -> str:
    """The size of each kind of p-value over all models and datasets, with a narrower interval."""
    shares = []
    for kind, kind_rows in table.groupby("p", sort=False):
        rejected = int((kind_rows["size"] * kind_rows["tests"]).round().sum())
        tests = int(kind_rows["tests"].sum())
        low, high = share_interval(rejected, tests)
        side = "too often" if low > LEVEL else "too seldom" if high < LEVEL else "as often as it should"
        shares.append(
            f"the {P_NAMES[str(kind)]} test rejects {rejected} of {tests}, {side} (a share of "
            f"{rejected / tests:.2f}, {low:.2f} to {high:.2f})"
        )
    return f"Right models of all users together, at a level of {LEVEL}: {'; '.join(shares)}."


def power_words(table: pd.DataFrame) -> str:
    """A sentence about the wrong models rejected most and least often."""
    least, most = (table.iloc[int(place)] for place in (table["missed"].argmin(), table["missed"].argmax()))

    def named(row: pd.Series) -> str:
        return f"{row['hypothesis']} ({detector_name(row['model'])}, {dataset_name(row['dataset'])})"

    n_found = int((table["one_sided"] >= 0.8).sum())
    return (
        f"Of {len(table)} kinds of wrong model, the one-sided test rejects {n_found} for four users in five "
        f"or more. It rejects most often {named(least)}, which it misses for {least['missed']:.0%} of users, "
        f"and least often {named(most)}, which it misses for {most['missed']:.0%}."
    )


ONE_SIDED, FOUND = "one-sided", 0.8


def answer(values: Values) -> str:
    """A summary of how often right models are rejected, and how often wrong ones are."""
    right, wrong = values["calibration"], values["power"]
    right = right[right["p"] == ONE_SIDED]
    least, most = (right.iloc[int(place)] for place in (right["size"].argmin(), right["size"].argmax()))
    sizes = [
        f"{percent(row['size'])} ({row['model'].upper()}, {dataset_name(row['dataset'])})"
        for row in (least, most)
    ]
    off = [
        f"{row['model'].upper()} on {dataset_name(row['dataset'])}"
        for row in right.to_dict("records")
        if not row["size_low"] <= LEVEL <= row["size_high"]
    ]
    excluded = (
        f"the interval excludes {LEVEL} for the {listed(off)}" if off else f"all intervals hold {LEVEL}"
    )
    hardest = wrong.iloc[int(wrong["missed"].argmax())]
    return (
        f"Where the model is right, the one-sided test at a level of {LEVEL} rejects it for "
        f"{' to '.join(dict.fromkeys(sizes))} of users; {excluded}. Of {len(wrong)} kinds of wrong model it "
        f"rejects {int((wrong['one_sided'] >= FOUND).sum())} for four users in five or more; the one it "
        f"misses most often is {hardest['hypothesis']} ({hardest['model'].upper()}, "
        f"{dataset_name(hardest['dataset'])}), for {percent(hardest['missed'])} of users."
    )


PAGE = ResultsPage(
    "How far the test can be trusted",
    "Does the goodness-of-fit test reject wrong models, and only those?",
    answer,
    ("calibration", "power"),
    {
        "calibration": "The column size should be 0.05, within its interval, and ks distance should not "
        "exceed ks by chance.",
        "power": "Each line is a wrong hypothesis; the shares rejected should be high, and missed low.",
    },
    {
        "calibration": "p-values where the model is right, cumulative: a calibrated test stays within the "
        "grey band.",
        "power": "Shares of wrong models that are rejected, with 95 % intervals; higher is better.",
    },
)


def draw_calibration(tests: pd.DataFrame, path: Path) -> None:
    """Draw the cumulative distribution of p-values of true hypotheses, a panel per dataset and model.

    Calibrated p-values follow the line; the grey band holds them with probability 0.95.
    """
    panels = list(tests.groupby(["dataset", "model"], sort=False))
    with drawing(2.8 * len(panels), 3.5, path) as figure:
        grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, ((dataset, model), panel_tests) in zip(grid, panels, strict=True):
            u = np.linspace(0.0, 1.0, 101)
            width = 1.358 / np.sqrt(len(panel_tests))
            axes.fill_between(
                u, np.clip(u - width, 0, 1), np.clip(u + width, 0, 1), color=GREY, alpha=0.15, linewidth=0
            )
            kinds = [kind for kind in P_NAMES if panel_tests[kind].notna().any()]
            values = {P_NAMES[kind]: panel_tests[kind].to_numpy() for kind in kinds}
            draw_cumulative(axes, values, "{} (size {:.2f})")
            axes.set_title(f"{detector_name(model)}, {str(dataset).capitalize()}")
            axes.set_xlabel("p-value")
            axes.legend(loc="lower right", fontsize=7.0, handlelength=1.2)
        grid[0].set_ylabel("share of true hypotheses")


def draw_power(table: pd.DataFrame, path: Path) -> None:
    """Draw the shares of wrong hypotheses rejected at 0.05.

    `table` is the result of `keydyn.lab.calibration.measurements.power_table`.
    """
    groups = list(table.groupby(["dataset", "model"], sort=False))
    hypotheses = list(dict.fromkeys(table["hypothesis"]))
    with drawing(6.4, 0.9 + 0.28 * len(groups) * len(hypotheses), path) as figure:
        axes = figure.subplots()
        step = len(groups) + 1.0
        for column, ((dataset, model), group) in enumerate(groups):
            shares = group.set_index("hypothesis").loc[hypotheses, "one_sided"].to_numpy()
            place = step * np.arange(len(hypotheses)) + column
            label = f"{detector_name(model)}, {str(dataset).capitalize()}"
            axes.barh(place, shares, height=0.8, color=COLOURS[column], label=label)
            ends = group.set_index("hypothesis").loc[hypotheses, ["low", "high"]].to_numpy()
            axes.hlines(place, ends[:, 0], ends[:, 1], color="black", linewidth=0.8)
            for at, share, high in zip(place, shares, ends[:, 1], strict=True):
                inside = share >= 0.15
                x, colour = (0.06, "white") if inside else (high + 0.01, "black")
                axes.text(x, at, f"{share:.2f}", va="center", color=colour, fontsize=7.5)
        axes.axvline(LEVEL, color=GREY, linewidth=0.8, linestyle="--")
        centre = step * np.arange(len(hypotheses)) + 0.5 * (len(groups) - 1)
        axes.set_yticks(centre, hypotheses)
        axes.invert_yaxis()
        axes.set(xlim=(0.0, 1.08), xlabel="share rejected at 0.05", title="Wrong hypotheses that are found")
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
