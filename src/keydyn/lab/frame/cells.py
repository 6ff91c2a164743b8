"""Cells of tables in sentences: their numbers, and the least and the largest of several."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from keydyn.lab.frame.markdown_rows import Row

# A percent sign stays with its number.
PERCENT = "\u00a0%"
NUMBER = re.compile(r"[-−+]?\d[\d,]*(?:\.\d+)?")


def named(dataset: str) -> str:
    """The paper's name of a dataset."""
    from keydyn.lab.frame.names import dataset_name

    return dataset_name(dataset)


def plain(cell: str) -> str:
    """A cell without its marks of emphasis."""
    return cell.strip("*†")


def is_bold(cell: str) -> bool:
    """Whether a cell is set in bold: not significantly worse than the best."""
    return cell.startswith("**")


def has_number(cell: str) -> bool:
    """Whether anything could be measured: a dash says that it could not."""
    return NUMBER.search(cell) is not None


def number(cell: str) -> float:
    """The first number in a cell; NaN if there is none."""
    found = NUMBER.search(cell)
    return float(found[0].replace("−", "-").replace(",", "")) if found else float("nan")


def estimate(cell: str) -> str:
    """What stands before a deviation or an interval in brackets: 20.79 of "20.79 (9.04)"."""
    text = plain(cell).split(" (")[0].replace(" %", PERCENT)
    return text.replace("< ", "less than ").replace("> ", "more than ")


def percent(cell: str) -> str:
    """A share between 0 and 1 as a percentage: 88.7 % of "0.887 (0.175)"."""
    return f"{100 * number(cell):.1f}".removesuffix(".0") + PERCENT


def column(rows: Iterable[Row], name: str, label: str = "Dataset") -> dict[str, str]:
    """The cells of a column that have a number, by their row's label."""
    return {row[label]: row[name] for row in rows if has_number(row.get(name, ""))}


def span(cells: Mapping[str, str], text: Callable[[str], str] = estimate) -> str:
    """The least and the largest of some cells: "60.7 % (Mobile) to 97.1 % (Mobile+)"."""
    if not cells:
        return "an unknown number"
    ends = (f(cells, key=lambda name: number(cells[name])) for f in (min, max))
    return " to ".join(dict.fromkeys(f"{text(cells[name])} ({named(name)})" for name in ends))


def of_all(part: int, whole: int, what: str) -> str:
    """A count in words: "all 6 datasets", "4 of 5 datasets", "no dataset"."""
    if not part:
        return f"no {what}"
    if part < whole:
        return f"{part} of {whole} {what}s"
    return {1: f"the only {what}", 2: f"both {what}s"}.get(whole, f"all {whole} {what}s")


def listed(texts: Sequence[str]) -> str:
    """Texts in a sentence: a, b and c."""
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1]))) if texts else ""
