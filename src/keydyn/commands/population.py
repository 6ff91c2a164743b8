"""keydyn population: learn what people share, and say what a population was learnt from."""

from __future__ import annotations

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
from keydyn.exit_codes import fail_clearly
from keydyn.terminal import JsonOption, print_json, show_table

if TYPE_CHECKING:
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
    file: FileArgument,
    out: Annotated[Path, typer.Option("--out", help="File for the population.")],
    sensors: Annotated[str, typer.Option(help="Further columns to use, comma-separated.")] = "",
    states: Annotated[
        bool, typer.Option("--states/--no-states", help="Tell pauses from active typing by hidden states.")
    ] = True,
    unit: UnitOption = "ms",
    columns: ColumnsOption = "",
    separator: SeparatorOption = ",",
    sort: SortOption = False,
    clean: CleanOption = False,
    as_json: JsonOption = False,
) -> None:
    """Learn what the people of a file share and how they differ; the more people the better.

    The file that is written holds nobody's samples.

    Example: `keydyn population fit typing.csv --out people.keydyn`
    """
    from keydyn.keystrokes.samples import Samples
    from keydyn.population import PopulationModel

    keystrokes = Reading(file, unit, columns, separator, sort, clean).keystrokes()
    used = [name.strip() for name in sensors.split(",") if name.strip()]
    people = PopulationModel(hidden_states=states).fit(Samples.of(keystrokes, sensors=used, first="missing"))
    people.save(out)
    _show(people, out, as_json)


@app.command()
@fail_clearly
def info(
    file: Annotated[Path, typer.Argument(metavar="PEOPLE", help="A file that `population fit` wrote.")],
    as_json: JsonOption = False,
) -> None:
    """Say what a population was learnt from, and how strongly people differ in it.

    Example: `keydyn population info people.keydyn`
    """
    from keydyn.population import PopulationModel

    _show(PopulationModel.load(file), file, as_json)


def _show(people: PopulationModel, file: Path, as_json: bool) -> None:
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
        print_json({"population": str(file), **facts, "features": rows})
        return
    show_table(str(file), [{"what": name, "value": value} for name, value in facts.items()])
    show_table("How people differ", rows)
