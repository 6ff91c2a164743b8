"""How commands read a recording: the options, each written once, and the reading itself."""

from __future__ import annotations

import csv
import functools
import io
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, TypeVar, cast, get_type_hints

import typer

from keydyn.commands.every_command import parameters_of, with_parameters
from keydyn.exit_codes import UsageError, checking_options
from keydyn.progress import working
from keydyn.terminal import warn

if TYPE_CHECKING:
    from keydyn.datasets.files.notes import Notes
    from keydyn.datasets.files.recordings import FileForm, Recording

Command = TypeVar("Command", bound=Callable[..., Any])

STANDARD_INPUT, TAB = Path("-"), "\t"
FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="CSV, JSON lines or Parquet: user, session, keyname, timepress, timerelease; or - for "
        "standard input.",
    ),
]
PANEL = "How the file is read"
UnitOption = Annotated[
    str | None,
    typer.Option(
        "--unit", help="Unit of the file's times: s, ms, us or ns; by default ms.", rich_help_panel=PANEL
    ),
]
ColumnsOption = Annotated[
    str,
    typer.Option(
        "--columns",
        help="Names of the columns in the file: keyname=key,timepress=down,…",
        rich_help_panel=PANEL,
    ),
]
UserOption = Annotated[
    str | None,
    typer.Option("--user", help="Who typed, for a file without a column of users.", rich_help_panel=PANEL),
]
SessionOption = Annotated[
    str | None,
    typer.Option(
        "--session", help="The session, for a file without a column of sessions.", rich_help_panel=PANEL
    ),
]
SeparatorOption = Annotated[
    str, typer.Option("--separator", help=r"Column separator; '\t' is a tab.", rich_help_panel=PANEL)
]
DecimalOption = Annotated[str, typer.Option("--decimal", help="Decimal separator.", rich_help_panel=PANEL)]
EncodingOption = Annotated[
    str, typer.Option("--encoding", help="Encoding: utf-8, cp1252, utf-16, …", rich_help_panel=PANEL)
]
HeaderOption = Annotated[
    str,
    typer.Option(
        "--header",
        help="Names of all columns, for a file without a header line.",
        rich_help_panel=PANEL,
    ),
]
SortOption = Annotated[
    bool,
    typer.Option("--sort", help="Sort the rows by user, session and press.", rich_help_panel=PANEL),
]
CleanOption = Annotated[
    bool,
    typer.Option(
        "--clean",
        help="Leave out presses at the same time as the previous one, releases before their press, holds of "
        "0 ms and copied sessions, and report how many.",
        rich_help_panel=PANEL,
    ),
]


