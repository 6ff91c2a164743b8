"""keydyn pair: pair raw press and release events into keystrokes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from keydyn.commands.every_command import every_command
from keydyn.commands.recording_options import ReadingOptions
from keydyn.exit_codes import UsageError
from keydyn.terminal import JsonOption, print_json, say, warn


@dataclass(frozen=True)
class EventReading(ReadingOptions):
    """The options for reading a file of events."""

    file: Annotated[
        Path,
        typer.Argument(
            metavar="EVENTS",
            help="CSV, JSON lines or Parquet with the time, type and key of each event; a folder of "
            "published logs; or - for standard input.",
        ),
    ]


@every_command
def pair(
    reading: EventReading,
    out: Annotated[Path, typer.Option("--out", help="File for the keystrokes: .csv, .csv.gz or .parquet.")],
    as_json: JsonOption = False,
) -> None:
    """Pair raw press and release events into keystrokes, which all other commands can read.

    Columns of browsers (`timeStamp`, `type`, `code`, `repeat`) and of common loggers are recognised by their
    names; for other names, use --columns time=when,type=what,key=which. Logs of Clarkson II, Buffalo and
    BB-MAS are recognised too: the users are taken from the files' names, and a folder of them is read at
    once. Times are numbers, or dates with a time of day. Without a column of sessions, all events form one
    sample. Keys pressed with Ctrl, Alt or Meta and navigation and function keys are not typing, and are left
    out unless --keep-shortcuts is given. Events that are left out are counted.

    Examples:
    `keydyn pair events.csv --out typing.csv --user anna`

    `keydyn pair log.tsv --out typing.csv --separator '\\t' --columns time=when,key=scan --unit s`
    """
    from keydyn.datasets import save_recordings
    from keydyn.datasets.files.file_form import UNKNOWN
    from keydyn.datasets.files.log_files import EMPTY, read_log, read_logs
    from keydyn.datasets.files.notes import unlikely_unit
    from keydyn.datasets.files.recordings import naming, refuse_stopped_clocks
    from keydyn.keystrokes.pairing import pair_events

    if reading.sort or reading.clean or reading.keys or reading.pauses:
        raise UsageError(
            "--sort, --clean, --keys and --pauses apply to keystrokes; use them where the keystrokes are read"
        )
    form = reading.form()
    source = reading.source()
    with reading.explaining(), naming(source):
        folder = isinstance(source, Path) and source.is_dir()
        log = read_logs(reading.file, form) if folder else read_log(source, form)
        if "user" not in log.events:
            log.events["user"] = UNKNOWN
            warn("the events have no column of users: the user is called 'unknown'; give a name with --user")
        keystrokes, report = pair_events(log.events, log.unit, shortcuts=reading.keep_shortcuts)
        refuse_stopped_clocks(keystrokes)
    if unlikely := unlikely_unit(keystrokes, log.unit):
        warn(unlikely.worded(reading.as_options))
    save_recordings(keystrokes, out)
    if as_json:
        print_json({"keystrokes": str(out), "left_out": log.left_out, **report.to_dict()})
        return
    say(str(report))
    if log.left_out:
        counts = (f"{n} {name if name == EMPTY else name + ' events'}" for name, n in log.left_out.items())
        say("Left out: " + ", ".join(counts))
    say(f"Keystrokes are in {out}")
