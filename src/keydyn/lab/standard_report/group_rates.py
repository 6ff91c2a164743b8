"""Fairness: error rates by the values of any column of the data, and differences between groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from keydyn.evaluation.rates.fairness import DIFFERENCES, LEAST_PEOPLE, group_differences, group_rates
from keydyn.keystrokes.schema import COLUMNS
from keydyn.lab.frame.report import Section
from keydyn.lab.frame.score_datasets import Scored
from keydyn.lab.frame.tables import DATASET, DETECTOR, Column, Table, fixed, rate_column

# Column → user → value.
Groups = Mapping[str, Mapping[str, Any]]


def groups_of(keystrokes: pd.DataFrame, columns: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The value of each user in each column; users without a value are left out.

    It is a `ValueError` if there is no such column, if a user has several values, or if all users have the
    same one.
    """
    found: dict[str, dict[str, Any]] = {}
    for column in dict.fromkeys(columns):
        further = [str(name) for name in keystrokes.columns if name not in COLUMNS]
        if column not in further:
            there = f"there are {', '.join(further)}" if further else "it has no further columns"
            raise ValueError(f"the recording has no column {column!r} to compare people by; {there}")
        pairs = keystrokes[["user", column]].drop_duplicates().dropna()
        several = pairs["user"][pairs["user"].duplicated()]
        if len(several):
            user = several.iloc[0]
            values = ", ".join(map(str, pairs.loc[pairs["user"] == user, column].tolist()[:3]))
            raise ValueError(
                f"people cannot be compared by {column!r}: user {user} has several values ({values})"
            )
        if pairs[column].nunique() < 2:
            raise ValueError(f"people cannot be compared by {column!r}: all have the same value, or none")
        found[column] = dict(zip(pairs["user"].astype(str), pairs[column].tolist(), strict=True))
    return found


def groups_section(scored: Scored, groups: Groups, seed: int = 0) -> Section:
    """A section with both tables and notes for reading them."""
    rates, differences = _frames(scored, groups, seed)
    known = {user for users in groups.values() for user in users}
    small = rates[~rates["enough"]]
    texts = [
        "Each detector has one threshold for everybody, where its two error rates are equal over all people. "
        "Impostors count for the group of the person they claim to be. Numbers with many values are divided "
        f"into thirds of the people. {len(known):,} people have a value."
    ]
    if len(small):
        names = dict.fromkeys(
            f"{row['column']} {row['group']} ({row['users']})" for _, row in small.iterrows()
        )
        texts.append(
            f"Groups of fewer than {LEAST_PEOPLE} people say more about these people than about the group. "
            f"They are shown, but are not part of the differences: {', '.join(names)}."
        )
    return Section("Groups of people", texts, [_rates_table(rates), _differences_table(differences)])


def _frames(scored: Scored, groups: Groups, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    rates, differences = [], []
    for (dataset, detector), scores in scored.items():
        for column, users in groups.items():
            labels = {"dataset": dataset, "detector": detector, "column": column}
            table = group_rates(scores, users, seed)
            rates.append(pd.DataFrame({**dict.fromkeys(labels), **table}).assign(**labels))
            enough = table[table["enough"]]
            figures = group_differences(enough) if len(enough) > 1 else dict.fromkeys(DIFFERENCES)
            differences.append(labels | {"groups": len(enough)} | figures)
    return pd.concat(rates, ignore_index=True), pd.DataFrame(differences)


def _rates_table(rates: pd.DataFrame) -> Table:
    columns = [
        DATASET,
        DETECTOR,
        Column("Column", "column"),
        Column("Group", "group"),
        Column("People", ("users", "enough"), lambda n, enough: f"{n:,}" if enough else f"{n:,}: too few"),
        rate_column("FNMR", "fnmr", "fnmr_trials"),
        rate_column("FMR", "fmr", "fmr_trials"),
        Column("EER, own threshold", "eer", lambda rate: f"{100 * rate:.1f} %" if rate == rate else "–"),
    ]
    note = "Means over people, with 95 % intervals (bootstrap over people)."
    return Table("groups", "Error rates by group", note, rates, columns, labels=4)


def _differences_table(differences: pd.DataFrame) -> Table:
    columns = [
        DATASET,
        DETECTOR,
        Column("Column", "column"),
        Column("Groups", "groups"),
        *(Column(title, name, fixed) for name, title in DIFFERENCES.items()),
    ]
    note = (
        "Fair is 0 for the standard deviation and GARBE, and 1 for SER, FDR, IR and SIR. SER: largest by "
        "smallest EER. FDR: 1 less the mean of the widest gaps in FMR and FNMR. IR: geometric mean of their "
        "largest by smallest. GARBE: mean of their Gini coefficients. SIR: FMR of impostors of the same "
        "group by that of others. A dash: too few groups, or a ratio to zero."
    )
    return Table("group_differences", "How far groups differ", note, differences, columns, labels=3)
