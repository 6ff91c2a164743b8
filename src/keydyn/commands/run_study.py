"""keydyn study: the studies as commands, and the course that each of them takes."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from keydyn.commands import evaluate, fit_studies, recognition_studies
from keydyn.commands.study import Study
from keydyn.commands.study_options import (
    DataOption,
    EngineOption,
    FreshOption,
    JobsOption,
    OutOption,
    SeedOption,
)
from keydyn.exit_codes import fail_clearly
from keydyn.terminal import share_bar, warn

if TYPE_CHECKING:
    from keydyn.evaluation.tables import Table

# All studies by name, in the order of the help and of the results page: that of their definitions.
STUDIES: dict[str, Study] = {
    study.name: study
    for module in (recognition_studies, fit_studies, evaluate)
    for study in vars(module).values()
    if isinstance(study, Study)
}


def run_study(study: Study, options: dict[str, Any], out: Path | None, engine: str, fresh: bool) -> None:
    """The course of every study: the work, part by part; then tables, figures and report; run.json last."""
    from keydyn.engine import using
    from keydyn.studies.outputs import Outputs
    from keydyn.studies.saved_parts import Parts

    began, folder = time.perf_counter(), out or Path("out") / study.name
    plan = study.plan(**options)
    for line in plan.warnings:
        warn(line)
    # A folder that cannot be made is reported before any work.
    outputs = Outputs(folder, study.files())
    with using(engine), share_bar() as show_progress:
        result = plan.work(Parts(folder / "parts", fresh), show_progress)
        show_progress("tables and figures", 1.0)
        # The folder may have been used by another study before.
        outputs.clear(name for each in STUDIES.values() for name in each.files())
        facts = plan.facts(result)
        tables = plan.write(outputs, result, facts)
        outputs.finish(facts, began)
    show_results(tables, folder, began)


def show_results(tables: Sequence[Table], folder: Path, began: float) -> None:
    """Show tables on the terminal, and where everything is."""
    from rich.console import Console

    from keydyn.evaluation.table_text import rich_table

    console = Console()
    for table in tables:
        console.print(rich_table(table))
    typer.echo(f"Report, tables, figures and scores are in {folder}; {time.perf_counter() - began:.0f} s.")


def command_of(study: Study) -> Callable[..., None]:
    """The command that runs a study: its options are those of the study's plan, and --out, --engine, --fresh.

    Typer reads a command's signature, which is therefore put together here.
    """

    @fail_clearly
    def command(out: Path | None, engine: str, fresh: bool, **options: Any) -> None:
        run_study(study, options, out, engine, fresh)

    hints = get_type_hints(study.plan, include_extras=True)
    parameters = {
        name: parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(study.plan).parameters.items()
    }
    # Those of the run stand around --jobs and --seed.
    run = {
        "out": _option("out", OutOption, None),
        "jobs": parameters["jobs"],
        "engine": _option("engine", EngineOption, ""),
        **({"seed": parameters["seed"]} if "seed" in parameters else {}),
        "fresh": _option("fresh", FreshOption, False),
    }
    ordered: dict[str, Parameter] = {}
    for name, parameter in parameters.items():
        ordered |= run if name == "jobs" else {name: parameter}
    reads_signature: Any = command
    reads_signature.__name__ = study.name
    reads_signature.__doc__ = study.help
    reads_signature.__annotations__ = {name: each.annotation for name, each in ordered.items()}
    reads_signature.__signature__ = inspect.Signature(list(ordered.values()))
    return command


def _option(name: str, annotation: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


@fail_clearly
def run_all(
    data: DataOption = None,
    out: Annotated[
        Path, typer.Option("--out", help="Folder for results, one below it for each study.")
    ] = Path("out"),
    jobs: JobsOption = -1,
    engine: EngineOption = "",
    seed: SeedOption = 0,
    fresh: FreshOption = False,
) -> None:
    """Run the studies of the paper; the help of the command is `ALL_HELP`."""
    shared = {"data": data, "jobs": jobs, "seed": seed}
    for study in STUDIES.values():
        if study.in_the_paper:
            options = {name: value for name, value in shared.items() if name in study.options}
            run_study(study, options, out / study.name, engine, fresh)


ALL_HELP = f"""All of the paper's studies, one after the other: {
    ", ".join(name for name, study in STUDIES.items() if study.in_the_paper)
}.

Example: `keydyn study all --data recordings/`
"""

app = typer.Typer(name="study", help="Reproduce the paper's studies.", no_args_is_help=True)
for _study in STUDIES.values():
    if _study.subcommand:
        app.command(_study.name)(command_of(_study))
app.command("all", help=ALL_HELP)(run_all)
