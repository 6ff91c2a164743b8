"""Users who are likely the same person: named, and not counted as impostors of each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from keydyn.arrays import Integers
from keydyn.keystrokes.quality import twice_in_words


def twice_facts(pairs: pd.DataFrame, counted: bool) -> dict[str, Any]:
    """The pairs for run.json, and whether they count as impostors of each other."""
    known = pairs.assign(user=pairs["user"].astype(str), other=pairs["other"].astype(str))
    known = known.astype(object).where(known.notna(), None)
    return {"pairs": known.to_dict("records"), "counted as impostors": counted}


def without_twice(table: pa.Table, facts: Mapping[str, Any]) -> pa.Table:
    """Scores or ranks, without comparisons of users who are likely the same person unless these count."""
    twice = facts.get("twice", {})
    pairs = [] if twice.get("counted as impostors") else twice.get("pairs", [])
    if not pairs:
        return table
    names = pd.unique(np.array([(pair["user"], pair["other"]) for pair in pairs], dtype=object).ravel())
    same = np.zeros((len(names) + 1, len(names) + 1), dtype=bool)
    place = {name: n for n, name in enumerate(names)}
    for pair in pairs:
        one, other = place[pair["user"]], place[pair["other"]]
        same[one, other] = same[other, one] = True
    typist, claimed = (_places(table[name].to_pandas(), place) for name in ("user", "reference"))
    return table.filter(pa.array(~same[typist, claimed]))


def _places(column: pd.Series[Any], place: Mapping[str, int]) -> Integers:
    """The place of each row's user; users in no pair have the last place."""
    codes, names = pd.factorize(column)
    return np.array([place.get(str(name), -1) for name in names], dtype=np.int64)[codes]


def twice_paragraphs(facts: Mapping[str, Any]) -> list[str]:
    """What the report says of them."""
    twice = facts.get("twice", {})
    if not twice.get("pairs"):
        return []
    words = twice_in_words(pd.DataFrame(twice["pairs"]).astype({"minutes": float}))
    counted = "count" if twice["counted as impostors"] else "do not count"
    return [f"{'; '.join(words)}. They {counted} as impostors of each other in the tables and figures."]
