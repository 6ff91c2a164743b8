"""The exit codes of commands, and plain reports of errors."""

from __future__ import annotations

import functools
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, TypeVar, cast

import typer

Command = TypeVar("Command", bound=Callable[..., Any])


class ExitCode(IntEnum):
    """The meaning of a command's exit code."""

    DONE = 0  # verify, watch: all accepted
    REJECTED = 1  # data check: a file is not the published one
    USAGE = 2
    UNSURE = 3
    UNUSABLE = 4
    INTERNAL = 70
    INTERRUPTED = 130


# Shown at the end of a command's help.
EXIT_CODES = (
    "Exit codes: 0 done or accepted, 1 rejected, 2 wrong usage, 3 not enough evidence, 4 input or files that "
    "cannot be used, 70 internal error, 130 interrupted."
)


class UsageError(ValueError):
    """Raised when a command cannot be carried out as given, whatever its files contain."""


@contextmanager
def checking_options() -> Iterator[None]:
    """Turn a `ValueError` in the block, which is about options and not about input, into a `UsageError`."""
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from None


def fail_clearly(command: Command) -> Command:
    """Turn every error into an exit code, with one line if the user can fix it or a traceback for a bug."""

    @functools.wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            result = command(*args, **kwargs)
            sys.stdout.flush()
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except BaseException as error:
            raise typer.Exit(reported(error)) from None
        return result

    return cast(Command, guarded)


def reported(error: BaseException) -> ExitCode:
    """Report an error on standard error, and return its exit code."""
    if isinstance(error, SystemExit):
        raise error
    if isinstance(error, KeyboardInterrupt):
        complain(str(error) or "interrupted")
        return ExitCode.INTERRUPTED
    if isinstance(error, BrokenPipeError):
        # The reader has closed the output. Without this, Python would complain again when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.UNUSABLE
    if isinstance(error, MemoryError):
        complain("there is not enough memory for this")
        return ExitCode.UNUSABLE
    if isinstance(error, (ValueError, OSError)):
        complain(_words(error))
        return ExitCode.USAGE if isinstance(error, UsageError) else ExitCode.UNUSABLE
    traceback.print_exception(error)
    complain("internal error: this is a fault in keydyn; please report it with the lines above")
    return ExitCode.INTERNAL


def _words(error: ValueError | OSError) -> str:
    """The message of an error; for errors of the system, the path and then its message without its number."""
    if isinstance(error, OSError) and error.strerror:
        paths = [str(path) for path in (error.filename, error.filename2) if path is not None]
        return ": ".join([" -> ".join(paths)] * bool(paths) + [error.strerror])
    return str(error)


def complain(message: str) -> None:
    """Print an error message in red on standard error."""
    typer.secho(f"keydyn: {message}", err=True, fg="red")
