"""Tables of results: exact values for a CSV file, and the same as people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from keydyn.atomic import write_text
from keydyn.evaluation.rates.confidence import Estimate, Rate
from keydyn.lab.frame.names import dataset_name, detector_name

DECIMALS = 6
NONE = "–"
# How the text of a rate begins that there are too few trials for.
NOT_SUPPORTED = "not supported"
MEASURED, PUBLISHED = "measured", "published"
# A file name on every system; it is also the label in LaTeX and the address in a report.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")


@dataclass(frozen=True, eq=False)
class Table:
    """A table by its name.

    Attributes
    ----------
    name : the stem of its files
    title, note : what it shows, in one line; what one must know to read it, which may be empty
    frame : the values, for the CSV file
    shown : the same values as text, one row per line
    bold, published : booleans in the shape of `shown`: cells set in bold, cells that are published figures
    labels : how many of the first columns of `shown` say what a row is
    """

    name: str
    title: str
    note: str
    frame: pd.DataFrame
    shown: pd.DataFrame
    bold: pd.DataFrame | None = None
    published: pd.DataFrame | None = None
    labels: int = 1

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"a table's name is letters, digits and _ . + -, not {self.name!r}")
        if not 0 <= self.labels <= self.shown.shape[1]:
            raise ValueError(
                f"table {self.name}: {self.labels} columns of labels, but {self.shown.shape[1]} in all"
            )
        for name, marked in (("bold", self.bold), ("published", self.published)):
            if marked is not None and marked.shape != self.shown.shape:
                raise ValueError(
                    f"table {self.name}: {name} has the shape {marked.shape}, shown {self.shown.shape}"
                )


def without_empty_columns(table: Table) -> Table:
    """The table as it is shown without columns of which nothing can be estimated; the note names them."""
    empty = [
        place
        for place in range(table.labels, table.shown.shape[1])
        if all(text == NONE or text.startswith(NOT_SUPPORTED) for text in table.shown.iloc[:, place])
    ]
    if not empty or len(table.shown) == 0:
        return table
    kept = [place for place in range(table.shown.shape[1]) if place not in empty]
    names = ", ".join(str(table.shown.columns[place]) for place in empty)
    bold, published = (
        None if marked is None else marked.iloc[:, kept] for marked in (table.bold, table.published)
    )
    note = f"{table.note} Columns that these samples cannot support are not shown ({names}).".strip()
    return replace(table, note=note, shown=table.shown.iloc[:, kept], bold=bold, published=published)


def write_table(table: Table, folder: str | Path) -> list[Path]:
    """Write `<name>.csv`, `.md` and `.tex`; returns their paths."""
    from keydyn.lab.frame.table_text import latex, markdown

    texts = {".csv": csv_text(table.frame), ".md": markdown(table), ".tex": latex(table)}
    paths = [Path(folder) / f"{table.name}{ending}" for ending in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        write_text(path, text)
    return paths


def csv_text(frame: pd.DataFrame) -> str:
    """CSV with a fixed number of decimals, so that the same values give the same bytes; missing is empty."""
    columns = [frame.iloc[:, place].tolist() for place in range(frame.shape[1])]
    rows = [map(str, frame.columns), *(map(_exact, row) for row in zip(*columns, strict=True))]
    return "".join(",".join(map(_quoted, row)) + "\n" for row in rows)


def mean_and_deviation(mean: float | None, std: float | None, digits: int = 3) -> str:
    """As in the paper's tables: 0.887 (0.175)."""
    if is_missing(mean):
        return NONE
    return f"{fixed(mean, digits)} ({fixed(std, digits)})"


def fixed(value: Any, digits: int = 3) -> str:
    """A number with this many decimals, never −0; a dash where it is missing."""
    if is_missing(value):
        return NONE
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not text.strip("-0.") else text


def as_it_is(value: Any, digits: int = 3) -> str:
    """A value of any kind; a number that is not whole has this many decimals."""
    if is_missing(value):
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    return fixed(value, digits) if isinstance(value, float) else str(value)


def is_missing(value: Any) -> bool:
    """None, NaN or pandas' own missing value."""
    return (
        value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and math.isnan(value))
    )


@dataclass(frozen=True)
class Column:
    """A column as people read it.

    Attributes
    ----------
    title : its heading
    values : the column of the frame that a cell is written from, or several
    write : how these values are written
    bold : whether a cell is set in bold, by its row of the frame
    """

    title: str
    values: str | tuple[str, ...]
    write: Callable[..., str] = as_it_is
    bold: Callable[[Mapping[Hashable, Any]], bool] | None = None


DATASET = Column("Dataset", "dataset", dataset_name)
DETECTOR = Column("Detector", "detector", detector_name)


def table_of(
    name: str, title: str, note: str, frame: pd.DataFrame, columns: Sequence[Column], labels: int = 1
) -> Table:
    """A table with a line per row of the frame."""
    rows = frame.to_dict("records")
    names = [(one.values,) if isinstance(one.values, str) else one.values for one in columns]
    shown = [
        [one.write(*(row[value] for value in values)) for one, values in zip(columns, names, strict=True)]
        for row in rows
    ]
    bold = [[one.bold is not None and bool(one.bold(row)) for one in columns] for row in rows]
    headings = [one.title for one in columns]
    texts, marked = (pd.DataFrame(lines, columns=headings) for lines in (shown, bold))
    return Table(name, title, note, frame, texts, marked, labels=labels)


