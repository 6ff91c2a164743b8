"""Measures how typing changes between enrolment and use, and which users are therefore recognised worst.

Queries are later than training samples. Logarithms of times are compared key by key: the median of later
samples with the median at enrolment, in units of the usual spread on that key, which is the median over users
of their spread at enrolment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from keydyn.arrays import Floats, Integers
from keydyn.detectors import PopulationDetector
from keydyn.evaluation.protocols.protocol import Protocol
from keydyn.evaluation.scores import Scores
from keydyn.keystrokes.samples import Samples
from keydyn.lab.frame.names import dataset_name, detector_name
from keydyn.lab.frame.tables import DATASET, NONE, Column, Table, number_column
from keydyn.model.data.vocabulary import Types

if TYPE_CHECKING:
    from keydyn.lab.population.tables import Users


# The number of parts into which later samples are divided, from the earliest to the latest.
PARTS = 4
TIMES = ["interval", "hold"]
# The standard deviation of normal values in units of their median absolute deviation.
NORMAL = 1.4826
COLUMNS = ["user", "part", *TIMES, "change", "spread", "nearest"]


def typing_changes(samples: Samples, protocol: Protocol) -> pd.DataFrame:
    """One row of `COLUMNS` per user and part of the later samples; none if queries are not later.

    `interval` and `hold` are ratios to the times at enrolment, medians over keys. `change` is the root mean
    square of the change over keys and both times, `spread` the mean spread within the part, and `nearest` the
    distance at enrolment to the nearest other user; all three are in units of the usual spread.
    """
    splits, number = protocol.splits(samples), samples.numbers
    train, query = splits[0].train, splits[0].genuine
    if len(splits) > 1 or number[train].max() >= number[query].min():
        return pd.DataFrame(columns=COLUMNS)
    begin, end = int(number[query].min()), int(number[query].max()) + 1
    part = np.where(query, 1 + PARTS * (number - begin) // (end - begin), 0)
    some = train | query
    users = pd.unique(samples.users)
    centre, spread = _centres_and_spreads(samples[some], part[some], users)
    # A key may never have been typed, and the first key of a fixed text has no interval.
    there = np.isfinite(spread[:, 0]).any(axis=0)
    usual = np.full(there.shape, np.nan)
    usual[there] = np.nanmedian(spread[:, 0][:, there], axis=0)
    usual[usual <= 0.0] = np.nan
    nearest = _nearest(centre[:, 0] / usual)
    rows = []
    for u, k in np.argwhere(np.isfinite(centre).any(axis=(2, 3))):
        if k == 0:
            continue
        moved = centre[u, k] - centre[u, 0]
        ratios = np.exp(np.nanmedian(moved, axis=0))
        change, own = np.sqrt(np.nanmean((moved / usual) ** 2)), np.nanmean(spread[u, k] / usual)
        rows.append((str(users[u]), int(k), *ratios.tolist(), float(change), float(own), float(nearest[u])))
    return pd.DataFrame(rows, columns=COLUMNS)


def _centres_and_spreads(samples: Samples, part: Integers, users: Types) -> tuple[Floats, Floats]:
    """Medians of ln interval and ln hold, and deviations from them: (user, part, key, time); NaN if none."""
    sequences = samples.sequences
    names = list(sequences.feature_names or ())
    times = np.log(sequences.X[:, [names.index("tau"), names.index("duration")]])
    # A sample's first interval is unknown, whatever value replaces it.
    times[sequences.offsets[:-1], 0] = np.nan
    user = pd.Index(users).get_indexer(pd.Index(samples.users))
    by = [*(np.repeat(values, sequences.lengths) for values in (user, part)), sequences.codes]
    shape = (len(users), PARTS + 1, int(sequences.codes.max()) + 1, len(TIMES))
    centre, spread = np.full(shape, np.nan), np.full(shape, np.nan)
    for values, deviations in ((centre, False), (spread, True)):
        frame = pd.DataFrame(NORMAL * np.abs(times - centre[tuple(by)]) if deviations else times)
        medians = frame.groupby(by).median()
        places = (medians.index.get_level_values(level) for level in range(3))
        values[tuple(np.asarray(place) for place in places)] = medians.to_numpy()
    return centre, spread


def _nearest(centres: Floats) -> Floats:
    """The distance of each user's centres (U, keys, times) to the nearest other user's, over common keys."""
    flat = centres.reshape(len(centres), -1)
    apart: Floats = np.sqrt(np.nanmean((flat[:, None] - flat[None]) ** 2, axis=2))
    np.fill_diagonal(apart, np.inf)
    return np.asarray(apart.min(axis=1))


WORST = 0.1


def worst_users(
    users: Users, scores: Mapping[str, Scores], changes: pd.DataFrame, dataset: str
) -> pd.DataFrame:
    """All users of a dataset, the worst first, with figures by detector, confusions and changes.

    `scores` are those of the population model. `change` is the largest change of any part of the later
    samples; `moved` says whether it exceeds the distance to the nearest other user.
    """
    of_user = changes[changes["dataset"] == dataset].set_index("user")
    largest = of_user.reset_index().sort_values("change").groupby("user").last()
    table = largest.drop(columns="dataset")
    for metric in ("acc", "eer"):
        for detector, values in users[dataset][metric].items():
            table[metric if detector == PopulationDetector.name else f"{metric}_{detector}"] = values
    table["moved"] = table["change"] > table["nearest"]
    taken = {user: _taken_for(scores[dataset], user) for user in table.index}
    table["taken_for"] = [taken[user][0] for user in table.index]
    table["taken_share"] = [taken[user][1] for user in table.index]
    return table.sort_values(["eer", "acc"], ascending=[False, True])


def worst_of(table: pd.DataFrame) -> pd.DataFrame:
    """The worst tenth of all users, at least one."""
    return table.head(int(np.ceil(WORST * len(table))))


def worst_table(table: pd.DataFrame, dataset: str, detectors: Sequence[str]) -> Table:
    """A table of the worst tenth of users, with their confusions and changes."""
    frame = worst_of(table).reset_index().assign(dataset=dataset)
    figures = [
        number_column(
            f"{title}, {detector_name(detector)}",
            metric if detector == PopulationDetector.name else f"{metric}_{detector}",
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
    """Sentences about the users who fail, and likely reasons."""
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
    """The other user who wins most of the user's samples, and the share of them."""
    raw = scores.raw[scores.owners == user]
    winners = pd.Series(scores.users[np.nanargmax(raw, axis=1)])
    others = winners[winners != user].value_counts()
    return (str(others.index[0]), float(others.iloc[0] / len(winners))) if len(others) else ("", 0.0)
