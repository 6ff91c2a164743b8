"""Writes tables, figures and the report that compare the population model with the POHMM."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from keydyn.evaluation.continuous.rejection import continuous
from keydyn.evaluation.rates.confidence import Estimate, mean_estimate
from keydyn.figures.style import COLOURS, GREY, blank, house_style, text_of
from keydyn.lab.drawing.curves import user_curves_figure
from keydyn.lab.drawing.panels import curves_of, intervals_figure
from keydyn.lab.frame.names import figures_of, lead_of, of_all, percent, span
from keydyn.lab.frame.outputs import Outputs, read_frames, read_ranks, read_scores
from keydyn.lab.frame.report import Picture, Section
from keydyn.lab.frame.score_datasets import ranked_of, scored_of
from keydyn.lab.frame.study import ResultsPage, Values
from keydyn.lab.frame.tables import Table
from keydyn.lab.population.changed_typing import worst_of, worst_table, worst_users, worst_words
from keydyn.lab.population.measurements import (
    DRAWS,
    ENROLMENT,
    GROUPS,
    KEYSTROKES,
    PEOPLE,
    POPULATION,
    QUERIES,
    PopulationMeasured,
)
from keydyn.lab.population.tables import (
    Users,
    across_table,
    curve_frame,
    curve_table,
    gains_words,
    parts_table,
    population_table,
    significance_table,
    users_of,
)
from keydyn.lab.recognition.tables import error_rates_table, recognition_figures

RATES = ("eer", "fnmr_at_fmr_10", "fnmr_at_fmr_1", "fnmr_at_fmr_0.1")
LEARNT = (
    "With every protocol, the population and all its settings are learnt from training samples only. In the "
    f"open set, users are divided into {GROUPS} groups, each of which in turn is unknown to the system: not "
    "enrolled, in no cohort, and not learnt from."
)
RANKS = (
    "Rejection times depend on the ranks of templates at each key, and on some texts they are shorter "
    "without the part called tempo. A likely reason is that a stranger's template adapts to the tempo of the "
    "sample and so ranks better at later keys; what it lost on the first keys counts only in the sum of its "
    "scores."
)
SCALED = (
    "As in the paper, the scores of a sample are scaled over the templates to between 0 and 1, so that the "
    "best template has 1 even if a stranger typed the sample. In an open set there is therefore no threshold "
    "with a false match rate below about one divided by the number of templates, and nearly everybody is "
    "rejected there. This limit comes from the normalisation, whatever the detector."
)
HALVES = (
    "The population is learnt from every other user; the rest enrol and are tested, and then the two halves "
    "change places, so that nothing is learnt from the people who are tested. Candidates and impostors are "
    f"those who are tested, half as many as in the closed set, with at most {QUERIES} samples each. The "
    "figures therefore differ from those of other tables."
)
CURVES = {
    ENROLMENT: (
        "Few samples to enrol with",
        "Recognition by the number of samples enrolled",
        HALVES,
        "samples enrolled",
    ),
    KEYSTROKES: (
        "Few keys to decide by",
        "Recognition by the number of keys in a query",
        "The first keys of every query, after enrolment with all training samples; closed set, the paper's "
        "protocol. The last key's hold time is scored once the next key is known.",
        "keys asked",
    ),
    PEOPLE: (
        "Few people to learn from",
        "Recognition by the number of people learnt from",
        f"{HALVES} The mean of {DRAWS} draws of this many people; enrolment with one sample or with all.",
        "people learnt from",
    ),
}
CAUSES = {
    "change": "largest change since enrolment\n(in units of the usual spread)",
    "nearest": "distance to the nearest other user\n(in units of the usual spread)",
}


def write(outputs: Outputs, measured: PopulationMeasured, facts: Mapping[str, Any]) -> list[Table]:
    """Write tables, figures and the report; returns the tables for the terminal."""
    seed = facts.get("seed", 0)
    outputs.scores(measured.scores)
    outputs.ranks(measured.ranks)
    outputs.frames(user_figures=measured.users, typing_changes=measured.changes)
    scored = scored_of(measured.scores)
    figures = recognition_figures(scored, seed)
    watched = {key: continuous(ranks, seed=seed) for key, ranks in ranked_of(measured.ranks).items()}
    users = users_of({key: of.users for key, of in figures.items()}, watched)
    main = population_table(users, figures, watched)
    rates = error_rates_table(figures, RATES)
    gains = significance_table(users, seed)
    parts = parts_table(users, measured.users, seed)
    across = across_table(users, measured.users, seed)
    sections = [
        Section("Beside the POHMM", [LEARNT], [main, gains], [_closed_and_open(outputs, users, seed)]),
        *(_curves(outputs, measured.users, what, seed) for what in CURVES),
        Section("What each part gives", [RANKS], [parts], [_parts_figure(outputs, parts)]),
    ]
    if across is not None:
        sections.append(Section("Across datasets", (), [across]))
    of_population = {dataset: scores for (dataset, name), scores in scored.items() if name == POPULATION}
    words = [*gains_words(gains.frame), LEARNT, RANKS, SCALED]
    for dataset in dict.fromkeys(measured.changes["dataset"]):
        table = worst_users(users, of_population, measured.changes, dataset)
        words.append(worst_words(table, dataset))
        found = worst_table(table, dataset, list(users[dataset]["acc"]))
        sections.append(Section("Who fails, and why", words[-1:], [found], [_changes(outputs, table)]))
    sections.append(Section("Error rates", [SCALED], [rates]))
    outputs.words(words)
    outputs.report("The population model", [words[0], *lead_of(facts)], sections, facts)
    return [main]


def read(folder: Path) -> PopulationMeasured:
    """Read all results that a run kept in its folder."""
    frames = read_frames(folder, ("user_figures", "typing_changes"))
    return PopulationMeasured(read_scores(folder), read_ranks(folder), *frames.values())


def _closed_and_open(outputs: Outputs, users: Users, seed: int) -> Picture:
    series = {"eer": "closed set", "open_eer": "open set"}
    panels = {
        dataset: {
            title: {name: mean_estimate(values, seed) for name, values in metrics[metric].items()}
            for metric, title in series.items()
        }
        for dataset, metrics in users.items()
    }
    return outputs.figure(
        intervals_figure(panels, "equal error rate, mean over users"),
        "population",
        "Equal error rates, each user at a threshold of their own, with 95 % intervals (bootstrap over "
        "users).",
        "For each dataset and detector two dots with intervals: closed set and open set.",
    )


def _curves(outputs: Outputs, measured: pd.DataFrame, what: str, seed: int) -> Section:
    heading, title, note, label = CURVES[what]
    frame = curve_frame(measured, what, seed)
    if what == PEOPLE:
        fewest = frame.groupby("dataset")["setting"].transform("first")
        lines = np.where(frame["setting"] == fewest, "one sample enrols", "all samples enrol")
    else:
        lines = frame["detector"].to_numpy()
    figures = {"accuracy": "acc", "equal error rate": "eer"}
    panels = curves_of(frame.assign(line=lines), "number", figures, "line")
    picture = outputs.figure(
        user_curves_figure(panels, label),
        f"population_{what}",
        f"{title}: means over users with 95 % bands (bootstrap over users).",
        "Rows for accuracy and equal error rate, a column for each dataset, lines over a logarithmic axis.",
    )
    return Section(heading, [note], [curve_table(frame, what, title, "")], [picture])


def _parts_figure(outputs: Outputs, parts: Table) -> Picture:
    panels: dict[str, dict[str, dict[str, Estimate]]] = {}
    for row in parts.frame.to_dict("records"):
        for metric, title, sign in (("acc", "accuracy lost", -1.0), ("eer", "equal error rate added", 1.0)):
            value, *ends = (sign * row[f"{metric}_{end}"] for end in ("difference", "low", "high"))
            series = panels.setdefault(row["dataset"], {}).setdefault(title, {})
            series[f"without {row['without']}"] = Estimate(value, min(ends), max(ends))
    return outputs.figure(
        intervals_figure(panels, "lost without the part"),
        "population_parts",
        "What is lost without each part of the model: accuracy lost and equal error rate added, with 95 % "
        "intervals (bootstrap over users). To the right of zero the part helps.",
        "For each dataset and part two dots with intervals.",
    )


def _changes(outputs: Outputs, table: pd.DataFrame) -> Picture:
    return outputs.figure(
        changed_typing_figure(table, worst_of(table).index.tolist(), CAUSES),
        "population_changes",
        "Each user's equal error rate with the population model against how much the typing changed, and how "
        "close the nearest other user is. The worst tenth are named.",
        "Two panels of dots, one per user.",
    )


POHMM = "pohmm"


def answer(values: Values) -> str:
    """The gain of the population model over the POHMM, against enrolled impostors and against strangers."""
    frame, gains = values["population"], values["significance"]
    rates = {
        name: span(figures_of(frame[frame["detector"] == name], "eer_mean"), percent)
        for name in (POHMM, POPULATION)
    }

    def on(figure: str, verdict: str) -> str:
        found = gains.loc[(gains["against"] == POHMM) & (gains["figure"] == figure), "verdict"].tolist()
        return of_all(found.count(verdict), len(found), "dataset")

    return (
        f"The population model verifies claims at an equal error rate of {rates[POPULATION]}, the POHMM at "
        f"{rates[POHMM]}; it is significantly better on {on('eer', 'better')}, and on "
        f"{on('open_eer', 'better')} if the impostor is a stranger. In continuous verification it "
        f"rejects impostors sooner on {on('amrt', 'better')} and later on {on('amrt', 'worse')}."
    )


PAGE = ResultsPage(
    "The population model",
    "What does learning from many people gain over a model of each person alone?",
    answer,
    ("population", "significance"),
    {
        "population": "Compare the lines of a dataset: higher is better for accuracy, lower for everything "
        "else.",
        "across": "Each line compares people of one dataset, with a population learnt from another dataset, "
        "with what is named in the column Against.",
        "worst_users": "Each line is a user. Where the change is larger than the distance to the nearest "
        "other user, the typing moved farther than people are apart.",
        "significance": "Each line compares the population model with the detector in the column Against. A "
        "positive difference is better for accuracy, a negative one for the rest.",
        "parts": "Each line is the model without one part. Where a difference is bold, the part is worth "
        "having (accuracy falls, the others rise) or harmful (the other way round).",
        "error_rates": "FNMR is the share of genuine samples rejected at a threshold at which the named "
        "share of impostors (FMR) is accepted; lower is better.",
    },
    {
        "population": "Equal error rates by dataset and detector, closed and open set; lower is better. Bars "
        "are 95 % intervals over users.",
        "population_enrolment": "Recognition by the number of samples that a person enrols with. Nothing was "
        "learnt from the people who are tested.",
        "population_keystrokes": "Recognition by the number of keys in a query.",
        "population_people": "Recognition by the number of people that the population was learnt from.",
        "population_parts": "What is lost without each part of the model. To the right of zero, the part "
        "helps.",
        "population_changes": "Each dot is a user of Password: the equal error rate against how much the "
        "typing changed, and against how close the nearest other user is.",
    },
)


def changed_typing_figure(users: pd.DataFrame, named: Collection[str], causes: Mapping[str, str]) -> Figure:
    """A panel per cause, a column of `users` with its label; a dot per user, with names for `named`.

    `users` has the equal error rate, `eer`, and is indexed by user.
    """
    with house_style():
        figure = blank(3.6 * len(causes), 3.2)
        grid = figure.subplots(1, len(causes), squeeze=False, sharey=True)[0]
        worst = users.index.isin(list(named))
        for axes, (cause, label) in zip(grid, causes.items(), strict=True):
            axes.plot(users.loc[~worst, cause], users.loc[~worst, "eer"], "o", color=GREY, markersize=3.5)
            axes.plot(users.loc[worst, cause], users.loc[worst, "eer"], "s", color=COLOURS[1], markersize=4.5)
            middle = users.loc[worst, cause].median()
            for user, of in users[worst].iterrows():
                # Names are placed outside of the group.
                left = of[cause] < middle
                axes.annotate(
                    text_of(user, 12),
                    (of[cause], of["eer"]),
                    (-6 if left else 6, 0),
                    textcoords="offset points",
                    ha="right" if left else "left",
                    va="center",
                    size=7.5,
                )
            axes.margins(x=0.14)
            axes.set_xlabel(label)
        grid[0].set_ylim(bottom=0.0)
        grid[0].set_ylabel("equal error rate")
        return figure
