"""keydyn population: learn what people share, and say what a population was learnt from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keydyn.commands.recording_options import (
    CleanOption,
    ColumnsOption,
    Reading,
    SeparatorOption,
    SortOption,
    UnitOption,
)
from keydyn.commands.study_options import DataOption, EngineOption, JobsOption
from keydyn.exit_codes import UsageError, fail_clearly
from keydyn.terminal import JsonOption, print_json, share_bar, show_table

if TYPE_CHECKING:
    import pandas as pd

    from keydyn.population import PopulationModel

app = typer.Typer(
    name="population",
    help="Learn from many people how people differ.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
)


@app.command()
@fail_clearly
def fit(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE...",
            help="CSV or Parquet: user, session, keyname, timepress, timerelease. Of several files each has "
            "other people, and only one at a time is in memory.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="File for the population.")] = Path("people.keydyn"),
    dataset: Annotated[
        list[str] | None,
        typer.Option("--dataset", help="Published recordings by name, instead of files; repeatable."),
    ] = None,
    data: DataOption = None,
    sensors: Annotated[str, typer.Option(help="Further columns to use, comma-separated.")] = "",
    states: Annotated[
        bool, typer.Option("--states/--no-states", help="Tell pauses from active typing by hidden states.")
    ] = True,
    jobs: JobsOption = -1,
    engine: EngineOption = "",
    scratch: Annotated[
        Path | None,
        typer.Option(help="Folder for intermediate results; on a cluster, one that all workers see."),
    ] = None,
    unit: UnitOption = "ms",
    columns: ColumnsOption = "",
    separator: SeparatorOption = ",",
    sort: SortOption = False,
    clean: CleanOption = False,
    as_json: JsonOption = False,
) -> None:
    """Learn what people share and how they differ; the more people the better.

    The file that is written holds nobody's samples.

    Examples:
    `keydyn population fit typing.csv --out people.keydyn`

    `keydyn population fit first.parquet second.parquet --out people.keydyn`
    """
    from keydyn.engine import using
    from keydyn.keystrokes.samples import Samples
    from keydyn.population import PopulationModel

    used = [name.strip() for name in sensors.split(",") if name.strip()]
    if bool(files) == bool(dataset):
        raise UsageError("give one file or more, or --dataset")
    read: Iterator[pd.DataFrame]
    if dataset:
        read = _published(dataset, data)
    else:
        read = (Reading(file, unit, columns, separator, sort, clean).keystrokes() for file in files or ())
    samples = (Samples.of(keystrokes, sensors=used, first="missing") for keystrokes in read)
    with using(engine), share_bar(hidden=as_json) as show:
        show("reading", 0.0)
        people = PopulationModel(hidden_states=states).fit(
            next(samples) if len(files or dataset or ()) == 1 else samples,
            n_jobs=jobs or -1,
            scratch=scratch,
            progress=lambda share: show("learning", share),
        )
    people.save(out)
    _show(people, str(out), as_json)


def _published(names: Sequence[str], data: Path | None) -> Iterator[pd.DataFrame]:
    """The recordings of these names; people of different ones are different people."""
    from keydyn.datasets import load_dataset

    for name in names:
        keystrokes = load_dataset(name, data).keystrokes
        yield keystrokes.assign(user=f"{name} " + keystrokes["user"].astype(str))


@app.command()
@fail_clearly
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
    """Say what a population was learnt from, and how strongly people differ in it.

    Examples:
    `keydyn population info`

    `keydyn population info people.keydyn`
    """
    from keydyn.population import PopulationModel

    if file is None:
        _show(PopulationModel.shipped(), "the population that comes with keydyn", as_json)
    else:
        _show(PopulationModel.load(file), str(file), as_json)


def _show(people: PopulationModel, name: str, as_json: bool) -> None:
    known = people.parameters
    strengths = known.strengths
    facts: dict[str, Any] = {
        "people": known.n_people,
        "samples": known.n_samples,
        "keys": len(known.cells.vocabulary),
        "contexts": known.cells.n_cells,
        "factors": known.loadings.shape[1],
        "hidden states": known.chain.n_states,
        "sha256": people.sha256,
    }
    rows = [
        {
            "feature": name,
            "cell variance": float(strengths.cell[f]),
            "key variance": float(strengths.key[f]),
            "tempo variance": float(strengths.tempo[f]),
            "noise": float(strengths.noise[f]),
        }
        for f, name in enumerate(known.features)
    ]
    if as_json:
        print_json({"population": name, **facts, "features": rows})
        return
    show_table(name, [{"what": name, "value": value} for name, value in facts.items()])
    show_table("How people differ", rows)
