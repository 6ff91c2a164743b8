"""The users whom the population model recognises worst where queries are later, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from keydyn.evaluation.scores import Scores
from keydyn.lab.frame.names import dataset_name, detector_name
from keydyn.lab.frame.tables import DATASET, NONE, Column, Table, number_column
from keydyn.lab.population.changed_typing import PARTS
from keydyn.lab.population.measurements import POPULATION
from keydyn.lab.population.tables import Users

WORST = 0.1


def worst_users(
    users: Users, scores: Mapping[str, Scores], changes: pd.DataFrame, dataset: str
) -> pd.DataFrame:
    """All users of a dataset, the worst first: figures of each detector, whom they were taken for, changes.

    `scores` are those of the population model. `change` is that of the part of the later samples with the
    largest one, `moved` whether it exceeds the distance to the nearest other user.
    """
    of_user = changes[changes["dataset"] == dataset].set_index("user")
    largest = of_user.reset_index().sort_values("change").groupby("user").last()
    table = largest.drop(columns="dataset")
    for metric in ("acc", "eer"):
        for detector, values in users[dataset][metric].items():
            table[metric if detector == POPULATION else f"{metric}_{detector}"] = values
    table["moved"] = table["change"] > table["nearest"]
    taken = {user: _taken_for(scores[dataset], user) for user in table.index}
    table["taken_for"] = [taken[user][0] for user in table.index]
    table["taken_share"] = [taken[user][1] for user in table.index]
    return table.sort_values(["eer", "acc"], ascending=[False, True])


def worst_of(table: pd.DataFrame) -> pd.DataFrame:
    """The worst tenth of all users, one at least."""
    return table.head(int(np.ceil(WORST * len(table))))


def worst_table(table: pd.DataFrame, dataset: str, detectors: Sequence[str]) -> Table:
    """The worst tenth, and what happened to them."""
    frame = worst_of(table).reset_index().assign(dataset=dataset)
    figures = [
        number_column(
            f"{title}, {detector_name(detector)}",
            metric if detector == POPULATION else f"{metric}_{detector}",
        )
        for metric, title in (("acc", "Accuracy"), ("eer", "EER"))
        for detector in detectors
    ]
    columns = [
        *(DATASET, Column("User", "user"), *figures),
        Column("Mostly taken for", ("taken_for", "taken_share"), _taken),
        Column("Largest change", ("part", "interval", "hold"), _change),
        *(number_column("Change", "change", 2), number_column("Nearest", "nearest", 2)),
    ]
    return Table(
        "worst_users",
        "The users whom the population model recognises worst",
        f"The worst tenth by equal error rate. Later samples are divided into {PARTS} parts, in order of "
        "time; the one with the largest change since enrolment is shown. Change: root mean square over keys, "
        "of intervals and holds, in units of the usual spread. Nearest: the distance to the nearest other "
        "user at enrolment, in the same unit.",
        frame[["dataset", *(name for name in frame if name != "dataset")]],
        columns,
        labels=2,
    )


def _taken(name: str, share: float) -> str:
    return f"{name} ({share:.0%})" if name else NONE


def _change(part: float, interval: float, hold: float) -> str:
    return f"part {part:.0f}: intervals × {interval:.2f}, holds × {hold:.2f}"


def worst_words(table: pd.DataFrame, dataset: str) -> str:
    """Who fails and why, in sentences."""
    worst, rest = worst_of(table), table.iloc[len(worst_of(table)) :]
    correlations = [
        f"{spearmanr(table['eer'], table[name]).statistic:.2f}".replace("-", "−")
        for name in ("change", "nearest", "spread")
    ]
    others = [str(name) for name in table if str(name).startswith("eer_")]
    better = [int((worst["eer"] < worst[name]).sum()) for name in others]
    names = ", ".join(map(str, worst.index))
    return (
        f"In the later samples of {dataset_name(dataset)}, the worst tenth of all users are {names}. Some "
        f"time after enrolment, {int(worst['moved'].sum())} of these {len(worst)} type so differently that "
        "the change is larger than the distance to the nearest other user; of the others, "
        f"{int(rest['moved'].sum())} of {len(rest)} do. "
        "A user's equal error rate has a rank correlation of "
        f"{correlations[0]} with the change, of {correlations[1]} with the distance to the nearest other "
        f"user, and of {correlations[2]} with how irregular the later samples are. "
        + " ".join(
            f"The population model has a lower equal error rate than the "
            f"{detector_name(name.removeprefix('eer_'))} for {count} of the worst {len(worst)}."
            for name, count in zip(others, better, strict=True)
        )
    )


def _taken_for(scores: Scores, user: object) -> tuple[str, float]:
    """Who else wins most of the user's samples, and the share of them."""
    raw = scores.raw[scores.owners == user]
    winners = pd.Series(scores.users[np.nanargmax(raw, axis=1)])
    others = winners[winners != user].value_counts()
    return (str(others.index[0]), float(others.iloc[0] / len(winners))) if len(others) else ("", 0.0)
