"""Tables of results, which hold exact values for a CSV file and the formatted cells that people read."""

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
# The beginning of a rate's text when there are too few trials to support it.
NOT_SUPPORTED = "not supported"
MEASURED, PUBLISHED = "measured", "published"
# Valid as a file name on every system, as a LaTeX label and as an address in a report.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")


# The values of a line by name, and a function that says whether a cell of it is marked.
Line = Mapping[Any, Any]
Mark = Callable[[Line], bool]


@dataclass(frozen=True, eq=False)
class Table:
    """A named table: its values, and the columns shown to readers.

    Attributes
    ----------
    name : stem of the table's file names
    title, note : what the table shows, in one line; how to read it, which may be empty
    frame : the values, for the CSV file
    columns : the columns shown, and how their cells are written
    labels : the number of leading columns that are labels
    lines : the values of each line; by default the rows of the frame
    across : a column of the frame; rows that have the same labels but differ in this column are shown side by
        side in one line, and the attribute `of` of each `Column` selects one of them
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
        """Whether each cell is set in bold, in the shape of `shown`."""
        return self._each(lambda column, line: _is(column.bold, line))

    @cached_property
    def published(self) -> pd.DataFrame:
        """Whether each cell holds a published figure, in the shape of `shown`."""
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
    """The table without columns in which nothing could be estimated; the note lists them."""
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
    """Write `<name>.csv`, `.md` and `.tex`, and return their paths."""
    from keydyn.lab.frame.table_text import latex, markdown

    texts = {".csv": csv_text(table.frame), ".md": markdown(table), ".tex": latex(table)}
    paths = [Path(folder) / f"{table.name}{ending}" for ending in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        write_text(path, text)
    return paths


def csv_text(frame: pd.DataFrame) -> str:
    """CSV with a fixed number of decimals, so that equal values give equal bytes; missing ones are empty."""
    columns = [frame.iloc[:, place].tolist() for place in range(frame.shape[1])]
    rows = [map(str, frame.columns), *(map(_exact, row) for row in zip(*columns, strict=True))]
    return "".join(",".join(map(_quoted, row)) + "\n" for row in rows)


def mean_and_deviation(mean: float | None, std: float | None, digits: int = 3) -> str:
    """Mean and standard deviation as in the paper's tables: 0.887 (0.175)."""
    if is_missing(mean):
        return NONE
    return f"{fixed(mean, digits)} ({fixed(std, digits)})"


def fixed(value: Any, digits: int = 3) -> str:
    """A number with this many decimals, never −0; a dash if it is missing."""
    if is_missing(value):
        return NONE
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not text.strip("-0.") else text


def as_it_is(value: Any, digits: int = 3) -> str:
    """A value of any kind as text; floating-point numbers get this many decimals."""
    if is_missing(value):
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    return fixed(value, digits) if isinstance(value, float) else str(value)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or one of pandas' missing values."""
    return (
        value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and math.isnan(value))
    )


@dataclass(frozen=True)
class Column:
    """A column as it is shown to readers.

    Attributes
    ----------
    title : the heading
    values : name of the line's value that a cell is written from, or several names
    write : converts these values to text
    bold, published : say whether a cell is set in bold, and whether it holds a published figure
    of : if rows are shown side by side, the value of `across` in the row to show; None for the first
    """

    title: str
    values: str | tuple[str, ...]
    write: Callable[..., str] = as_it_is
    bold: Mark | None = None
    published: Mark | None = None
    of: Any = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the line's values that a cell is written from."""
        return (self.values,) if isinstance(self.values, str) else self.values

    def text(self, line: Line) -> str:
        """The text of the cell in a line."""
        return self.write(*(line[name] for name in self.names))


DATASET = Column("Dataset", "dataset", dataset_name)
DETECTOR = Column("Detector", "detector", detector_name)


def mean_column(title: str, name: str, digits: int = 3, **marks: Mark) -> Column:
    """A column of means with standard deviations, from NAME_mean and NAME_std: 0.887 (0.175)."""
    write = partial(mean_and_deviation, digits=digits)
    return Column(title, (f"{name}_mean", f"{name}_std"), write, **marks)


def figure_column(title: str, name: str, *digits: int) -> Column:
    """A column of figures with a `text` method, such as `Rate`; a dash where there is none."""
    return Column(title, name, lambda figure: NONE if figure is None else figure.text(*digits))


def estimate_of(row: Line, name: str) -> Estimate:
    """The estimate NAME of a line, with its interval NAME_low to NAME_high."""
    return Estimate(*(row[column] for column in with_interval(name)))


def with_interval(name: str) -> tuple[str, str, str]:
    """The names of a figure and its interval: NAME, NAME_low and NAME_high."""
    return name, f"{name}_low", f"{name}_high"


def rate_column(title: str, name: str, trials: str, digits: int = 1) -> Column:
    """A column of rates NAME with intervals NAME_low to NAME_high; `trials` is their column of trials."""
    return Column(title, (*with_interval(name), trials), partial(rate_text, digits=digits))


def estimate_column(title: str, name: str, digits: int = 3, scale: float = 1.0, **marks: Mark) -> Column:
    """A column of estimates NAME, times the scale, with intervals NAME_low to NAME_high: 31 (24–44)."""

    def write(value: float, low: float, high: float) -> str:
        return NONE if is_missing(value) else Estimate(value, low, high).times(scale).text(digits)

    return Column(title, with_interval(name), write, **marks)


def number_column(title: str, name: str, digits: int = 3) -> Column:
    """A column of numbers with this many decimals."""
    return Column(title, name, partial(fixed, digits=digits))


def p_column(title: str, name: str) -> Column:
    """A column of p-values."""
    return Column(title, name, lambda p: NONE if is_missing(p) else "< 0.001" if p < 0.001 else f"{p:.3f}")


def share_column(title: str, name: str) -> Column:
    """A column of shares in per cent: 21.2 %."""
    return Column(title, name, lambda share: f"{100 * share:.1f} %")


def rate_text(value: Any, low: Any, high: Any, trials: Any, digits: int = 1) -> str:
    """A `Rate` as text; a dash if it is missing."""
    value, low, high = (None if is_missing(one) else one for one in (value, low, high))
    return NONE if value is None else Rate(value, low, high, int(trials)).text(digits)


def plain_table(
    name: str, title: str, note: str, frame: pd.DataFrame, digits: int = 3, labels: int = 1
) -> Table:
    """A table that shows all columns of a frame; headings have spaces instead of underscores."""
    write = partial(as_it_is, digits=digits)
    columns = [Column(str(each).replace("_", " "), str(each), write) for each in frame.columns]
    return Table(name, title, note, frame, columns, labels)


def is_published(line: Line) -> bool:
    """Whether a line holds published figures, according to its value `source`."""
    return bool(line["source"] == PUBLISHED)


def published_beside(
    name: str, title: str, note: str, frame: pd.DataFrame, metric: str, digits: int = 3
) -> Table:
    """A table of the paper, with a dataset's measured figures in one line and the published ones in the next.

    `frame` has a row per dataset and detector, with the columns dataset, detector, METRIC_mean, METRIC_std,
    published_METRIC_mean and published_METRIC_std. Cells are bold where an optional column `best` is true; an
    optional column `mark` holds a sign, explained in the note, that follows a measured cell. Datasets and
    detectors keep their order. A dataset without published figures has one line.
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
    # The csv module does not quote a lone carriage return, which readers take for the end of the line.
    return '"' + text.replace('"', '""') + '"' if re.search('[,"\r\n]', text) else text
