"""keydyn study: the paper's studies on its datasets, each with tables, figures and a report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from keydyn.commands.terminal import fail_clearly, share_bar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from keydyn.evaluation.tables import Table
    from keydyn.studies.dataset_rows import Row
    from keydyn.studies.outputs import Outputs
    from keydyn.studies.saved_parts import Parts
    from keydyn.studies.score_datasets import Tell

Found = TypeVar("Found")

app = typer.Typer(name="study", help="Reproduce the paper's studies.", no_args_is_help=True)

DatasetOption = Annotated[
    list[str] | None,
    typer.Option("--dataset", help="password, keypad, mobile, mobile+, fable, essay, simulated; repeatable."),
]
DetectorOption = Annotated[
    list[str] | None, typer.Option("--detector", help="A detector by its name; repeatable.")
]
DataOption = Annotated[
    Path | None, typer.Option("--data", help="Folder that has the recordings; or set KEYDYN_DATA.")
]
OutOption = Annotated[Path | None, typer.Option("--out", help="Folder for results; by default out/STUDY.")]
JobsOption = Annotated[int, typer.Option("--jobs", min=-1, help="Threads; -1 or 0 for all cores.")]
EngineOption = Annotated[
    str, typer.Option("--engine", help="dask://HOST:PORT: fit on a Dask cluster (extra: distributed).")
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Compute again what is there already.")]


@app.command()
@fail_clearly
def recognition(
    dataset: DatasetOption = None,
    detector: DetectorOption = None,
    data: DataOption = None,
    out: OutOption = None,
    jobs: JobsOption = -1,
    engine: EngineOption = "",
    seed: SeedOption = 0,
    fresh: FreshOption = False,
) -> None:
    """Who is it, and is it who they say? Identification and verification (Section 5.2).

    Examples:
    `keydyn study recognition --data recordings/`

    `keydyn study recognition --dataset fable --detector pohmm --detector hmm`
    """
    from keydyn.studies.recognition_report import DETECTORS, draw_densities, write_recognition
    from keydyn.studies.score_datasets import score_rows

    detectors = known_detectors(detector) or list(DETECTORS)
    rows = _rows(dataset, data)

    def write(outputs: Outputs, table: pa.Table, facts: dict[str, Any]) -> list[Table]:
        draw_densities(outputs, rows)
        return write_recognition(outputs, table, facts, seed)

    run_study(
        "recognition",
        out,
        engine,
        fresh,
        lambda parts, tell: score_rows(rows, detectors, parts, jobs or -1, tell),
        lambda table: facts_of("recognition", rows, detectors, seed, table),
        write,
    )


@app.command()
@fail_clearly
def recommended(
    dataset: DatasetOption = None,
    data: DataOption = None,
    out: OutOption = None,
    jobs: JobsOption = -1,
    engine: EngineOption = "",
    fresh: FreshOption = False,
) -> None:
    """Choose the recommended settings: for each dataset by the others alone. Takes some minutes.

    Example: `keydyn study recommended --data recordings/`
    """
    from keydyn.studies.recommended_choice import try_candidates, write_recommended

    rows = _rows(dataset, data)
    run_study(
        "recommended",
        out,
        engine,
        fresh,
        lambda parts, tell: try_candidates(rows, parts, jobs or -1, tell),
        lambda _: facts_of("recommended", rows, [], 0),
        write_recommended,
    )


@app.command()
@fail_clearly
def continuous(
    dataset: DatasetOption = None,
    detector: DetectorOption = None,
    data: DataOption = None,
    out: OutOption = None,
    jobs: JobsOption = -1,
    engine: EngineOption = "",
    seed: SeedOption = 0,
    fresh: FreshOption = False,
) -> None:
    """Is it still them, keystroke by keystroke? Continuous verification (Section 5.3).

    Example: `keydyn study continuous --dataset fable --data recordings/`
    """
    from keydyn.studies.continuous_report import DETECTORS, write_continuous
    from keydyn.studies.score_datasets import rank_rows

    detectors = known_detectors(detector) or list(DETECTORS)
    rows = _rows(dataset, data)
    run_study(
        "continuous",
        out,
        engine,
        fresh,
        lambda parts, tell: rank_rows(rows, detectors, parts, jobs or -1, tell),
        lambda table: facts_of("continuous", rows, detectors, seed, table),
        lambda outputs, table, facts: write_continuous(outputs, table, facts, seed),
    )


@app.command()
@fail_clearly
def relatives(
    dataset: DatasetOption = None,
    data: DataOption = None,
    out: OutOption = None,
    jobs: JobsOption = -1,
    engine: EngineOption = "",
    seed: SeedOption = 0,
    fresh: FreshOption = False,
) -> None:
    """The POHMM beside context-, partly- and partially-HMM, and what lost contexts cost (Section 6).

    Examples:
    `keydyn study relatives --data recordings/`

    `keydyn study relatives --dataset fable`
    """
    from keydyn.studies.relatives_measurements import DETECTORS, run_relatives
    from keydyn.studies.relatives_report import write_relatives

    rows = _rows(dataset, data)
    run_study(
        "relatives",
        out,
        engine,
        fresh,
        lambda parts, tell: run_relatives(rows, seed, parts, jobs or -1, tell),
        lambda found: facts_of("relatives", rows, DETECTORS, seed, found[0]),
        lambda outputs, found, facts: write_relatives(outputs, *found, facts, seed),
    )


def run_study(
    name: str,
    out: Path | None,
    engine: str,
    fresh: bool,
    work: Callable[[Parts, Tell], Found],
    facts: Callable[[Found], dict[str, Any]],
    write: Callable[[Outputs, Found, dict[str, Any]], list[Table]],
) -> None:
    """The course of every study: the work, part by part; then tables, figures and report; run.json last."""
    from keydyn.engine import using
    from keydyn.studies.outputs import Outputs
    from keydyn.studies.saved_parts import Parts

    began, folder = time.perf_counter(), out or Path("out") / name
    # A folder that cannot be is told before any work.
    outputs = Outputs(folder)
    with using(engine), share_bar() as tell:
        found = work(Parts(folder / "parts", fresh), tell)
        tell("tables and figures", 1.0)
        outputs.begin()
        told = facts(found)
        tables = write(outputs, found, told)
        outputs.finish(told, began)
    show_results(tables, folder, began)


def _rows(names: Sequence[str] | None, data: Path | None) -> list[Row]:
    from keydyn.studies.dataset_rows import rows_here

    rows, told = rows_here(names or (), data)
    for line in told:
        typer.secho(f"keydyn: {line}", err=True, fg="yellow")
    return rows


def known_detectors(detectors: Sequence[str] | None) -> list[str]:
    """Detectors by name; one that is not known is told before any work is done."""
    from keydyn.detectors import make_detector

    return [make_detector(name).name for name in dict.fromkeys(detectors or ())]


def facts_of(
    study: str,
    rows: Sequence[Row],
    detectors: Sequence[str],
    seed: int,
    table: pa.Table | None = None,
) -> dict[str, Any]:
    """What run.json says."""
    from keydyn.studies.outputs import environment
    from keydyn.studies.recommended_settings import detector_for
    from keydyn.studies.saved_parts import detector_settings
    from keydyn.studies.score_datasets import limited_fits

    return {
        "study": study,
        **environment(),
        "seed": seed,
        "data": {row.name: row.checksums for row in rows},
        "vectors": {row.name: row.vectors for row in rows},
        "protocols": {row.name: row.protocol.describe() for row in rows},
        "detectors": {
            row.name: {name: detector_settings(detector_for(row.name, name)) for name in detectors}
            for row in rows
        },
        "fits that reached the limit of iterations": {} if table is None else limited_fits(table),
    }


def show_results(tables: Sequence[Table], folder: Path, began: float) -> None:
    """Tables on the terminal, and where everything is."""
    from rich.console import Console

    from keydyn.evaluation.table_text import rich_table

    console = Console()
    for table in tables:
        console.print(rich_table(table))
    typer.echo(f"Report, tables, figures and scores are in {folder}; {time.perf_counter() - began:.0f} s.")
