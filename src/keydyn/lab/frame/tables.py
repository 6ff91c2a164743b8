"""Tables of results: exact values for a CSV file, and the same as people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
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


# The values of a line by name, and whether its cell is marked.
Line = Mapping[Any, Any]
Mark = Callable[[Line], bool]


@dataclass(frozen=True, eq=False)
class Table:
    """A table by its name: values, and the columns in which people read them.

    Attributes
    ----------
    name : the stem of its files
    title, note : what it shows, in one line; what one must know to read it, which may be empty
    frame : the values, for the CSV file
    columns : what is shown of each line, and how it is written
    labels : how many of the first columns say what a line is
    lines : the values of each line; the rows of the frame unless given
    across : a column of the frame; rows that differ in it, and not in their labels, stand side by side in one
        line, and each `Column` says of which of them it is
    """

    name: str
    title: str
    note: str
    frame: pd.DataFrame
    columns: Sequence[Column]
    labels: int = 1
    lines: Sequence[Line] | None = None
    across: str = ""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"a table's name is letters, digits and _ . + -, not {self.name!r}")
        if not 0 <= self.labels <= len(self.columns):
            raise ValueError(
                f"table {self.name}: {self.labels} columns of labels, but {len(self.columns)} in all"
            )

    @cached_property
    def shown(self) -> pd.DataFrame:
        """All cells as text, one row per line."""
        return self._each(lambda column, line: NONE if line is None else column.text(line))

    @cached_property
    def bold(self) -> pd.DataFrame:
        """Which cells are set in bold, in the shape of `shown`."""
        return self._each(lambda column, line: _is(column.bold, line))

    @cached_property
    def published(self) -> pd.DataFrame:
        """Which cells are published figures, likewise."""
        return self._each(lambda column, line: _is(column.published, line))

    def _each(self, cell: Callable[[Column, Line | None], Any]) -> pd.DataFrame:
        rows = self.frame.to_dict("records") if self.lines is None else self.lines
        names = (
            [name for column in self.columns[: self.labels] for name in column.names] if self.across else []
        )
        lines: dict[Any, dict[Any, Line]] = {}
        for number, row in enumerate(rows):
            line = lines.setdefault(tuple(row[name] for name in names) or number, {None: row})
            if self.across:
                line[row[self.across]] = row
        cells = [[cell(column, line.get(column.of)) for column in self.columns] for line in lines.values()]
        return pd.DataFrame(cells, columns=[column.title for column in self.columns])


def _is(mark: Mark | None, line: Line | None) -> bool:
    return mark is not None and line is not None and bool(mark(line))


def without_empty_columns(table: Table) -> Table:
    """The table as it is shown without columns of which nothing can be estimated; the note names them."""
    empty = [
        column.title
        for place, column in enumerate(table.columns)
        if place >= table.labels
        and all(text == NONE or text.startswith(NOT_SUPPORTED) for text in table.shown.iloc[:, place])
    ]
    if not empty or len(table.shown) == 0:
        return table
    note = f"{table.note} Columns that these samples cannot support are not shown ({', '.join(empty)})."
    kept = [column for column in table.columns if column.title not in empty]
    return replace(table, note=note.strip(), columns=kept)


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
    values : the value of the line that a cell is written from, or several
    write : how these values are written
    bold, published : whether a cell is set in bold, and whether it is a published figure
    of : where rows stand side by side, that of the row that it is written from; None for the first
    """

    title: str
    values: str | tuple[str, ...]
    write: Callable[..., str] = as_it_is
    bold: Mark | None = None
    published: Mark | None = None
    of: Any = None

    @property
    def names(self) -> tuple[str, ...]:
        """The values of a line that it is written from."""
        return (self.values,) if isinstance(self.values, str) else self.values

    def text(self, line: Line) -> str:
        """The cell of a line."""
        return self.write(*(line[name] for name in self.names))


DATASET = Column("Dataset", "dataset", dataset_name)
DETECTOR = Column("Detector", "detector", detector_name)


def mean_column(title: str, name: str, digits: int = 3, **marks: Mark) -> Column:
    """NAME_mean and NAME_std: 0.887 (0.175)."""
    write = partial(mean_and_deviation, digits=digits)
    return Column(title, (f"{name}_mean", f"{name}_std"), write, **marks)


def figure_column(title: str, name: str, *digits: int) -> Column:
    """A figure that has a text of its own, such as a `Rate`; a dash where there is none."""
    return Column(title, name, lambda figure: NONE if figure is None else figure.text(*digits))


def estimate_of(row: Line, name: str) -> Estimate:
    """The figure NAME of a line with its interval NAME_low to NAME_high."""
    return Estimate(*(row[column] for column in with_interval(name)))


def with_interval(name: str) -> tuple[str, str, str]:
    """The columns of a figure: NAME with its interval NAME_low to NAME_high."""
    return name, f"{name}_low", f"{name}_high"