def mean_column(
    title: str, name: str, digits: int = 3, bold: Callable[[Mapping[Hashable, Any]], bool] | None = None
) -> Column:
    """NAME_mean and NAME_std: 0.887 (0.175)."""
    return Column(title, (f"{name}_mean", f"{name}_std"), partial(mean_and_deviation, digits=digits), bold)


def rate_column(title: str, name: str, trials: str, digits: int = 1) -> Column:
    """NAME with its interval NAME_low to NAME_high, of as many trials as the column `trials` says."""
    return Column(title, (name, f"{name}_low", f"{name}_high", trials), partial(_rate, digits=digits))


def estimate_column(
    title: str,
    name: str,
    digits: int = 3,
    scale: float = 1.0,
    bold: Callable[[Mapping[Hashable, Any]], bool] | None = None,
) -> Column:
    """NAME times the scale with its interval NAME_low to NAME_high: 31 (24–44)."""

    def write(value: float, low: float, high: float) -> str:
        return NONE if is_missing(value) else Estimate(value, low, high).times(scale).text(digits)

    return Column(title, (name, f"{name}_low", f"{name}_high"), write, bold)


def number_column(title: str, name: str, digits: int = 3) -> Column:
    """A number with this many decimals."""
    return Column(title, name, partial(fixed, digits=digits))


def share_column(title: str, name: str) -> Column:
    """A share in per cent: 21.2 %."""
    return Column(title, name, lambda share: f"{100 * share:.1f} %")


def _rate(value: Any, low: Any, high: Any, trials: Any, digits: int) -> str:
    value, low, high = (None if is_missing(one) else one for one in (value, low, high))
    return NONE if value is None else Rate(value, low, high, int(trials)).text(digits)


def plain_table(
    name: str, title: str, note: str, frame: pd.DataFrame, digits: int = 3, labels: int = 1
) -> Table:
    """The frame as it is; shown with this many decimals, and with spaces for underscores in its headings."""
    write = partial(as_it_is, digits=digits)
    columns = [Column(str(each).replace("_", " "), str(each), write) for each in frame.columns]
    return table_of(name, title, note, frame, columns, labels)


def published_beside(
    name: str,
    title: str,
    note: str,
    frame: pd.DataFrame,
    metric: str,
    best: Collection[tuple[str, str]] = (),
    digits: int = 3,
    marks: Mapping[tuple[str, str], str] | None = None,
) -> Table:
    """A table of the paper: a dataset's measured figures in one line, the published ones in the next.

    `frame` has a row per dataset and detector, with the columns dataset, detector, METRIC_mean, METRIC_std,
    published_METRIC_mean and published_METRIC_std. Cells in `best`, (dataset, detector), are bold; `marks`
    are signs that follow a measured cell and that the note explains. Datasets and detectors keep their
    order. A dataset without published figures has one line.
    """
    ours, theirs = ([f"{prefix}{metric}_{part}" for part in ("mean", "std")] for prefix in ("", "published_"))
    columns = ["dataset", "detector", *ours, *theirs]
    absent = [column for column in columns if column not in frame.columns]
    if absent:
        raise ValueError(f"table {name}: no column {', '.join(absent)}")
    keys = list(zip(frame["dataset"], frame["detector"], strict=True))
    twice = [key for number, key in enumerate(keys) if key in keys[:number]]
    if twice:
        raise ValueError(f"table {name}: two rows for {' and '.join(map(str, twice[0]))}")
    measured = _cells(frame, keys, ours, digits)
    figures = _cells(frame, keys, theirs, digits)
    detectors = list(dict.fromkeys(frame["detector"]))
    rows, bold, published = [], [], []
    for dataset in dict.fromkeys(frame["dataset"]):
        row = [(dataset, detector) for detector in detectors]
        texts = [measured.get(key, NONE) + (marks or {}).get(key, "") for key in row]
        rows.append([dataset_name(dataset), MEASURED, *texts])
        bold.append([False, False, *(key in best for key in row)])
        published.append([False] * (2 + len(row)))
        texts = [figures.get(key, NONE) for key in row]
        if set(texts) != {NONE}:
            rows.append([dataset_name(dataset), PUBLISHED, *texts])
            bold.append([False] * (2 + len(row)))
            published.append([False] + [True] * (1 + len(row)))
    headings = ["Dataset", "Source", *map(detector_name, detectors)]
    return Table(
        name,
        title,
        note,
        frame[columns].assign(best=[key in best for key in keys]).reset_index(drop=True),
        pd.DataFrame(rows, columns=headings),
        pd.DataFrame(bold, columns=headings),
        pd.DataFrame(published, columns=headings),
        labels=2,
    )


def _cells(
    frame: pd.DataFrame, keys: list[tuple[str, str]], columns: list[str], digits: int
) -> dict[tuple[str, str], str]:
    mean, std = (frame[column].tolist() for column in columns)
    return {key: mean_and_deviation(mean[n], std[n], digits) for n, key in enumerate(keys)}


def _exact(value: Any) -> str:
    if is_missing(value):
        return ""
    return fixed(value, DECIMALS) if isinstance(value, float) else str(value)


def _quoted(text: str) -> str:
    # The csv module leaves a lone carriage return bare, which readers take for the end of the line.
    return '"' + text.replace('"', '""') + '"' if re.search('[,"\r\n]', text) else text
