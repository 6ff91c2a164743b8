"""keydyn evaluate and report: the paper's tables for recordings of one's own, and any of them once more."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keydyn.commands.recording_options import (
    CleanOption,
    ColumnsOption,
    FileArgument,
    Reading,
    SeparatorOption,
    SortOption,
    UnitOption,
)
from keydyn.commands.study import (
    DetectorOption,
    EngineOption,
    FreshOption,
    JobsOption,
    OutOption,
    SeedOption,
    facts_of,
    known_detectors,
    run_study,
    show_results,
)
from keydyn.commands.terminal import fail_clearly

if TYPE_CHECKING:
    import pyarrow as pa

    from keydyn.evaluation.tables import Table
    from keydyn.studies.outputs import Outputs
    from keydyn.studies.score_datasets import Tell

# Templates to fit beyond which a protocol with fewer is pointed at.
MANY = 10_000


@fail_clearly
def evaluate(
    file: FileArgument,
    protocol: Annotated[
        str,
        typer.Option(
            help="leave-one-out, chronological, enrolment, open-set, published or killourhy-maxion."
        ),
    ] = "leave-one-out",
    detector: DetectorOption = None,
    sensors: Annotated[str, typer.Option(help="Further columns to use, comma-separated.")] = "",
    enrol: Annotated[int, typer.Option(min=1, help="Samples that enrol (protocol enrolment).")] = 5,
    share: Annotated[float, typer.Option(help="Share of samples that train (protocol chronological).")] = 0.5,
    groups: Annotated[
        int, typer.Option(min=2, help="Groups of users, each in turn unknown (open set).")
    ] = 10,
    out: OutOption = None,
    jobs: JobsOption = -1,
    engine: EngineOption = "",
    seed: SeedOption = 0,
    fresh: FreshOption = False,
    unit: UnitOption = "ms",
    columns: ColumnsOption = "",
    separator: SeparatorOption = ",",
    sort: SortOption = False,
    clean: CleanOption = False,
) -> None:
    """Evaluate detectors on your own recordings: tables, figures and a report.

    Users with too few samples and samples that cannot be used are left out and named. Unless the protocol is
    an open set already, an open set stands beside it.

    Examples:
    `keydyn evaluate typing.csv --out results/`

    `keydyn evaluate typing.csv --protocol enrolment --enrol 3 --detector pohmm --detector manhattan-scaled`
    """
    from keydyn.detectors import make_detector
    from keydyn.evaluation.running import n_templates
    from keydyn.studies.own_recordings import failures_facts, own_rows, protocol_of, write_evaluation
    from keydyn.studies.recognition_report import DETECTORS, draw_densities
    from keydyn.studies.saved_parts import Parts
    from keydyn.studies.score_datasets import rank_rows, score_rows

    detectors = known_detectors(detector) or list(DETECTORS)
    chosen = protocol_of(protocol, enrol, share, groups)
    reading = Reading(file, unit, columns, separator, sort, clean)
    keystrokes = reading.keystrokes()
    used = tuple(name.strip() for name in sensors.split(",") if name.strip())
    watched = [name for name in detectors if make_detector(name).scores_events]
    vectors = len(watched) < len(detectors)
    rows, failures = own_rows(file, keystrokes, chosen, used, groups, vectors)
    if len(failures.to_acquire) or len(failures.to_enrol):
        typer.secho(f"keydyn: {failures.text()}; the report names them", err=True, fg="yellow")
    n_fits = n_templates(chosen, detectors[0], rows[0].samples)
    if n_fits > MANY:
        typer.secho(
            f"keydyn: {chosen.name} fits {n_fits:,} templates for each detector; --protocol chronological or "
            "enrolment fits one a user",
            err=True,
            fg="yellow",
        )

    def work(parts: Parts, tell: Tell) -> tuple[pa.Table, pa.Table | None]:
        scores = score_rows(rows, detectors, parts, jobs or -1, tell)
        if not watched:
            return scores, None
        of_ranks = Parts(parts.folder / "ranks", fresh)
        return scores, rank_rows(rows[:1], watched, of_ranks, jobs or -1, tell)

    def facts(found: tuple[pa.Table, pa.Table | None]) -> dict[str, Any]:
        return facts_of("evaluate", rows, detectors, seed, found[0]) | {
            "file": file.name,
            "reading": {**asdict(reading), "file": file.name},
            "sensors": list(used),
            "failures": failures_facts(failures),
        }

    def write(outputs: Outputs, found: tuple[pa.Table, pa.Table | None], told: dict[str, Any]) -> list[Table]:
        draw_densities(outputs, rows[:1])
        return write_evaluation(outputs, *found, told, seed)

    run_study("evaluate", out, engine, fresh, work, facts, write)


@fail_clearly
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder that study or evaluate wrote.")],
) -> None:
    """Build tables, figures and report of a finished study again, from its scores, without fitting.

    Example: `keydyn report out/recognition`
    """
    began = time.perf_counter()
    facts = _read_run(folder)
    tables = _rebuilt(folder, facts)
    show_results(tables, folder, began)


def _read_run(folder: Path) -> dict[str, Any]:
    path = folder / "run.json"
    if not path.exists():
        raise ValueError(f"{folder} holds no finished study: there is no run.json in it")
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if not isinstance(facts, dict) or "study" not in facts:
        raise ValueError(f"{path} does not say which study it is of")
    return facts


def _rebuilt(folder: Path, facts: dict[str, Any]) -> list[Table]:
    from keydyn.studies.continuous_report import write_continuous
    from keydyn.studies.outputs import RANKS, SCORES, Outputs, read_table
    from keydyn.studies.own_recordings import write_evaluation
    from keydyn.studies.rank_files import COLUMNS as RANK_COLUMNS
    from keydyn.studies.recognition_report import write_recognition
    from keydyn.studies.relatives_report import read_losses, write_relatives
    from keydyn.studies.score_files import COLUMNS as SCORE_COLUMNS

    outputs, seed, study = Outputs(folder), int(facts.get("seed", 0)), facts["study"]
    if study == "recognition":
        return write_recognition(outputs, read_table(folder / SCORES, SCORE_COLUMNS), facts, seed)
    if study == "continuous":
        return write_continuous(outputs, read_table(folder / RANKS, RANK_COLUMNS), facts, seed)
    if study == "relatives":
        scores, ranks = read_table(folder / SCORES, SCORE_COLUMNS), read_table(folder / RANKS, RANK_COLUMNS)
        return write_relatives(outputs, scores, ranks, read_losses(folder), facts, seed)
    if study == "evaluate":
        ranks = read_table(folder / RANKS, RANK_COLUMNS) if (folder / RANKS).exists() else None
        return write_evaluation(outputs, read_table(folder / SCORES, SCORE_COLUMNS), ranks, facts, seed)
    raise ValueError(f"the study {study!r} has no scores to build its report from; run it again")