def rate_column(title: str, name: str, trials: str, digits: int = 1) -> Column:
    """NAME with its interval NAME_low to NAME_high, of as many trials as the column `trials` says."""
    return Column(title, (*with_interval(name), trials), partial(rate_text, digits=digits))


def estimate_column(title: str, name: str, digits: int = 3, scale: float = 1.0, **marks: Mark) -> Column:
    """NAME times the scale with its interval NAME_low to NAME_high: 31 (24–44)."""

    def write(value: float, low: float, high: float) -> str:
        return NONE if is_missing(value) else Estimate(value, low, high).times(scale).text(digits)

    return Column(title, with_interval(name), write, **marks)


def number_column(title: str, name: str, digits: int = 3) -> Column:
    """A number with this many decimals."""
    return Column(title, name, partial(fixed, digits=digits))


def p_column(title: str, name: str) -> Column:
    """A p-value."""
    return Column(title, name, lambda p: NONE if is_missing(p) else "< 0.001" if p < 0.001 else f"{p:.3f}")


def share_column(title: str, name: str) -> Column:
    """A share in per cent: 21.2 %."""
    return Column(title, name, lambda share: f"{100 * share:.1f} %")


def rate_text(value: Any, low: Any, high: Any, trials: Any, digits: int = 1) -> str:
    """A `Rate` as text; a dash where it is missing."""
    value, low, high = (None if is_missing(one) else one for one in (value, low, high))
    return NONE if value is None else Rate(value, low, high, int(trials)).text(digits)


def plain_table(
    name: str, title: str, note: str, frame: pd.DataFrame, digits: int = 3, labels: int = 1
) -> Table:
    """The frame as it is; shown with this many decimals, and with spaces for underscores in its headings."""
    write = partial(as_it_is, digits=digits)
    columns = [Column(str(each).replace("_", " "), str(each), write) for each in frame.columns]
    return Table(name, title, note, frame, columns, labels)


def is_published(line: Line) -> bool:
    """Whether a line has published figures, by its value `source`."""
    return bool(line["source"] == PUBLISHED)


def published_beside(
    name: str, title: str, note: str, frame: pd.DataFrame, metric: str, digits: int = 3
) -> Table:
    """A table of the paper: a dataset's measured figures in one line, the published ones in the next.

    `frame` has a row per dataset and detector, with the columns dataset, detector, METRIC_mean, METRIC_std,
    published_METRIC_mean and published_METRIC_std. If it has a column `best`, these cells are bold; `mark` is
    a sign that follows a measured cell and that the note explains. Datasets and detectors keep their order. A
    dataset without published figures has one line.
    """
    ours, theirs = ([f"{prefix}{metric}_{part}" for part in ("mean", "std")] for prefix in ("", "published_"))
    columns = ["dataset", "detector", *ours, *theirs]
    absent = [column for column in columns if column not in frame.columns]
    if absent:
        raise ValueError(f"table {name}: no column {', '.join(absent)}")
    twice = frame[frame.duplicated(["dataset", "detector"])]
    if len(twice):
        raise ValueError(f"table {name}: two rows for {' and '.join(twice[['dataset', 'detector']].iloc[0])}")
    values = frame[columns].assign(best=frame.get("best", False))
    marked = values.assign(mark=frame.get("mark", "")).to_dict("records")
    rows = {(row["dataset"], row["detector"]): row for row in marked}
    detectors = list(dict.fromkeys(frame["detector"]))
    lines: list[Line] = []
    for dataset in dict.fromkeys(frame["dataset"]):
        for source, (mean, std) in ((MEASURED, ours), (PUBLISHED, theirs)):
            line = {"dataset": dataset, "source": source}
            for detector in detectors:
                row = rows.get((dataset, detector), {})
                line |= {f"{detector}_mean": row.get(mean), f"{detector}_std": row.get(std)}
                line |= {f"{detector}_{sign}": row.get(sign) for sign in ("best", "mark")}
            if source == MEASURED or not all(is_missing(line[f"{detector}_mean"]) for detector in detectors):
                lines.append(line)

    def of(detector: str) -> Column:
        def text(mean: float | None, std: float | None, mark: str | None, source: str) -> str:
            sign = mark or "" if source == MEASURED else ""
            return mean_and_deviation(mean, std, digits) + sign

        return Column(
            detector_name(detector),
            (f"{detector}_mean", f"{detector}_std", f"{detector}_mark", "source"),
            text,
            lambda line: bool(line[f"{detector}_best"]) and not is_published(line),
            is_published,
        )

    shown = [DATASET, Column("Source", "source", published=is_published), *map(of, detectors)]
    return Table(name, title, note, values.reset_index(drop=True), shown, labels=2, lines=lines)


def _exact(value: Any) -> str:
    if is_missing(value):
        return ""
    return fixed(value, DECIMALS) if isinstance(value, float) else str(value)


def _quoted(text: str) -> str:
    # The csv module leaves a lone carriage return bare, which readers take for the end of the line.
    return '"' + text.replace('"', '""') + '"' if re.search('[,"\r\n]', text) else text
