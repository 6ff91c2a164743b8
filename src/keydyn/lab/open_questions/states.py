"""How many hidden states does typing have, and what do they mean? The paper uses two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from keydyn.evaluation.rates.confidence import signed_rank_p
from keydyn.figures.style import GREY, blank, house_style
from keydyn.lab.drawing.panels import Pen, legend_below, pens_of
from keydyn.lab.frame.names import dataset_name, listed, of_all
from keydyn.lab.frame.study import Values
from keydyn.lab.frame.tables import DATASET, Column, Table, estimate_column, number_column, p_column
from keydyn.lab.open_questions.question import Frames, Question, QuestionFigure, QuestionTable, mean_columns
from keydyn.lab.open_questions.state_scores import FOLDS, MEANT, MODELS, RECOGNISED, STATES, pieces
from keydyn.population.chain import CLASSES

# Figure → its label, and whether it is shown relative to two states.
SHOWN = {
    "log_likelihood": ("held-out gain over two states,\nnats per key", False),
    "eer": ("equal error rate\nin relation to two states", True),
    "rejection": ("rejection time\nin relation to two states", True),
}
# The numbers of states, and the texts, for which the meaning is drawn.
MEANINGS = (2, 3, 4)
TEXTS = ("essay", "fable")


def draw_numbers(table: pd.DataFrame) -> Figure:
    """Plot a row of panels for each model, a column for each figure, a line for each dataset."""
    datasets = list(dict.fromkeys(table["dataset"].map(dataset_name)))
    with house_style():
        pens = pens_of(datasets)
        models = list(dict.fromkeys(table["model"]))
        figure = blank(9.0, 2.6 * len(models) + 0.7)
        grid = figure.subplots(len(models), len(SHOWN), squeeze=False, sharex=True)
        for axes_row, model in zip(grid, models, strict=True):
            own = table[table["model"] == model]
            for axes, (name, (label, relative)) in zip(axes_row, SHOWN.items(), strict=True):
                _draw_lines(axes, own, name, relative, pens)
                axes.set_ylabel(label)
            axes_row[0].set_title(MODELS[model])
        for axes in grid[-1]:
            axes.set_xlabel("hidden states")
        legend_below(figure, pens, markers=True)
        return figure


def _draw_lines(axes: Axes, table: pd.DataFrame, name: str, relative: bool, pens: Mapping[str, Pen]) -> None:
    axes.axhline(1.0 if relative else 0.0, color=GREY, linewidth=0.6)
    axes.axvline(PAPER, color=GREY, linewidth=0.6, linestyle=":")
    for dataset, rows in table.groupby("dataset", sort=False):
        values = rows.set_index("states")[name].astype(float)
        if values.isna().all() or (relative and not values[PAPER] > 0.0):
            continue
        pen = pens[dataset_name(dataset)]
        shown = values / values[PAPER] if relative else values
        axes.plot(shown.index, shown, marker=pen.marker, markersize=3.5, **pen.line)
    axes.set_xticks(sorted(table["states"].unique()))


def draw_meaning(table: pd.DataFrame) -> Figure:
    """Draw a shaded table of classes of keys by states, for each text and number of states."""
    own = table[(table["model"] == "pohmm") & table["states"].isin(MEANINGS)]
    numbers = [n for n in MEANINGS if n in set(own["states"])]
    named = [name for name in TEXTS if name in set(own["dataset"])]
    datasets = named or list(dict.fromkeys(own["dataset"]))[:1]
    with house_style():
        figure = blank(9.0, 2.5 * len(datasets))
        grid = figure.subplots(len(datasets), len(numbers), squeeze=False, width_ratios=numbers)
        for axes_row, dataset in zip(grid, datasets, strict=True):
            for axes, n in zip(axes_row, numbers, strict=True):
                _draw_shares(axes, own[(own["dataset"] == dataset) & (own["states"] == n)], n)
                axes.set_title(f"{dataset_name(dataset)}, {n} states")
            axes_row[0].tick_params(axis="y", labelleft=True)
        return figure


def _draw_shares(axes: Axes, rows: pd.DataFrame, n_states: int) -> None:
    there = set(rows["class"])
    kinds = [kind for kind in ("all", *CLASSES) if kind in there]
    shares = np.full((len(kinds), n_states), np.nan)
    for row in rows.to_dict("records"):
        y, x = kinds.index(row["class"]), row["state"] - 1
        shares[y, x] = row["share"]
        text = f"{100 * row['share']:.0f} %"
        if not np.isnan(row["interval"]):
            text += f"\n{row['interval']:.0f} ms"
        colour = "white" if row["share"] > 0.6 else "black"
        axes.text(x, y, text, ha="center", va="center", fontsize=7.0, color=colour, linespacing=0.9)
    axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    axes.set_xticks(range(n_states), [str(j + 1) for j in range(n_states)])
    axes.set_yticks(range(len(kinds)), ["all keys" if kind == "all" else kind for kind in kinds])
    axes.tick_params(length=0, labelleft=False)
    axes.axhline(0.5, color="white", linewidth=2.0)
    for side in axes.spines.values():
        side.set_visible(False)


PAPER = 2
FIGURES = {"log_likelihood": 1.0, "acc": 1.0, "eer": -1.0, "rejection": -1.0}
MODEL = Column("Model", "model", MODELS.__getitem__)
LEVEL = 0.05


def numbers_table(measured: Frames, seed: int) -> Table:
    """The figures for each number of states, with tests against the paper's two."""
    users = measured[RECOGNISED]
    users = users[users["part"] == RECOGNISED]
    rows = []
    for (dataset, model), own in users.groupby(["dataset", "model"], sort=False):
        wide = {name: own.pivot_table(index="user", columns="states", values=name) for name in FIGURES}
        for n in sorted(own["states"].unique()):
            row = {"dataset": dataset, "model": model, "states": int(n), "users": len(wide["eer"])}
            for name, of in wide.items():
                figures = of[n].to_numpy() if n in of else np.empty(0)
                there = len(figures) > 0 and not np.isnan(figures).any()
                two = of[PAPER].to_numpy() if there else figures
                # Likelihoods depend on the unit of the features; only the difference from two states is
                # comparable.
                row |= mean_columns(figures - two if name == "log_likelihood" else figures, name, seed)
                row[f"{name}_p"] = signed_rank_p(figures, two) if there and n != PAPER else None
            rows.append(row)
    columns = [DATASET, MODEL, Column("States", "states")]
    titles = {"log_likelihood": "Gain over two states, nats per key", "acc": "Accuracy"}
    titles |= {"eer": "Equal error rate", "rejection": "Rejection time, keys"}
    short = {"log_likelihood": "gain", "acc": "accuracy", "eer": "EER", "rejection": "time"}
    for name, title in titles.items():
        columns += [
            estimate_column(title, name, 2 if name == "rejection" else 3),
            p_column(f"p, {short[name]}", f"{name}_p"),
        ]
    note = (
        "Means over users with 95 % intervals, by the paper's protocol. Gain: of the log-likelihood of "
        "samples that were left out of the owner's enrolment, under the owner's template. Rejection time: "
        "the average maximum one, as in the paper. p: Wilcoxon signed-rank test over users against two "
        f"states, without correction. Of {listed([dataset_name(name) for name in FOLDS])} the first "
        f"{listed([str(n) for n in FOLDS.values()])} enrolments only."
    )
    return Table(RECOGNISED, "By the number of hidden states", note, pd.DataFrame(rows), columns, labels=3)


