"""The commands `keydyn study` and `keydyn report`, and the steps that every study goes through."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keydyn.commands.every_command import every_command, group, parameters_of, with_parameters
from keydyn.commands.shared_options import EngineOption, JobsOption
from keydyn.lab.calibration.study import calibration
from keydyn.lab.continuous.study import continuous
from keydyn.lab.frame.chosen import DataOption, ExportOption, FreshOption, OutOption, SeedOption, check_export
from keydyn.lab.frame.study import Facts, LabStudy
from keydyn.lab.goodness_of_fit.study import goodness_of_fit
from keydyn.lab.model_choice.study import model_choice
from keydyn.lab.open_questions.study import open_questions
from keydyn.lab.own_recordings.study import evaluate
from keydyn.lab.population.study import population
from keydyn.lab.recognition.study import recognition
from keydyn.lab.recommended.study import recommended
from keydyn.lab.relatives.study import relatives
from keydyn.lab.simulation.study import simulation
from keydyn.lab.transfer.study import transfer
from keydyn.lab.verification.study import verification
from keydyn.progress import share_bar, working
from keydyn.terminal import JsonOption, least_width, print_json, say, show, show_table, terminal_width, warn

if TYPE_CHECKING:
    from keydyn.lab.frame.tables import Table


# All studies by name, in the order of the help and of the pages of results.
STUDIES: dict[str, LabStudy] = {
    study.name: study
    for study in (
        *(transfer, recognition, recommended, continuous, relatives, population, verification),
        *(simulation, goodness_of_fit, calibration, model_choice, open_questions, evaluate),
    )
}


@dataclass(frozen=True)
class RunOptions:
    """The options that every study has."""

    out: OutOption = None
    jobs: JobsOption = -1
    engine: EngineOption = ""
    fresh: FreshOption = False
    export: ExportOption = None
    as_json: JsonOption = False


def run_study(study: LabStudy, options: dict[str, Any], run: RunOptions) -> Facts:
    """Run a study: the work, part by part; then tables, figures and report; run.json last.

    `options` are the study's own. Returns the facts that --json prints.
    """
    from keydyn.lab.frame.outputs import Outputs, environment, export_scores
    from keydyn.lab.frame.resuming import Parts
    from keydyn.parallel import using

    check_export(run.export)
    began, folder = time.perf_counter(), run.out or Path("out") / study.name
    plan = study.plan(**options)
    for line in plan.warnings:
        warn(line)
    # A folder that cannot be created is reported before any work is done.
    outputs = Outputs(folder, study.files(), study.page)
    with using(run.engine), share_bar(hidden=run.as_json) as show_progress, _resumable():
        parts = Parts(folder / "parts", run.fresh, run.jobs or -1, show_progress)
        resumed = {"resumed": True} if parts.any() else {}
        result = plan.work(parts)
        show_progress("tables and figures", 1.0)
        # The folder may have files of another study.
        outputs.clear(name for each in STUDIES.values() for name in each.files())
        facts = {"study": study.name, **environment(), **plan.facts(result)}
        for write in plan.more_files:
            write(outputs)
        tables: list[Table] = study.report().write(outputs, result, facts)
        outputs.finish({**facts, **resumed}, began)
        # Last, because a study without scores is complete all the same.
        export_scores(folder, run.export)
    if not run.as_json:
        show_results(tables, folder, began)
    return results_of(study.name, tables, folder, began) | {"warnings": plan.warnings}


@contextmanager
def _resumable() -> Iterator[None]:
    """Report on an interrupt of the block that the work can be resumed."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "interrupted; finished parts are kept: run the same command to resume"
        ) from None


def show_results(tables: Sequence[Table], folder: Path, began: float) -> None:
    """Show tables on the terminal, and the folder that holds all results."""
    from keydyn.lab.frame.table_text import rich_table

    for table in tables:
        rows: list[dict[str, Any]] = [
            {str(name): text for name, text in row.items()}
            for row in table.shown.astype(str).to_dict("records")
        ]
        if least_width(rows) > terminal_width():
            show_table(table.title, rows)
            say(f"\n{table.note}")
        else:
            show(rich_table(table))
    say(f"Report, tables, figures and scores are in {folder}; {time.perf_counter() - began:.0f} s.")


