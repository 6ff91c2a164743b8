"""How many hidden states does typing have? The paper uses two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from keydyn.evaluation.rates.confidence import mean_estimate, signed_rank_p
from keydyn.lab.frame.names import dataset_name, listed, of_all
from keydyn.lab.frame.study import Values
from keydyn.lab.frame.tables import DATASET, Column, Table, estimate_column, number_column
from keydyn.lab.open_questions.question import Frames, Question, QuestionFigure, QuestionTable
from keydyn.lab.open_questions.state_figures import draw_meaning, draw_numbers
from keydyn.lab.open_questions.state_scores import FOLDS, MEANT, MODELS, RECOGNISED, STATES, pieces
from keydyn.lab.recognition.tables import p_text

PAPER = 2
FIGURES = {"log_likelihood": 1.0, "acc": 1.0, "eer": -1.0, "rejection": -1.0}
MODEL = Column("Model", "model", MODELS.__getitem__)
LEVEL = 0.05


def numbers_table(measured: Frames, seed: int) -> Table:
    """What each number of states gives, and whether it differs from the paper's two."""
    users = measured[RECOGNISED]
    users = users[users["part"] == RECOGNISED]
    rows = []
    for (dataset, model), own in users.groupby(["dataset", "model"], sort=False):
        wide = {name: own.pivot_table(index="user", columns="states", values=name) for name in FIGURES}
        for n in sorted(own["states"].unique()):
            row = {"dataset": dataset, "model": model, "states": int(n), "users": len(wide["eer"])}
            for name, of in wide.items():
                if n not in of or of[n].isna().any():
                    row |= dict.fromkeys((name, f"{name}_low", f"{name}_high", f"{name}_p"))
                    continue
                figures = of[n].to_numpy()
                # Likelihoods differ by the unit of the features: what counts is the difference from two.
                shown = figures - of[PAPER].to_numpy() if name == "log_likelihood" else figures
                row |= mean_estimate(shown, seed).columns(name)
                row[f"{name}_p"] = None if n == PAPER else signed_rank_p(figures, of[PAPER].to_numpy())
            rows.append(row)
    columns = [DATASET, MODEL, Column("States", "states")]
    titles = {"log_likelihood": "Gain over two states, nats per key", "acc": "Accuracy"}
    titles |= {"eer": "Equal error rate", "rejection": "Rejection time, keys"}
    short = {"log_likelihood": "gain", "acc": "accuracy", "eer": "EER", "rejection": "time"}
    for name, title in titles.items():
        columns += [
            estimate_column(title, name, 2 if name == "rejection" else 3),
            Column(f"p, {short[name]}", f"{name}_p", lambda p: "–" if pd.isna(p) else p_text(p)),
        ]
    note = (
        "Means over users with 95 % intervals, by the paper's protocol. Gain: of the log-likelihood of "
        "samples that were left out of the owner's enrolment, under the owner's template. Rejection time: "
        "the average maximum one, as in the paper. p: Wilcoxon signed-rank test over users against two "
        f"states, without correction. Of {listed([dataset_name(name) for name in FOLDS])} the first "
        f"{listed([str(n) for n in FOLDS.values()])} enrolments alone."
    )
    return Table(RECOGNISED, "By the number of hidden states", note, pd.DataFrame(rows), columns, labels=3)


def meaning_table(measured: Frames, seed: int) -> Table:
    """Which keys are in which state, and how long their intervals are."""
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
    """For each dataset the number of states with the best mean."""
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
    """The best numbers of states by likelihood and by equal error rate; and what more than two give."""
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
        "population's chain of states is shared by all people and stands on what is left when a person's own "
        "rhythm and tempo are taken out. Its first state is active and all others are pauses.",
    ),
    {"states": STATES, "enrolments": FOLDS},
)