def meaning_table(measured: Frames, seed: int) -> Table:
    """The share of keys of each class in each state, and the length of their intervals."""
    rows = measured[RECOGNISED]
    rows = rows[rows["part"] == MEANT]
    keys = ["dataset", "model", "states", "state"]
    lines = []
    for values, of_state in rows.groupby(keys, sort=False):
        labels: dict[str, Any] = dict(zip(keys, values, strict=True))
        labels["state"] = int(of_state["state"].iloc[0])
        weight = of_state["timed"].to_numpy()
        timed = weight > 0.0
        logs = of_state["log_interval"].to_numpy()[timed]
        whole = {
            "class": "all",
            "share": of_state["in_state"].sum() / of_state["keys"].sum(),
            "interval": float(np.exp(np.average(logs, weights=weight[timed]))) if timed.any() else np.nan,
        }
        lines.append(labels | whole)
        for row in of_state.to_dict("records"):
            share = row["in_state"] / row["keys"]
            interval = float(np.exp(row["log_interval"]))
            lines.append(labels | {"class": row["class"], "share": share, "interval": interval})
    columns = [
        *(DATASET, MODEL, Column("States", "states"), Column("State", "state"), Column("Keys", "class")),
        Column("Share in the state", "share", lambda share: f"{100 * share:.1f} %"),
        number_column("Interval, ms", "interval", 0),
    ]
    note = (
        "Share: of the keys of this class that are in the state, by its posterior probability. Interval: "
        "geometric mean of the intervals before these keys. Queries of the first enrolment, under the "
        "templates of their owners; the states of a POHMM are in the order of their mean intervals."
    )
    return Table(MEANT, "What the states mean", note, pd.DataFrame(lines), columns, labels=5)


