"""Formats names and values for tables and sentences: datasets, detectors, shares, ranges and counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import pandas as pd

from keydyn.datasets.published.catalogue import CATALOGUE
from keydyn.detectors.detector import detector_title
from keydyn.evaluation.rates.confidence import Rate


def dataset_name(name: object) -> str:
    """The paper's name of a dataset; any other name is shown as it is.

    A plus sign after the name of a dataset with sensors means that they are used: "mobile+". Text after a
    comma is kept: "fable, open set".
    """
    text, comma, rest = str(name).partition(",")
    entry = CATALOGUE.get(text.removesuffix("+"))
    if entry is None or (text.endswith("+") and not entry.sensors):
        return str(name)
    return entry.paper_name + ("+" if text.endswith("+") else "") + comma + rest


def detector_name(name: object) -> str:
    """The title of a detector, including those of plug-ins; any other name is shown as it is."""
    return detector_title(str(name)) or str(name)


# The suffix of a dataset's name when its impostors are strangers.
OPEN = ", open set"
# A non-breaking space keeps the percent sign with its number.
PERCENT = "\u00a0%"
Figure = TypeVar("Figure")


def percent(share: float) -> str:
    """A share between 0 and 1 as a percentage, rounded as in the tables: 0.8871 is shown as 88.7 %."""
    return f"{100 * round(share, 3):.1f}".removesuffix(".0") + PERCENT


def rate_words(rate: Rate, digits: int = 1) -> str:
    """A rate without its interval: "4.2 %", or "less than 3.8 %" where nothing was observed."""
    text = rate.figure(digits).replace(" %", PERCENT)
    return text.replace("< ", "less than ").replace("> ", "more than ")


def rate_of(row: Mapping[Any, Any], name: str, trials: str) -> Rate:
    """The rate in a row of a table, with its trials from the column `trials`; any of them may be missing."""
    value, low, high = (row.get(f"{name}{end}") for end in ("", "_low", "_high"))
    value, low, high = (None if pd.isna(one) else one for one in (value, low, high))
    counted = row.get(trials)
    return Rate(value, low, high, 0 if pd.isna(counted) else int(counted))


def size_of(rate: Rate) -> float:
    """The number that rates are ordered by: the rate, or its bound if it has one."""
    return next(one for one in (rate.below, rate.above, rate.value, 0.0) if one is not None)


def figures_of(rows: pd.DataFrame, column: str) -> dict[str, float]:
    """The values in a column by dataset, without missing ones."""
    known = rows[rows[column].notna()]
    return dict(zip(known["dataset"], known[column], strict=True))


def span(
    figures: Mapping[str, Figure], text: Callable[[Figure], str], size: Callable[[Figure], Any] | None = None
) -> str:
    """The least and the greatest of the datasets' figures: "60.7 % (Mobile) to 97.1 % (Mobile+)".

    Figures that are not numbers are ordered by their `size`.
    """
    if not figures:
        return "an unknown number"
    sizes: dict[str, Any] = {name: size(figure) if size else figure for name, figure in figures.items()}
    ends = (end(sizes, key=sizes.__getitem__) for end in (min, max))
    return " to ".join(dict.fromkeys(f"{text(figures[name])} ({dataset_name(name)})" for name in ends))


def of_all(part: int, whole: int, what: str) -> str:
    """A count as a phrase: "all 6 datasets", "4 of 5 datasets", "no dataset"."""
    if not part:
        return f"no {what}"
    if part < whole:
        return f"{part} of {whole} {what}s"
    return {1: f"the only {what}", 2: f"both {what}s"}.get(whole, f"all {whole} {what}s")


def capital(text: str) -> str:
    """The text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def listed(texts: Sequence[str]) -> str:
    """Texts joined as in a sentence: a, b and c."""
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1]))) if texts else ""


def lead_of(facts: Mapping[str, Any]) -> list[str]:
    """The opening paragraphs of a report: where its figures come from, and the protocol used."""
    lead = ["Every figure here was measured by this run unless it is labelled as published."]
    by_text: dict[str, list[str]] = {}
    for dataset, protocol in facts.get("protocols", {}).items():
        text = f"{protocol['title']}: {protocol['split']}. {capital(protocol['impostors'])}."
        by_text.setdefault(text, []).append(dataset_name(dataset))
    if len(by_text) == 1:
        return lead + list(by_text)
    return lead + [f"{text} This is for {listed(names)}." for text, names in by_text.items()]
