"""How many changes were noticed, by area and by kind, and which were not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from scipy.stats import binomtest

Row = dict[str, str]


def report(rows: list[Row]) -> str:
    """Tables in Markdown, with Wilson's intervals of 95 %, and the survivors."""
    by_area = _table("area", rows, lambda row: row["area"])
    by_kind = _table("kind", rows, lambda row: row["kind"])
    survivors = [
        f"- `{row['change']}` (was `{row['before']}`)" for row in rows if row["outcome"] == "survived"
    ]
    return "\n".join([*by_area, "", *by_kind, "", "Survivors:", *survivors])


def _table(title: str, rows: list[Row], group: Callable[[Row], str]) -> list[str]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[group(row)].append(row)
    groups = dict(sorted(groups.items())) | {"all": rows}
    lines = [
        f"| {title} | changes | noticed | share | 95 % interval |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, members in groups.items():
        noticed = sum(row["outcome"] == "noticed" for row in members)
        if members:
            found = binomtest(noticed, len(members)).proportion_ci(method="wilson")
            share = f"{100 * noticed / len(members):.0f} %"
            interval = f"{100 * found.low:.0f}–{100 * found.high:.0f} %"
            lines.append(f"| {name} | {len(members)} | {noticed} | {share} | {interval} |")
    return lines
