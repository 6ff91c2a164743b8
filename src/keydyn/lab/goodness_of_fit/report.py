"""Runs and reports the study of goodness of fit: the test on real users, and figures of p-values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from keydyn.figures.residuals import draw_residual_rows
from keydyn.figures.style import COLOURS, GREY, drawing
from keydyn.lab.frame.names import dataset_name, detector_name, listed, percent
from keydyn.lab.frame.outputs import Outputs
from keydyn.lab.frame.report import Section
from keydyn.lab.frame.resuming import Parts, frame_of, run_pieces, text_piece
from keydyn.lab.frame.study import ResultsPage, Values
from keydyn.lab.frame.study_data import MODELS, SETTINGS, LongText, recorded_settings
from keydyn.lab.frame.tables import Table, plain_table
from keydyn.lab.goodness_of_fit.measurements import (
    LEVEL,
    SurrogateTest,
    TypicalUser,
    goodness_calls,
    rejections,
    rejections_by_marginal,
    rejections_by_p_value,
    residual_calls,
    residual_table,
    typical_user,
)


def draw_p_values(tests: pd.DataFrame, path: Path) -> None:
    """Draw cumulative p-values, a panel per dataset and settings, with the uniform line.

    `tests` has the columns dataset, settings, model and p_value. The model is rejected in the shaded strip;
    the legend gives the share of users there.
    """
    panels = list(tests.groupby(["dataset", "settings"], sort=False))
    with drawing(3.0 * len(panels), 3.3, path) as figure:
        grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, ((dataset, settings), panel_tests) in zip(grid, panels, strict=True):
            by_model = panel_tests.groupby("model", sort=False)["p_value"]
            values = {detector_name(model): of.to_numpy() for model, of in by_model}
            draw_cumulative(axes, values, "{} ({:.2f} rejected)")
            axes.set_title(f"{str(dataset).capitalize()}, {settings} settings")
            axes.set_xlabel("p-value, two-sided")
            axes.legend(loc="lower right", fontsize=8.0)
        grid[0].set_ylabel("share of users with a p-value as small")


def draw_cumulative(axes: Axes, values: Mapping[Any, np.ndarray], label: str) -> None:
    """Plot cumulative p-values by name with the uniform line; `label` formats name and share rejected."""
    axes.axvspan(0.0, LEVEL, color=GREY, alpha=0.2, linewidth=0)
    axes.plot([0.0, 1.0], [0.0, 1.0], color="black", linestyle="--", linewidth=0.8)
    axes.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    for column, (name, of) in enumerate(values.items()):
        x = np.concatenate([[0.0], np.sort(of), [1.0]])
        y = np.concatenate([[0.0], np.arange(1, len(of) + 1) / len(of), [1.0]])
        text = label.format(name, np.mean(of <= LEVEL))
        axes.step(x, y, where="post", color=COLOURS[column], linewidth=1.4, label=text)


LEAD = (
    "Press-press intervals are tested user by user (Section 5.1 of the paper): the area between the "
    "distribution function of the data and that of the fitted model is compared with the areas of "
    "surrogates, which are drawn from the fitted model and fitted again. Figures were measured by this run "
    "unless they are labelled as published."
)
WHY_NOT_PUBLISHED = (
    "Published and measured shares differ, and no setting that was tried gives the published ones. Three "
    "things are different here. First, surrogates have independent random streams; with one stream for all, "
    "their areas are too similar. Second, the area is integrated exactly and not on a grid. Third, the "
    "POHMM's marginal distribution weighs each state by its share among events of the same type, as it must; "
    "the printed formula takes the share among all events.",
    "The test takes its parameters from the data that it judges. Where a model has many parameters per "
    "event, the test therefore rejects right models more or less often than the level says "
    "(`keydyn study calibration`), and a few surrogates with an enormous area move the mean on which the "
    "two-sided p-value depends. Judge a model by the one-sided shares, and keep the results of that study in "
    "mind.",
)


class GoodnessResults(NamedTuple):
    """All tests, the tests of residuals, and the residuals of one user per dataset."""

    tests: pd.DataFrame
    residuals: pd.DataFrame
    typical: list[TypicalUser]


def goodness_tests(texts: Sequence[LongText], settings: Mapping[str, Any], parts: Parts) -> GoodnessResults:
    """Test every user with HMM and POHMM, published and recommended settings; then test residuals.

    `settings` are those of the test as in run.json: seed, surrogates, second and marginal.
    """
    test = SurrogateTest(settings["surrogates"], settings["second"], settings["marginal"], settings["seed"])
    tests, checks = [], []
    for text in texts:
        typed = (text.keystrokes, text.name)
        for model, chosen in product(MODELS, SETTINGS):
            calls = goodness_calls(*typed, test, (model,), (chosen,))
            of_test = vars(test) | {"model": recorded_settings(model, chosen)}
            tests.append(text_piece(f"{text.name}-{model}-{chosen}", text, calls, **of_test))
        models = [recorded_settings(model, "recommended") for model in MODELS]
        checks.append(text_piece(f"residuals-{text.name}", text, residual_calls(*typed), models=models))
    made = run_pieces([*tests, *checks], parts)
    residuals = frame_of(made, checks)
    typical = [
        typical_user(text.keystrokes, text.name, residuals[residuals["dataset"] == text.name])
        for text in texts
    ]
    return GoodnessResults(frame_of(made, tests), residuals, typical)


def write(outputs: Outputs, results: GoodnessResults, facts: Mapping[str, Any]) -> list[Table]:
    """Write tables, figures and the report of the test on real users; returns the tables for the terminal."""
    tests = results.tests
    outputs.frames(tests=tests)
    tables = [
        plain_table(
            "goodness_of_fit",
            "Share of users for whom the model is rejected",
            "Two-sided test at a level of 0.05, as in the paper, whose shares are in the last column.",
            rejections(tests),
            labels=3,
        ),
        plain_table(
            "p_values",
            "Shares rejected by either p-value",
            "One-sided: only a large area counts against a model.",
            rejections_by_p_value(tests),
            labels=3,
        ),
    ]
    picture = outputs.drawn(
        partial(draw_p_values, tests),
        "p_values",
        "p-values of all users, cumulative, with the uniform line; a line above it rejects too often to be "
        "chance.",
        "Cumulative p-values of HMM and POHMM for each dataset and setting, with a diagonal.",
    )
    if facts.get("marginal") == "exact":
        tables.append(
            plain_table(
                "marginals",
                "Shares rejected by the form of the POHMM's marginal distribution",
                "Published settings, two-sided. Exact: states weighed by their share among events of a type. "
                "Printed: by their share among all events, as in the paper's formula. States: one "
                "distribution per state, whatever the type.",
                rejections_by_marginal(tests),
            )
        )
    for table in tables:
        outputs.table(table)
    anything_published = tables[0].frame["published_rejected"].notna().any()
    words = outputs.words(WHY_NOT_PUBLISHED if anything_published else [])
    sections = [Section("The test on real users", words, tables, [picture]), _residuals(outputs, results)]
    outputs.report("Goodness of fit", [LEAD], sections, facts)
    return tables[:1]


def _residuals(outputs: Outputs, results: GoodnessResults) -> Section:
    table = outputs.table(
        plain_table(
            "residuals",
            "Forecast residuals under the recommended settings",
            "Medians over users: standard deviation (1 if the model is right), Kolmogorov and Smirnov's "
            "distance from the standard normal, autocorrelation at lag one; and the shares of users for whom "
            "they are not normal (Kolmogorov and Smirnov) or not independent (Ljung and Box, ten lags), at "
            "0.05. The parameters were fitted to the same intervals: a model with many parameters follows "
            "these too closely, which brings the deviation below one.",
            residual_table(results.residuals),
            labels=2,
        )
    )
    rows = {
        f"{dataset_name(one.dataset)}, user {one.user}": (
            {detector_name(model): z for model, z in one.residuals.items()},
            one.lengths,
        )
        for one in results.typical
    }
    picture = outputs.drawn(
        partial(draw_residual_rows, rows),
        "residuals",
        "Residuals of one user of each dataset: the one with the median distance from normal under the "
        "POHMM. With probability 0.95, each point of a right model lies within the bands.",
        "Quantiles of residuals against those of the standard normal, and bars of autocorrelation.",
    )
    return Section("Where the models fail", (), [table], [picture])


REJECTED, PUBLISHED = "rejected", "published_rejected"


def answer(values: Values) -> str:
    """The shares of users for whom each model is rejected, and the published ones."""
    frame = values["goodness_of_fit"]
    rows = frame[frame["settings"] == "published"]
    published = rows[rows[PUBLISHED].notna()]
    sentences = [
        f"At a level of 0.05, the test rejects {_shares(rows, REJECTED)} of users, with the published "
        "settings."
    ]
    if len(published):
        same = (published[REJECTED].round(3) == published[PUBLISHED].round(3)).all()
        verdict = "as here" if same else "which this study does not reproduce"
        sentences.append(f"In the paper, it rejects {_shares(published, PUBLISHED)}, {verdict}.")
    return " ".join(sentences)


def _shares(rows: pd.DataFrame, share: str) -> str:
    """A phrase with the share of each model on each dataset, the POHMM first."""
    texts = []
    for model in sorted(set(rows["model"]), reverse=True):
        of = rows[rows["model"] == model]
        found = zip(of[share], of["dataset"], strict=True)
        shares = listed([f"{percent(value)} ({dataset_name(dataset)})" for value, dataset in found])
        texts.append(f"the {model.upper()} for {shares}")
    return " and ".join(texts)


PAGE = ResultsPage(
    "Goodness of fit",
    "Does the model fit what people type?",
    answer,
    ("goodness_of_fit",),
    {
        "goodness_of_fit": "The column rejected is the share of users whose typing does not fit the model; "
        "0.05 would be chance.",
        "p_values": "Compare the two columns: where they agree, it does not matter which p-value is used.",
        "marginals": "Each column is the share of users rejected with one way to make the POHMM's marginal "
        "distribution; compare them with the published share.",
        "residuals": "A model that is right has a deviation of 1, an autocorrelation of 0, and shares of "
        "0.05 in the columns not normal and not independent.",
    },
    {
        "p_values": "p-values of all users, cumulative. On the diagonal the model is right; a line above it "
        "is rejected more often than by chance.",
        "residuals": "Residuals of one user of each dataset: those of a right model stay within the bands.",
    },
)
