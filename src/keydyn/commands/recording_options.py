"""How commands read a recording: the options, and the reading itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keydyn.exit_codes import UsageError, checking_options

if TYPE_CHECKING:
    import pandas as pd

FileArgument = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="CSV or Parquet: user, session, keyname, timepress, timerelease."),
]
UnitOption = Annotated[str, typer.Option("--unit", help="Unit of the file's times: s, ms, us or ns.")]
ColumnsOption = Annotated[
    str, typer.Option("--columns", help="The file's own names: keyname=key,timepress=down,…")
]
SeparatorOption = Annotated[str, typer.Option("--separator", help="What stands between values.")]
SortOption = Annotated[bool, typer.Option("--sort", help="Put each sample's rows in order.")]
CleanOption = Annotated[
    bool,
    typer.Option("--clean", help="Leave out presses at the same time as the one before, and holds of 0 ms."),
]


@dataclass(frozen=True)
class Reading:
    """How a file is read, as the options say."""

    file: Path
    unit: str
    columns: str
    separator: str
    sort: bool
    clean: bool

    def keystrokes(self) -> pd.DataFrame:
        """The keystrokes in the schema; what is wrong with the file is reported in terms of the options."""
        from keydyn.datasets import load_recordings
        from keydyn.keystrokes import CleaningRules, clean
        from keydyn.keystrokes.units import check_unit

        with checking_options():
            check_unit(self.unit)
            if len(self.separator) != 1:
                raise ValueError(f"--separator must be one character, not {self.separator!r}")
        try:
            keystrokes = load_recordings(
                self.file, self._own_names(), self.unit, separator=self.separator, sort=self.sort
            )
        except ValueError as error:
            raise ValueError(_as_options(str(error))) from None
        if not self.clean:
            return keystrokes
        return clean(keystrokes, CleaningRules(equal_presses=True, zero_durations=True))[0]

    def _own_names(self) -> dict[str, str]:
        pairs = [pair.partition("=") for pair in self.columns.split(",") if pair.strip()]
        if any(not equals or not own.strip() for _, equals, own in pairs):
            raise UsageError(f"--columns must be like keyname=key,timepress=down, not {self.columns!r}")
        return {name.strip(): own.strip() for name, _, own in pairs}


def _as_options(message: str) -> str:
    """A message that names an argument of `load_recordings`, with the corresponding option in its place."""

    def mapping(match: re.Match[str]) -> str:
        return "`--columns " + re.sub(r"[' ]", "", match[1]).replace(":", "=") + "`"

    message = re.sub(r"`columns=\{([^}]*)\}`", mapping, message)
    for argument, option in (
        ("sort=True", "--sort"),
        ("separator=", "--separator "),
        ("columns=", "--columns"),
    ):
        message = message.replace(f"`{argument}", f"`{option}")
    return message