def results_of(study: str, tables: Sequence[Table], folder: Path, began: float) -> Facts:
    """The results of a study as `--json` prints them; the report and all other files are in the folder."""
    return {
        "study": study,
        "folder": str(folder),
        "seconds": round(time.perf_counter() - began, 1),
        "tables": {table.name: json.loads(table.frame.to_json(orient="records")) for table in tables},
    }


def command_of(study: LabStudy) -> Callable[..., None]:
    """The command that runs a study, with the options of the study's plan and those of every run.

    Typer reads a command's signature, which is therefore assembled here.
    """

    def command(**given: Any) -> None:
        run = RunOptions(**{name: given.pop(name) for name in of_run})
        results = run_study(study, given, run)
        if run.as_json:
            print_json(results)

    own, of_run = parameters_of(study.plan), parameters_of(RunOptions)
    # --seed is listed among the options of the run, after the first three.
    seed = {"seed": own.pop("seed")} if "seed" in own else {}
    first, rest = (dict(list(of_run.items())[part]) for part in (slice(3), slice(3, None)))
    command.__name__, command.__doc__ = study.name, study.help
    return every_command(with_parameters(command, {**own, **first, **seed, **rest}))


@every_command
def run_all(
    data: DataOption = None,
    out: Annotated[
        Path, typer.Option("--out", help="Folder for results, with a subfolder for each study.")
    ] = Path("out"),
    jobs: JobsOption = -1,
    engine: EngineOption = "",
    seed: SeedOption = 0,
    fresh: FreshOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run the studies of the paper; the help of the command is `ALL_HELP`."""
    shared, results = {"data": data, "seed": seed}, []
    for study in STUDIES.values():
        if study.in_the_paper:
            options = {name: value for name, value in shared.items() if name in study.options}
            run = RunOptions(out / study.name, jobs, engine, fresh, as_json=as_json)
            results.append(run_study(study, options, run))
    if as_json:
        print_json(results)


ALL_HELP = f"""All of the paper's studies, one after the other: {
    ", ".join(name for name, study in STUDIES.items() if study.in_the_paper)
}.

Example: `keydyn study all --data recordings/`
"""

evaluation = command_of(STUDIES["evaluate"])
app = group("study", "Reproduce the paper's studies.")
for _study in STUDIES.values():
    if _study.subcommand:
        app.command(_study.name)(command_of(_study))
app.command("all", help=ALL_HELP)(run_all)


@every_command
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder that study or evaluate wrote.")],
    export: ExportOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rebuild the tables, figures and report of a finished study from its scores, without fitting.

    Examples:
    `keydyn report out/recognition`

    `keydyn report out/recognition --export bob`
    """
    from keydyn.lab.frame.outputs import export_scores

    began = time.perf_counter()
    check_export(export)
    facts = _read_facts(folder)
    with working("building the report", hidden=as_json):
        tables = _rebuilt(folder, facts)
        export_scores(folder, export)
    if as_json:
        print_json(results_of(facts["study"], tables, folder, began))
        return
    show_results(tables, folder, began)


def _read_facts(folder: Path) -> Facts:
    path = folder / "run.json"
    if not path.exists():
        raise ValueError(f"{folder} holds no finished study: there is no run.json in it")
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if not isinstance(facts, dict) or "study" not in facts:
        raise ValueError(f"{path} does not say which study it belongs to")
    return facts


def _rebuilt(folder: Path, facts: Facts) -> list[Table]:
    from keydyn.lab.frame.outputs import Outputs

    study = STUDIES.get(facts["study"])
    if study is None:
        raise ValueError(f"there is no study {facts['study']!r} that could build this report")
    return study.rebuild(Outputs(folder, study.files(), study.page), facts)
