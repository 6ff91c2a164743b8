"""keydyn population: learn a population from many people, and show what one was learnt from."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keydyn.commands.every_command import every_command, group
from keydyn.commands.recording_options import ReadingOptions, listed
from keydyn.commands.shared_options import EngineOption, JobsOption
from keydyn.progress import progress_bar, share_bar
from keydyn.terminal import JsonOption, heading, print_json, show_table, warn

if TYPE_CHECKING:
    from keydyn.decisions.calibration.background import Background
    from keydyn.keystrokes.samples import Samples
    from keydyn.population import PopulationModel

app = group("population", "Learn from many people what they share and how they differ.")


@app.command()
@every_command
def fit(
    reading: ReadingOptions,
    out: Annotated[Path, typer.Option("--out", help="File for the population.")],
    also: Annotated[
        list[Path] | None,
        typer.Option(
            "--also",
            metavar="FILE",
            help="Another file, with different people; repeatable. Only one file at a time is in memory.",
        ),
    ] = None,
    sensors: Annotated[str, typer.Option(help="Further columns to use, comma-separated.")] = "",
    states: Annotated[
        bool,
        typer.Option(
            "--states/--no-states", help="Use hidden states to distinguish pauses from active typing."
        ),
    ] = True,
    calibrate: Annotated[
        bool, typer.Option("--calibrate/--no-calibrate", help="Learn a calibration, which decisions need.")
    ] = True,
    jobs: JobsOption = -1,
    engine: EngineOption = "",
    scratch: Annotated[
        Path | None,
        typer.Option(help="Folder for intermediate results; on a cluster, one that all workers can access."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Learn what people share and how they differ; the more people, the better.

    The population's file contains no samples. A calibration, which gives scores their meaning, is learnt from
    the people in FILE, in four folds, and written to a second file in the same folder,
    PEOPLE.calibration.keydyn, for `keydyn fit --population`. It needs 10 people or more with at least two
    samples each; with fewer people, it is left out.

    Examples:
    `keydyn population fit typing.csv --out people.keydyn`

    `keydyn population fit first.parquet --also second.parquet --out people.keydyn`
    """
    from keydyn.decisions.calibration.background import write_background, write_population
    from keydyn.keystrokes.one_sample import without_impossible
    from keydyn.keystrokes.samples import Samples
    from keydyn.parallel import using
    from keydyn.population import PopulationModel

    used = listed(sensors)
    files = [reading, *(replace(reading, file=file) for file in also or ())]
    samples = (
        without_impossible(Samples.of(one.recording()[0].keystrokes, sensors=used, first="missing"))
        for one in files
    )
    first = next(samples)
    with using(engine), share_bar(hidden=as_json) as show:
        people = PopulationModel(hidden_states=states).fit(
            chain([first], samples) if also else first,
            n_jobs=jobs or -1,
            scratch=scratch,
            progress=lambda share: show("learning", share),
        )
    background = _calibrated(people, first, jobs or -1, as_json) if calibrate else None
    if background is None:
        write_population(out, people)
    else:
        write_background(out, background)
    _show(people, str(out), as_json)


@app.command()
@every_command
def info(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="PEOPLE",
            help="A file that `population fit` wrote; by default the population that comes with keydyn.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a population was learnt from, and how strongly people differ in it.

    Examples:
    `keydyn population info`

    `keydyn population info people.keydyn`
    """
    from keydyn.population import PopulationModel

    if file is None:
        _show(PopulationModel.shipped(), "the population that comes with keydyn", as_json)
    else:
        _show(PopulationModel.load(file), str(file), as_json)


def _calibrated(people: PopulationModel, samples: Samples, n_jobs: int, quiet: bool) -> Background | None:
    """Learn a calibration of the population's scores; None, with a warning, if there are too few people."""
    from keydyn.decisions.calibration.background import FOLDS, Background
    from keydyn.detectors import PopulationDetector

    pattern = PopulationDetector(hidden_states=people.hidden_states)
    try:
        with progress_bar("calibrating", FOLDS + 1, hidden=quiet) as progress:
            learnt = Background.learnt(pattern, samples, keep_cohort=False, n_jobs=n_jobs, progress=progress)
    except ValueError as error:
        warn(f"no calibration is written: {error}")
        return None
    return Background(PopulationDetector(population=people), (), learnt.calibrations)


def _show(people: PopulationModel, name: str, as_json: bool) -> None:
    known = people.parameters
    variances = known.variances
    facts: dict[str, Any] = {
        "people": known.n_people,
        "samples": known.n_samples,
        "keys": len(known.cells.vocabulary),
        "contexts": known.cells.n_cells,
        "factors": known.loadings.shape[1],
        "hidden_states": known.chain.n_states,
        "sha256": people.sha256,
    }
    rows = [
        {
            "feature": name,
            "cell_variance": float(variances.cell[f]),
            "key_variance": float(variances.key[f]),
            "tempo_variance": float(variances.tempo[f]),
            "noise": float(variances.noise[f]),
        }
        for f, name in enumerate(known.features)
    ]
    if as_json:
        print_json({"population": name, **facts, "features": rows})
        return
    show_table(name, [{"what": heading(what), "value": value} for what, value in facts.items()])
    show_table("How people differ", rows)
