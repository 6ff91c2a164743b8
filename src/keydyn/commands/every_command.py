"""What every command has: --quiet, and an exit code that says how it ended."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Annotated, Any, TypeVar, cast, get_type_hints

import typer

from keydyn.exit_codes import fail_clearly
from keydyn.terminal import being_quiet

Command = TypeVar("Command", bound=Callable[..., Any])
QuietOption = Annotated[
    bool, typer.Option("--quiet", help="Print only warnings and errors, and JSON if requested.")
]


def every_command(command: Command) -> Command:
    """Give a command --quiet; it ends with an exit code whatever happens."""
    guarded = fail_clearly(command)

    @functools.wraps(command)
    def run(quiet: bool = False, **given: Any) -> Any:
        with being_quiet(quiet):
            return guarded(**given)

    parameters = parameters_of(command)
    parameters["quiet"] = Parameter("quiet", Parameter.KEYWORD_ONLY, default=False, annotation=QuietOption)
    return cast(Command, with_parameters(run, parameters))


def parameters_of(function: Callable[..., Any]) -> dict[str, Parameter]:
    """The parameters of a function as Typer needs them: by keyword, their annotations resolved."""
    hints = get_type_hints(function, include_extras=True)
    return {
        name: parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name])
        for name, parameter in inspect.signature(function).parameters.items()
    }


def with_parameters(function: Callable[..., Any], parameters: Mapping[str, Parameter]) -> Callable[..., Any]:
    """Let a function appear to have these parameters, which Typer makes options and arguments."""
    changed: Any = function
    changed.__annotations__ = {name: each.annotation for name, each in parameters.items()}
    changed.__signature__ = inspect.Signature(list(parameters.values()))
    return function
