"""The table of error rates by group."""

from __future__ import annotations

import pandas as pd

from keydyn.evaluation.rates.confidence import Rate
from keydyn.evaluation.rates.fairness import ERRORS
from keydyn.lab.frame.tables import NONE, Table


def fairness_table(rates: pd.DataFrame, name: str, title: str, note: str) -> Table:
    """The rates as people read them, a group in each line."""
    shown = []
    for (column, group), rows in rates.groupby(["column", "group"], sort=False):
        line = {
            "By": str(column).replace("_", " ") or NONE,
            "Group": str(group),
            "Users": str(rows["users"].max()),
        }
        for error, heading in ERRORS.items():
            found = rows[rows["error"] == error]
            line[heading] = NONE if len(found) == 0 else _rate(found.iloc[0]).text()
        shown.append(line)
    return Table(name, title, note, rates, pd.DataFrame(shown), labels=3)


def _rate(row: pd.Series) -> Rate:
    low, high = (None if pd.isna(row[name]) else float(row[name]) for name in ("low", "high"))
    return Rate(float(row["rate"]), low, high, int(row["trials"]))
