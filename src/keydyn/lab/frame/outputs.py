"""The folder of a study: tables, figures, report.html, scores.parquet and run.json."""

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
# The folder of scores in the forms of other tools; all files in it are ours.
EXPORTED = "exported"
# The report of `keydyn evaluate --report standard`.
STANDARD = ("standard.html", "standard.json")
LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "pandas")


class Outputs:
    """Writes what a study found into its folder, each file completely or not at all."""

    def __init__(
        self, folder: str | Path, files: Iterable[str] | None = None, page: ResultsPage | None = None
    ) -> None:
        """`files` are the tables, figures and frames that may be written; anything if it is None.

        `page` has the question and the answer that the report begins with.
        """
        self.folder = Path(folder)
        self.files = None if files is None else frozenset(files)
        self.page = page
        self.tables: dict[str, pd.DataFrame] = {}
        # A folder that cannot be made is reported now, not after an hour of work.
        self.folder.mkdir(parents=True, exist_ok=True)

    def clear(self, files: Iterable[str]) -> None:
        """Remove what an earlier run left, run.json first, so that none of it can be taken for this run's.

        `files` are the tables, figures and frames that any study may leave. Other files are not touched:
        the folder may hold other people's too.
        """
        for name in (RUN, REPORT, WORDS, SCORES, RANKS, *STANDARD, *files):
            (self.folder / name).unlink(missing_ok=True)
        for path in self.folder.glob(f"{EXPORTED}/*.*"):
            path.unlink()

    def table(self, table: Table) -> Table:
        """Write it as CSV, Markdown and LaTeX."""
        self._check(f"tables/{table.name}.csv")
        write_table(table, self.folder / "tables")
        self.tables[table.name] = table.frame
        return table

    def figure(self, figure: Figure, name: str, caption: str, alt: str) -> Picture:
        """Write it as PDF and PNG."""
        self._check(f"figures/{name}.png")
        _, png = save_figure(figure, self.folder / "figures", name)
        return Picture(png, caption, alt)

    def drawn(self, draw: Callable[[Path], None], name: str, caption: str, alt: str) -> Picture:
        """Write a figure that is drawn to a path, as PDF and PNG."""
        self._check(f"figures/{name}.png")
        png = self.folder / "figures" / f"{name}.png"
        for path in (png.with_suffix(".pdf"), png):
            draw(path)
        return Picture(png, caption, alt)

    def kept_figure(self, name: str, caption: str, alt: str) -> list[Picture]:
        """A figure that was drawn from more than the scores, if it is there: it cannot be drawn again."""
        png = self.folder / "figures" / f"{name}.png"
        return [Picture(png, caption, alt)] if png.exists() else []

    def frames(self, **frames: pd.DataFrame) -> None:
        """Write the single results that tables are made of, as Parquet, by name."""
        for name, frame in frames.items():
            self._check(f"{name}.parquet")
            write_parquet(self.folder / f"{name}.parquet", frame)

    def words(self, paragraphs: Sequence[str]) -> Sequence[str]:
        """Write what a report says in sentences, so that a page of results can say it too."""
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
        """Write report.html and all its tables: the study's question and answer, `lead`, and the sections."""
        for table in (table for section in sections for table in section.tables):
            if table.name not in self.tables:
                self.table(table)
        opening = [] if self.page is None else self.page.opening(self.tables)
        write_report(self.folder / REPORT, title, [*opening, *lead], sections, facts)

    def finish(self, facts: Mapping[str, Any], began: float) -> None:
        """Write run.json last: a folder that has it is complete. `began` is by `time.perf_counter`."""
        write_json(self.folder / RUN, {**facts, "seconds": round(time.perf_counter() - began, 1)})

    def _check(self, file: str) -> None:
        """A file that the study does not declare would never be removed by a later run."""
        if self.files is not None and file not in self.files:
            raise ValueError(f"the study does not declare {file} among the files that it may leave")


def environment() -> dict[str, Any]:
    """Version and time of a run, and the libraries under it."""
    return {
        "version": __version__,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
    }


def read_table(path: Path, columns: Sequence[str] = ()) -> pa.Table:
    """Scores or ranks of a finished study; a `ValueError` says what is wrong with the file."""
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    absent = [name for name in columns if name not in table.column_names]
    if absent or (columns and len(table) == 0):
        raise ValueError(f"{path} cannot be used: it has no {f'column {absent[0]}' if absent else 'rows'}")
    return table


def read_values(folder: Path, names: Iterable[str]) -> dict[str, pd.DataFrame]:
    """The values of some tables from the CSV files in a folder, as far as they are there."""
    return {
        name: pd.read_csv(path, keep_default_na=False, na_values=[""])
        for name in names
        if (path := folder / f"{name}.csv").exists()
    }


def read_frames(folder: Path, names: Iterable[str]) -> dict[str, pd.DataFrame]:
    """The single results of a finished study by name, as far as they are there."""
    paths = {name: folder / f"{name}.parquet" for name in names}
    return {name: read_table(path).to_pandas() for name, path in paths.items() if path.exists()}


def read_scores(folder: Path) -> pa.Table:
    """Every score of a finished study."""
    return read_table(folder / SCORES, SCORE_COLUMNS)


def read_ranks(folder: Path) -> pa.Table:
    """The rank of every template at every event of a finished study."""
    return read_table(folder / RANKS, RANK_COLUMNS)


def export_scores(folder: Path, forms: list[str] | None) -> list[Path]:
    """Write the scores of a finished study, each system and form in files of its own."""
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
