"""Features of every command: groups of options, --quiet, and an exit code for every outcome."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter
from typing import Annotated, Any, TypeVar, cast, get_type_hints

import typer

from keydyn.exit_codes import fail_clearly
from keydyn.terminal import being_quiet

Command = TypeVar("Command", bound=Callable[..., Any])
QuietOption = Annotated[
    bool, typer.Option("--quiet", help="Print only warnings and errors, and JSON if requested.")
]


def group(name: str, help: str) -> typer.Typer:
    """Make a group of commands."""
    return typer.Typer(
        name=name, help=help, no_args_is_help=True, add_completion=False, rich_markup_mode="markdown"
    )


def every_command(command: Command) -> Command:
    """Give a command its groups of options, --quiet, and an exit code for every outcome."""
    whole = grouped(command)
    guarded = fail_clearly(whole)

    @functools.wraps(command)
    def run(quiet: bool = False, **given: Any) -> Any:
        with being_quiet(quiet):
            return guarded(**given)

    parameters = parameters_of(whole)
    parameters["quiet"] = Parameter("quiet", Parameter.KEYWORD_ONLY, default=False, annotation=QuietOption)
    return cast(Command, with_parameters(run, parameters))


def grouped(command: Command) -> Command:
    """Make an option of every field of the dataclasses among a command's parameters.

    Typer reads a command's signature, which is therefore put together here. An option that the command
    defines itself, such as verify's --user, replaces that of the group, whose field keeps its default.
    """
    own = parameters_of(command)
    groups: dict[str, Any] = {
        name: each.annotation for name, each in own.items() if is_dataclass(each.annotation)
    }
    options = {
        name: {option: each for option, each in _options(group).items() if option not in own}
        for name, group in groups.items()
    }
    parameters: dict[str, Parameter] = {}
    for name, parameter in own.items():
        parameters |= options.get(name, {name: parameter})

    @functools.wraps(command)
    def with_groups(**given: Any) -> Any:
        made = {
            name: group(**{option: given.pop(option) for option in options[name]})
            for name, group in groups.items()
        }
        return command(**made, **given)

    return cast(Command, with_parameters(with_groups, parameters))


def _options(group: Any) -> dict[str, Parameter]:
    annotations = get_type_hints(group, include_extras=True)
    return {
        field.name: Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=annotations[field.name],
        )
        for field in fields(group)
    }


def parameters_of(function: Callable[..., Any]) -> dict[str, Parameter]:
    """The parameters of a function in the form that Typer needs: by keyword, with resolved annotations."""
    hints = get_type_hints(function, include_extras=True)
    return {
        name: parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name])
        for name, parameter in inspect.signature(function).parameters.items()
    }


def with_parameters(function: Callable[..., Any], parameters: Mapping[str, Parameter]) -> Callable[..., Any]:
    """Give a function the signature that Typer turns into options and arguments."""
    changed: Any = function
    changed.__annotations__ = {name: each.annotation for name, each in parameters.items()}
    changed.__signature__ = inspect.Signature(list(parameters.values()))
    return function