@dataclass(frozen=True)
class Reading:
    """How a file is read, as the options say; the attributes are the options, in the order of the help."""

    file: FileArgument
    unit: UnitOption = None
    columns: ColumnsOption = ""
    user: UserOption = None
    session: SessionOption = None
    separator: SeparatorOption = ","
    decimal: DecimalOption = "."
    encoding: EncodingOption = "utf-8"
    header: HeaderOption = ""
    sort: SortOption = False
    clean: CleanOption = False

    def recording(self, anonymous: bool = False) -> tuple[Recording, Notes]:
        """The recording, and what to know about it, of which the user is warned.

        With `anonymous` the file need not say who typed, nor have a column `session`. What is wrong with the
        file is reported in terms of the options.
        """
        from keydyn.datasets.files.notes import notes_of
        from keydyn.datasets.files.recordings import read_recording
        from keydyn.keystrokes import CleaningRules

        form = self.form()
        rules = CleaningRules(
            duplicate_samples=not anonymous, negative_holds=True, equal_presses=True, zero_durations=True
        )
        with self.explaining(), working(f"reading {self.file}"):
            recording = read_recording(self.source(), form, rules if self.clean else None, anonymous)
        notes = notes_of(recording, copies=not anonymous)
        for text in notes.texts(self.as_options):
            warn(text)
        return recording, notes

    def source(self) -> Path | BinaryIO:
        """What is read."""
        return sys.stdin.buffer if self.file == STANDARD_INPUT else self.file

    @contextmanager
    def explaining(self, line: int = 1, impossible: tuple[str, ...] = ()) -> Iterator[None]:
        """A `ReadingError` from the block is reported in terms of the options.

        What was read begins with this `line` of the file; options that are `impossible` are not suggested.
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
        """Arguments of the functions that read files as they are given on the command line."""
        if arguments.keys() == {"file"}:
            return str(arguments["file"])
        if "keydyn.keystrokes.pair_events" in arguments:
            return f"`keydyn pair {shlex.quote(str(self.file))} --out keystrokes.csv`"
        if not arguments.keys() <= {option.name for option in fields(self)}:
            return ""
        return f"`{' '.join(_option(name, value) for name, value in arguments.items())}`"

    def form(self) -> FileForm:
        """The options in the form that readers take; an option that makes no sense is an error of usage."""
        from keydyn.datasets.files.recordings import FileForm
        from keydyn.keystrokes.units import check_unit

        separator = TAB if self.separator in (r"\t", "tab") else self.separator
        with checking_options():
            check_unit(self.unit or "ms")
            for name, value in (("--separator", separator), ("--decimal", self.decimal)):
                if len(value) != 1:
                    raise ValueError(f"{name} must be one character, not {value!r}")
        return FileForm(
            self._own_names(),
            self.unit,
            _label(self.user),
            _label(self.session),
            None,
            self.sort,
            separator,
            self.decimal,
            self.encoding,
            listed(self.header) or None,
            lenient=True,
        )

    def _own_names(self) -> dict[str, str]:
        pairs = [pair.partition("=") for pair in listed(self.columns)]
        if any(not equals or not own.strip() for _, equals, own in pairs):
            raise UsageError(f"--columns must be like keyname=key,timepress=down, not {self.columns!r}")
        return {name.strip(): own.strip() for name, _, own in pairs}


def reads_recording(command: Command) -> Command:
    """Give a command the options of `Reading` in place of its parameter `reading`.

    Typer reads a command's signature, which is therefore put together here. An option that the command has
    itself, such as verify's --user, is its own; a file that it has itself is the one that is read.
    """
    own, annotations = parameters_of(command), get_type_hints(Reading, include_extras=True)
    added = {
        option.name: Parameter(
            option.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if option.name == "file" else option.default,
            annotation=annotations[option.name],
        )
        for option in fields(Reading)
        if option.name not in own
    }
    parameters: dict[str, Parameter] = {}
    for name, parameter in own.items():
        parameters |= added if name == "reading" else {name: parameter}

    @functools.wraps(command)
    def with_reading(**given: Any) -> Any:
        chosen: dict[str, Any] = {"file": given.get("file")}
        chosen |= {name: given.pop(name) for name in added}
        return command(reading=Reading(**chosen), **given)

    return cast(Command, with_parameters(with_reading, parameters))


def listed(text: str) -> list[str]:
    """The names in an option that takes several, separated by commas; one with a comma in it is quoted."""
    return [name.strip() for name in next(csv.reader(io.StringIO(text)), []) if name.strip()]


def _option(name: str, value: Any) -> str:
    """One option with its value; `...` stands for any value."""
    if value is True or value is ...:
        return f"--{name}"
    if isinstance(value, dict):
        value = _joined([f"{ours}={theirs}" for ours, theirs in value.items()])
    elif isinstance(value, list):
        value = _joined(value)
    text = r"\t" if value == TAB else str(value)
    return f"--{name} {shlex.quote(text)}"


def _joined(names: Sequence[str]) -> str:
    """The inverse of `listed`."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def _label(text: str | None) -> str | int | None:
    """A user or a session as a file has it: whole numbers are numbers."""
    return int(text) if text is not None and text.isdecimal() and str(int(text)) == text else text
