"""What a study is: one object, from which its command, its page of results and the rest follow.

A study is a function under `@study(…)` in the file `study.py` of its folder. Its parameters are the command's
options, its docstring is the command's help, and it returns a `Plan`. The decorator names the files that the
study may leave. Its question, its answer and its page of results are in `page.py` beside it; `run_study.py`
lists all studies.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from keydyn.lab.frame.outputs import Outputs
    from keydyn.lab.frame.page import ResultsPage
    from keydyn.lab.frame.resuming import Parts, ShowProgress
    from keydyn.lab.frame.tables import Table

Result = TypeVar("Result")
Facts = dict[str, Any]


@dataclass(frozen=True)
class Plan(Generic[Result]):
    """What is to be done once the options are checked and the recordings are loaded.

    Attributes
    ----------
    work : all that takes long; finished parts are kept in the given `Parts`
    facts : what run.json says, besides how long it took
    write : writes tables, figures and the report; returns the tables for the terminal
    warnings : what the user should know before the work begins
    """

    work: Callable[[Parts, ShowProgress], Result]
    facts: Callable[[Result], Facts]
    write: Callable[[Outputs, Result, Facts], list[Table]]
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Study:
    """A study.

    Attributes
    ----------
    plan : takes the options by name and returns a `Plan`
    tables, figures, frames : names, without endings, of all files that the study may leave
    in_the_paper : whether `keydyn study all` runs it
    subcommand : whether it is a command of `keydyn study`
    rebuild : writes everything again from the scores in the folder, given the facts and the seed of the
        run; None if there are no scores
    results : gives its page of results; None if it has none
    """

    name: str
    plan: Callable[..., Plan[Any]]
    tables: tuple[str, ...]
    figures: tuple[str, ...]
    frames: tuple[str, ...]
    in_the_paper: bool
    subcommand: bool
    rebuild: Callable[[Outputs, Facts, int], list[Table]] | None
    results: Callable[[], ResultsPage] | None

    @cached_property
    def page(self) -> ResultsPage | None:
        """The page of results, which shows only what the study leaves."""
        page = self.results() if self.results else None
        for run in page.runs if page else ():
            unknown = {*run.tables} - {*self.tables} | {*run.figures} - {*self.figures}
            if unknown:
                raise ValueError(f"the study {self.name} leaves no {', '.join(sorted(unknown))}")
        return page

    @property
    def help(self) -> str:
        """What the command's help says."""
        return inspect.getdoc(self.plan) or ""

    @property
    def options(self) -> tuple[str, ...]:
        """The names of the options that `plan` takes."""
        return tuple(inspect.signature(self.plan).parameters)

    def files(self) -> list[str]:
        """All tables, figures and frames that the study may leave, relative to its folder."""
        return [
            *(f"tables/{name}{ending}" for name in self.tables for ending in (".csv", ".md", ".tex")),
            *(f"figures/{name}{ending}" for name in self.figures for ending in (".pdf", ".png")),
            *(f"{name}.parquet" for name in self.frames),
        ]


def study(
    name: str,
    *,
    tables: tuple[str, ...],
    figures: tuple[str, ...] = (),
    frames: tuple[str, ...] = (),
    in_the_paper: bool = False,
    subcommand: bool = True,
    rebuild: Callable[[Outputs, Facts, int], list[Table]] | None = None,
    results: Callable[[], ResultsPage] | None = None,
) -> Callable[[Callable[..., Plan[Any]]], Study]:
    """Make the decorated function a study; the arguments are the attributes of `Study`."""

    def make(plan: Callable[..., Plan[Any]]) -> Study:
        return Study(name, plan, tables, figures, frames, in_the_paper, subcommand, rebuild, results)

    return make


def page_beside(module: str) -> Callable[[], ResultsPage]:
    """The page in `page.py` of the folder of a module, imported when it is first asked for."""
    return lambda: import_module(module.rpartition(".")[0] + ".page").PAGE
