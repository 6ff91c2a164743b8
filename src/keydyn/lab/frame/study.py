"""Defines a study: one object from which its command, its page of results and the rest follow.

A study is a function decorated with `@study(…)` in the file `study.py` of its folder. Its parameters are the
command's options, its docstring is the command's help, and it returns a `Plan`. The decorator names the files
that the study may leave. In `report.py` of the same folder, `write` writes tables, figures and the report
from the result and the facts of run.json, and returns the tables for the terminal; `read` reads the result
from the folder of a run; `PAGE` is the page of results. The last two are optional. `run_study.py` lists all
studies.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    import pandas as pd

    from keydyn.lab.frame.outputs import Outputs
    from keydyn.lab.frame.resuming import Parts
    from keydyn.lab.frame.tables import Table

Result = TypeVar("Result")
Facts = dict[str, Any]


@dataclass(frozen=True)
class Plan(Generic[Result]):
    """The work of a study, once its options are checked and its recordings loaded.

    Attributes
    ----------
    work : does everything that takes long; finished parts are kept in the given `Parts`
    facts : returns the entries of run.json, except the study, its environment and the time it took
    warnings : messages that the user should see before the work begins
    more_files : functions that write files which need more than the result; called before the report
    """

    work: Callable[[Parts], Result]
    facts: Callable[[Result], Facts]
    warnings: list[str] = field(default_factory=list)
    more_files: tuple[Callable[[Outputs], object], ...] = ()


@dataclass(frozen=True)
class LabStudy:
    """A study: its plan, the files that it may leave, and its report.

    Attributes
    ----------
    plan : takes the options by name and returns a `Plan`
    tables, figures, frames : names, without endings, of all files that the study may leave
    in_the_paper : whether `keydyn study all` runs it
    subcommand : whether it is a command of `keydyn study`
    report : returns the module `report.py`, which is imported on the first call
    """

    name: str
    plan: Callable[..., Plan[Any]]
    report: Callable[[], Any]
    tables: tuple[str, ...]
    figures: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()
    in_the_paper: bool = False
    subcommand: bool = True

    @cached_property
    def page(self) -> ResultsPage | None:
        """The page of results, or None; it is an error if it shows anything that the study does not leave."""
        page: ResultsPage | None = getattr(self.report(), "PAGE", None)
        for run in page.runs if page else ():
            unknown = {*run.tables} - {*self.tables} | {*run.figures} - {*self.figures}
            if unknown:
                raise ValueError(f"the study {self.name} leaves no {', '.join(sorted(unknown))}")
        return page

    def rebuild(self, outputs: Outputs, facts: Facts) -> list[Table]:
        """Rebuild tables, figures and report from the files that a run with these facts left."""
        report = self.report()
        if not hasattr(report, "read"):
            raise ValueError(f"the study {self.name!r} has no scores to build its report from; run it again")
        tables: list[Table] = report.write(outputs, report.read(outputs.folder), facts)
        return tables

    @property
    def help(self) -> str:
        """The help text of the command."""
        return inspect.getdoc(self.plan) or ""

    @property
    def options(self) -> tuple[str, ...]:
        """The names of the options that `plan` takes."""
        return tuple(inspect.signature(self.plan).parameters)

    def files(self) -> list[str]:
        """All files of tables, figures and frames that the study may leave, relative to its folder."""
        return [
            *(f"tables/{name}{ending}" for name in self.tables for ending in (".csv", ".md", ".tex")),
            *(f"figures/{name}{ending}" for name in self.figures for ending in (".pdf", ".png")),
            *(f"{name}.parquet" for name in self.frames),
        ]


def study(name: str, **declared: Any) -> Callable[[Callable[..., Plan[Any]]], LabStudy]:
    """Make the decorated function a study; the arguments are the attributes of `LabStudy`."""

    def made(plan: Callable[..., Plan[Any]]) -> LabStudy:
        folder = plan.__module__.rpartition(".")[0]
        return LabStudy(name, plan, **{"report": lambda: import_module(f"{folder}.report"), **declared})

    return made


# The exact values of a run's tables by name, as in the CSV files.
Values = Mapping[str, "pd.DataFrame"]


@dataclass(frozen=True)
class PageRun:
    """A run of a study as shown on its page.

    Attributes
    ----------
    tables : names of tables, each with a sentence that says how to read it, in the order of the page
    figures : names of figures with captions; the first figure is shown at the top
    title : the heading of a run that is not the first
    folder : the run's folder below out/, if its name is not that of the study
    arguments : the command-line arguments of the run
    """

    tables: Mapping[str, str]
    figures: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    folder: str = ""
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class ResultsPage:
    """The page of results of a study.

    Attributes
    ----------
    question : the study's question, in one sentence
    answer : returns the study's findings, in two sentences, from the values of a run
    values : the tables that the answer is computed from, as far as a run has them
    tables, figures : as in `PageRun`, for the run that answers the question
    others : further runs
    """

    title: str
    question: str
    answer: Callable[[Values], str]
    values: tuple[str, ...]
    tables: Mapping[str, str]
    figures: Mapping[str, str] = field(default_factory=dict)
    others: tuple[PageRun, ...] = ()

    @cached_property
    def runs(self) -> tuple[PageRun, ...]:
        """All runs, the one that answers the question first."""
        return (PageRun(self.tables, self.figures), *self.others)

    def opening(self, tables: Values) -> list[str]:
        """The paragraphs that a report begins with."""
        return [self.question, self.answer(tables)]
