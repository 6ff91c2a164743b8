"""Errors in recordings as structured data, from which the library and the commands make messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

# Arguments by name; `...` stands for any value.
Arguments = Mapping[str, Any]
# A function that writes arguments in the form in which the user gives them; "" if they cannot be given.
Wording = Callable[[Arguments], str]
# The arguments of functions that read recordings. The commands have further options, such as --clean.
LIBRARY = {"columns", "unit", "user", "session", "others", "sort", "separator", "decimal", "encoding"}
LIBRARY |= {"header", "keydyn.keystrokes.pair_events"}


def as_arguments(arguments: Arguments) -> str:
    """Arguments as Python code: `sort=True`."""
    if not arguments.keys() <= LIBRARY:
        return ""
    given = (name if value is ... else f"{name}={value!r}" for name, value in arguments.items())
    return f"`{', '.join(given)}`"


class FilePosition(NamedTuple):
    """A line of a file, or a row of data without lines."""

    kind: Literal["line", "row"]
    number: int

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"

    def after(self, count: int) -> FilePosition:
        """The place this many lines or rows further on."""
        return FilePosition(self.kind, self.number + count)


@dataclass(frozen=True)
class Remedy:
    """A remedy: a sentence with {} in place of the arguments; without arguments it is always given."""

    words: str
    arguments: Arguments = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """An error in a recording."""

    problem: str  # a description of the error
    remedies: tuple[Remedy, ...] = ()
    place: FilePosition | None = None  # its place in the file
    source: str = ""  # the file's name
    kind: str = ""  # a name for it, if readers of files treat it specially

    def worded(self, wording: Wording = as_arguments) -> str:
        """The whole message, without remedies whose arguments `wording` cannot express."""
        texts = [(remedy, wording(remedy.arguments)) for remedy in self.remedies]
        where = "".join(f"{part}: " for part in (self.source, self.place) if part)
        helps = (remedy.words.format(text) for remedy, text in texts if text or not remedy.arguments)
        return "; ".join([where + self.problem, *helps])

    def without(self, *arguments: str) -> Finding:
        """A copy without the remedies that need one of these arguments."""
        kept = tuple(one for one in self.remedies if not set(arguments) & set(one.arguments))
        return replace(self, remedies=kept)


class ReadingError(ValueError):
    """A recording cannot be read; `finding` holds the problem, its place, and arguments that help.

    Examples
    --------
    >>> from pathlib import Path
    >>> from keydyn.datasets import load_recordings
    >>> from keydyn.keystrokes import ReadingError
    >>> _ = Path("late.csv").write_text("user;session;keyname;timepress;timerelease\\nann;0;a;0;80\\n")
    >>> try:
    ...     load_recordings("late.csv")
    ... except ReadingError as error:
    ...     print(error)
    ...     remedy = error.finding.remedies[0]
    late.csv: its columns are separated by semicolons; give `separator=';'`
    >>> remedy.arguments
    {'separator': ';'}
    """

    def __init__(
        self, problem: str, *remedies: Remedy, place: FilePosition | None = None, kind: str = ""
    ) -> None:
        super().__init__(problem, *remedies)
        self.finding = Finding(problem, remedies, place, kind=kind)

    def __str__(self) -> str:
        return self.finding.worded()

    def changed(self, **fields: Any) -> ReadingError:
        """A copy with other fields of its finding."""
        other = ReadingError(self.finding.problem)
        other.finding = replace(self.finding, **fields)
        return other
