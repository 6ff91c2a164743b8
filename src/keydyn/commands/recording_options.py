"""Reading a recording in a command: the options, which all commands share, and the reading itself."""

from __future__ import annotations

import csv
import io
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from keydyn.exit_codes import UsageError, checking_options
from keydyn.progress import working
from keydyn.terminal import warn

if TYPE_CHECKING:
    from keydyn.datasets.files.file_form import FileForm
    from keydyn.datasets.files.notes import Notes
    from keydyn.datasets.files.recordings import Recording

STANDARD_INPUT, TAB = Path("-"), "\t"


def _option(name: str, text: str) -> Any:
    return typer.Option(name, help=text, rich_help_panel="How the file is read")


CLEAN = (
    "Leave out shortcuts and navigation keys, presses at the same time as the previous one, releases before "
    "their press, holds of 0 ms and copied sessions, and report how many."
)


@dataclass(frozen=True)
class ReadingOptions:
    """The options for reading a file, in the order of the help."""

    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="CSV, JSON lines or Parquet: user, session, keyname, timepress, timerelease; or - for "
            "standard input.",
        ),
    ]
    unit: Annotated[
        str | None,
        _option(
            "--unit",
            "Unit of the times: s, ms, us or ns; by default determined from times since 1970, otherwise ms.",
        ),
    ] = None
    columns: Annotated[
        str, _option("--columns", "Names of the columns in the file: keyname=key,timepress=down,…")
    ] = ""
    user: Annotated[str | None, _option("--user", "The user, for a file without a column of users.")] = None
    session: Annotated[
        str | None, _option("--session", "The session, for a file without a column of sessions.")
    ] = None
    separator: Annotated[str, _option("--separator", r"Column separator; '\t' is a tab.")] = ","
    decimal: Annotated[str, _option("--decimal", "Decimal separator.")] = "."
    encoding: Annotated[str, _option("--encoding", "Encoding: utf-8, cp1252, utf-16, …")] = "utf-8"
    header: Annotated[str, _option("--header", "Names of all columns, for a file without a header line.")] = (
        ""
    )
    sort: Annotated[bool, _option("--sort", "Sort the rows by user, session and press.")] = False
    clean: Annotated[bool, _option("--clean", CLEAN)] = False
    keys: Annotated[
        int | None, _option("--keys", "Divide long samples into samples of this many keystrokes.")
    ] = None
    pauses: Annotated[
        float | None,
        _option("--pauses", "Divide samples at pauses longer than this many milliseconds."),
    ] = None
    keep_shortcuts: Annotated[
        bool,
        _option(
            "--keep-shortcuts",
            "Keep keys with Ctrl, Alt or Meta, and navigation and function keys, which are not typing.",
        ),
    ] = False

    def recording(self, anonymous: bool = False) -> tuple[Recording, Notes]:
        """Read the recording, and warn the user about anything unusual in it.

        With `anonymous` the file needs no columns of users and sessions. Errors suggest options as remedies.
        """
        from keydyn.datasets.files.notes import notes_of
        from keydyn.datasets.files.recordings import read_recording
        from keydyn.keystrokes import CleaningRules

        form = self.form()
        with checking_options():
            rules = CleaningRules(
                duplicate_samples=self.clean and not anonymous,
                negative_holds=self.clean,
                shortcuts=self.clean and not self.keep_shortcuts,
                equal_presses=self.clean,
                zero_durations=self.clean,
                pauses=self.pauses,
                keys=self.keys,
            )
        used = rules if rules != CleaningRules() else None
        with self.explaining(), working(f"reading {self.file}"):
            recording = read_recording(self.source(), form, used, anonymous)
        notes = notes_of(recording, copies=not anonymous, shortcuts=not self.keep_shortcuts)
        for text in notes.texts(self.as_options):
            warn(text)
        return recording, notes

    def source(self) -> Path | BinaryIO:
        """The file, or standard input."""
        return sys.stdin.buffer if self.file == STANDARD_INPUT else self.file

    @contextmanager
    def explaining(self, line: int = 1, impossible: tuple[str, ...] = ()) -> Iterator[None]:
        """Turn a `ReadingError` of the block into a `ValueError` that suggests options as remedies.

        The input of the block begins with this `line` of the file; `impossible` options are not suggested.
        """
        from keydyn.keystrokes.reading_error import ReadingError

        try:
            yield
        except ReadingError as error:
            place = error.finding.place
            if place is not None and place.kind == "line":
                error = error.changed(place=place.after(line - 1))
            raise ValueError(error.finding.without(*impossible).worded(self.as_options)) from None

    def as_options(self, arguments: Mapping[str, Any]) -> str:
        """Write arguments of the functions that read files in the form of the command line."""
        if arguments.keys() == {"file"}:
            return str(arguments["file"])
        if "keydyn.keystrokes.pair_events" in arguments:
            return f"`keydyn pair {shlex.quote(str(self.file))} --out keystrokes.csv`"
        if not arguments.keys() <= {option.name for option in fields(self)}:
            return ""
        return f"`{' '.join(_given(name, value) for name, value in arguments.items())}`"

    def form(self) -> FileForm:
        """Convert the options to the form that readers take; an invalid option is a `UsageError`."""
        from keydyn.datasets.files.file_form import FileForm
        from keydyn.keystrokes.schema import check_unit

        separator = TAB if self.separator in (r"\t", "tab") else self.separator
        with checking_options():
            check_unit(self.unit or "ms")
            for name, value in (("--separator", separator), ("--decimal", self.decimal)):
                if len(value) != 1:
                    raise ValueError(f"{name} must be one character, not {value!r}")
        return FileForm(
            columns=self._own_names(),
            unit=self.unit,
            user=_label(self.user),
            session=_label(self.session),
            sort=self.sort,
            separator=separator,
            decimal=self.decimal,
            encoding=self.encoding,
            header=listed(self.header) or None,
            by_command=True,
        )

    def _own_names(self) -> dict[str, str]:
        pairs = [pair.partition("=") for pair in listed(self.columns)]
        if any(not equals or not own.strip() for _, equals, own in pairs):
            raise UsageError(f"--columns must be like keyname=key,timepress=down, not {self.columns!r}")
        return {name.strip(): own.strip() for name, _, own in pairs}


def listed(text: str) -> list[str]:
    """Split an option that takes several names, separated by commas; names with commas are quoted."""
    return [name.strip() for name in next(csv.reader(io.StringIO(text)), []) if name.strip()]


def _given(name: str, value: Any) -> str:
    """Write one option with its value; `...` stands for any value."""
    name = name.replace("_", "-")
    if value is True or value is ...:
        return f"--{name}"
    if isinstance(value, dict):
        value = _joined([f"{ours}={theirs}" for ours, theirs in value.items()])
    elif isinstance(value, list):
        value = _joined(value)
    text = r"\t" if value == TAB else str(value)
    return f"--{name} {shlex.quote(text)}"


def _joined(names: Sequence[str]) -> str:
    """Join names with commas, as `listed` splits them."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def _label(text: str | None) -> str | int | None:
    """Read a user or a session as in a file, where whole numbers are numbers."""
    return int(text) if text is not None and text.isdecimal() and str(int(text)) == text else text
