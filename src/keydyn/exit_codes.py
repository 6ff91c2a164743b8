"""How a command ends: the exit codes, and errors reported plainly."""

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
    """What a command's exit code says."""

    DONE = 0  # verify, watch: all accepted
    REJECTED = 1  # data check: a file is not the published one
    USAGE = 2
    UNSURE = 3
    UNUSABLE = 4
    INTERNAL = 70
    INTERRUPTED = 130


# For the end of a command's help.
EXIT_CODES = (
    "Exit codes: 0 done or accepted, 1 rejected, 2 wrong usage, 3 not enough evidence, 4 input or files that "
    "cannot be used, 70 internal error, 130 interrupted."
)


class UsageError(ValueError):
    """A command that cannot be carried out as it was given, whatever the files hold."""


@contextmanager
def checking_options() -> Iterator[None]:
    """A `ValueError` in the block is about the options, not about the input."""
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from None


def fail_clearly(command: Command) -> Command:
    """Turn every error into an exit code: one line for what the user can mend, a traceback for a bug."""

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
    """Report an error on standard error; the exit code that goes with it."""
    if isinstance(error, SystemExit):
        raise error
    if isinstance(error, KeyboardInterrupt):
        complain(str(error) or "interrupted")
        return ExitCode.INTERRUPTED
    if isinstance(error, BrokenPipeError):
        # The reader of the output has closed it. Python would complain again when it flushes.
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
    """What an error says; what the system says comes after the path that it is about, without its number."""
    if isinstance(error, OSError) and error.strerror:
        paths = [str(path) for path in (error.filename, error.filename2) if path is not None]
        return ": ".join([" -> ".join(paths)] * bool(paths) + [error.strerror])
    return str(error)


def complain(message: str) -> None:
    """Report what went wrong, in red on standard error."""
    typer.secho(f"keydyn: {message}", err=True, fg="red")