def best_numbers(table: pd.DataFrame, model: str, figure: str) -> dict[str, int]:
    """The number of states with the best mean, by dataset."""
    own = table[(table["model"] == model) & table[figure].notna()]
    best = own.assign(order=FIGURES[figure] * own[figure]).sort_values(
        "order", ascending=False, kind="stable"
    )
    first = best.drop_duplicates("dataset")
    return {name: int(n) for name, n in zip(first["dataset"], first["states"], strict=True)}


def _numbers_words(best: dict[str, int]) -> str:
    by_number: dict[int, list[str]] = {}
    for dataset, n in best.items():
        by_number.setdefault(n, []).append(dataset_name(dataset))
    return listed([f"{n} ({listed(names)})" for n, names in sorted(by_number.items())])


def answer(values: Values) -> tuple[str, str]:
    """The best numbers of states by likelihood and by equal error rate, and the gain from more than two."""
    table = values[RECOGNISED]
    likely, sure = (best_numbers(table, "pohmm", figure) for figure in ("log_likelihood", "eer"))
    chain = best_numbers(table, "population", "eer")
    more = table[(table["states"] > PAPER) & (table["eer_p"] < LEVEL)].merge(
        table.loc[table["states"] == PAPER, ["dataset", "model", "eer"]],
        on=["dataset", "model"],
        suffixes=("", "_two"),
    )
    datasets = table["dataset"].nunique()

    def counted(model: str) -> str:
        own = more[more["model"] == model]
        better = own.loc[own["eer"] < own["eer_two"], "dataset"].nunique()
        worse = own.loc[own["eer"] > own["eer_two"], "dataset"].nunique()
        return " and ".join(
            f"{way} on {of_all(number, datasets, 'dataset')}"
            for way, number in (("better", better), ("worse", worse))
        )

    return (
        "Samples that were left out of the fit are most probable under a POHMM of "
        f"{_numbers_words(likely)} states, and its equal error rate is lowest with {_numbers_words(sure)}; "
        f"with the population's chain it is lowest with {_numbers_words(chain)}.",
        f"With three to five states instead of the paper's two, the equal error rate of the POHMM is "
        f"significantly {counted('pohmm')}, and that of the population's chain {counted('population')}.",
    )


QUESTION = Question(
    "How many states",
    "How many hidden states does typing have, and what do they mean?",
    pieces,
    (RECOGNISED,),
    {
        RECOGNISED: QuestionTable(
            numbers_table, "Compare the lines of a dataset and a model with the line of two states."
        ),
        MEANT: QuestionTable(
            meaning_table, "Each line says which share of a class of keys a state has, and how slow they are."
        ),
    },
    answer,
    {
        "state_numbers": QuestionFigure(
            lambda values: draw_numbers(values[RECOGNISED]),
            "What further hidden states give: likelihood of samples that were left out, equal error rate and "
            "rejection time, by dataset; the paper has two states.",
            "Two rows of three panels with a line for each dataset over the number of states.",
        ),
        "state_meaning": QuestionFigure(
            lambda values: draw_meaning(values[MEANT]),
            "What the states of a POHMM mean: the share of each class of keys in each state (the darker the "
            "more), and the geometric mean of the intervals before them, in milliseconds.",
            "A grid of tables, shaded by share, for two, three and four states.",
        ),
    },
    (
        "The POHMM has the library's own settings, one to five states, and is fitted to each person; the "
        "population's chain of states is shared by all people and describes what is left when a person's own "
        "rhythm and tempo are removed. Its first state is active and all others are pauses.",
    ),
    {"states": STATES, "enrolments": FOLDS},
)
