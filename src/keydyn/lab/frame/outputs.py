"""Writes and reads the folder of a study: tables, figures, report.html, scores.parquet and run.json."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.figure import Figure

from keydyn import __version__
from keydyn.atomic import replacing, write_text
from keydyn.figures.style import save_figure
from keydyn.lab.frame.json_and_parquet import write_json, write_parquet
from keydyn.lab.frame.report import Picture, Section, write_report
from keydyn.lab.frame.score_datasets import RANK_COLUMNS, SCORE_COLUMNS
from keydyn.lab.frame.study import ResultsPage
from keydyn.lab.frame.tables import Table, write_table

SCORES, RANKS, RUN, REPORT = "scores.parquet", "ranks.parquet", "run.json", "report.html"
WORDS = "words.md"
# The folder of scores in other tools' formats; every file in it is written by keydyn.
EXPORTED = "exported"
# The report of `keydyn evaluate --report standard`.
STANDARD = ("standard.html", "standard.json")
LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "pandas")


class Outputs:
    """Writes the results of a study into its folder, each file completely or not at all."""

    def __init__(
        self, folder: str | Path, files: Iterable[str] | None = None, page: ResultsPage | None = None
    ) -> None:
        """Open the folder, creating it if necessary.

        `files` are the tables, figures and frames that may be written; None allows any. `page` holds the
        question and the answer that the report begins with.
        """
        self.folder = Path(folder)
        self.files = None if files is None else frozenset(files)
        self.page = page
        self.tables: dict[str, pd.DataFrame] = {}
        # A folder that cannot be made is reported now, not after an hour of work.
        self.folder.mkdir(parents=True, exist_ok=True)

    def clear(self, files: Iterable[str]) -> None:
        """Remove the files of an earlier run, run.json first, so that none can be mistaken for this run's.

        `files` are the tables, figures and frames that any study may leave. Other files are not touched,
        because the folder may also hold files that keydyn did not write.
        """
        for name in (RUN, REPORT, WORDS, SCORES, RANKS, *STANDARD, *files):
            (self.folder / name).unlink(missing_ok=True)
        for path in self.folder.glob(f"{EXPORTED}/*.*"):
            path.unlink()

    def table(self, table: Table) -> Table:
        """Write a table as CSV, Markdown and LaTeX."""
        self._check(f"tables/{table.name}.csv")
        write_table(table, self.folder / "tables")
        self.tables[table.name] = table.frame
        return table

    def figure(self, figure: Figure, name: str, caption: str, alt: str) -> Picture:
        """Write a figure as PDF and PNG."""
        self._check(f"figures/{name}.png")
        _, png = save_figure(figure, self.folder / "figures", name)
        return Picture(png, caption, alt)

    def drawn(self, draw: Callable[[Path], None], name: str, caption: str, alt: str) -> Picture:
        """Write a figure as PDF and PNG with a function that draws to a path."""
        self._check(f"figures/{name}.png")
        png = self.folder / "figures" / f"{name}.png"
        for path in (png.with_suffix(".pdf"), png):
            draw(path)
        return Picture(png, caption, alt)

    def kept_figure(self, name: str, caption: str, alt: str) -> list[Picture]:
        """An existing figure that cannot be redrawn, because it needs more than the scores; or no figure."""
        png = self.folder / "figures" / f"{name}.png"
        return [Picture(png, caption, alt)] if png.exists() else []

    def frames(self, **frames: pd.DataFrame) -> None:
        """Write the individual results behind the tables as Parquet files, by name."""
        for name, frame in frames.items():
            self._check(f"{name}.parquet")
            write_parquet(self.folder / f"{name}.parquet", frame)

    def words(self, paragraphs: Sequence[str]) -> Sequence[str]:
        """Write the sentences of a report, so that a page of results can repeat them."""
        write_text(self.folder / WORDS, "\n\n".join(paragraphs) + "\n")
        return paragraphs

    def scores(self, table: pa.Table) -> None:
        """Write every score."""
        self._parquet(table, SCORES)

    def ranks(self, table: pa.Table) -> None:
        """Write the rank of every template at every event."""
        self._parquet(table, RANKS)

    def _parquet(self, table: pa.Table, name: str) -> None:
        with replacing(self.folder / name) as temporary:
            pq.write_table(table, temporary, compression="zstd")

    def report(
        self, title: str, lead: Sequence[str], sections: Sequence[Section], facts: Mapping[str, Any]
    ) -> None:
        """Write report.html with the study's question and answer, `lead` and the sections, and all tables."""
        for table in (table for section in sections for table in section.tables):
            if table.name not in self.tables:
                self.table(table)
        opening = [] if self.page is None else self.page.opening(self.tables)
        write_report(self.folder / REPORT, title, [*opening, *lead], sections, facts)

    def finish(self, facts: Mapping[str, Any], began: float) -> None:
        """Write run.json last, which marks the folder as complete. `began` is a `time.perf_counter` value."""
        write_json(self.folder / RUN, {**facts, "seconds": round(time.perf_counter() - began, 1)})

    def _check(self, file: str) -> None:
        """Refuse a file that the study does not declare: no later run would remove it."""
        if self.files is not None and file not in self.files:
            raise ValueError(f"the study does not declare {file} among the files that it may leave")


def environment() -> dict[str, Any]:
    """Version and time of a run, and the versions of Python and of the libraries it uses."""
    return {
        "version": __version__,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
    }


def read_table(path: Path, columns: Sequence[str] = ()) -> pa.Table:
    """Read the scores or ranks of a finished study; a `ValueError` says why a file is unusable."""
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    absent = [name for name in columns if name not in table.column_names]
    if absent or (columns and len(table) == 0):
        raise ValueError(f"{path} cannot be used: it has no {f'column {absent[0]}' if absent else 'rows'}")
    return table


def read_values(folder: Path, names: Iterable[str]) -> dict[str, pd.DataFrame]:
    """The values of those named tables whose CSV files are in a folder."""
    return {
        name: pd.read_csv(path, keep_default_na=False, na_values=[""])
        for name in names
        if (path := folder / f"{name}.csv").exists()
    }


def read_frames(folder: Path, names: Iterable[str]) -> dict[str, pd.DataFrame]:
    """The individual results of a finished study by name, as far as their files exist."""
    paths = {name: folder / f"{name}.parquet" for name in names}
    return {name: read_table(path).to_pandas() for name, path in paths.items() if path.exists()}


def read_scores(folder: Path) -> pa.Table:
    """Read every score of a finished study."""
    return read_table(folder / SCORES, SCORE_COLUMNS)


def read_ranks(folder: Path) -> pa.Table:
    """Read the rank of every template at every event from a finished study."""
    return read_table(folder / RANKS, RANK_COLUMNS)


def export_scores(folder: Path, forms: list[str] | None) -> list[Path]:
    """Write the scores of a finished study in other tools' formats, one set of files per system and form."""
    if not forms:
        return []
    from keydyn.evaluation.score_files.reading import read_scores
    from keydyn.evaluation.score_files.writing import write_scores

    path = folder / SCORES
    if not path.exists():
        raise ValueError(f"{folder} has no scores to export: this study keeps none")
    return [
        file
        for name, claims in read_scores(path).items()
        for form in forms
        for file in write_scores(claims, folder / EXPORTED, name, form)
    ]
