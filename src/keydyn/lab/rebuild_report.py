"""keydyn report: tables, figures and report of a finished study once more."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keydyn.commands.every_command import every_command
from keydyn.lab.frame.study import Facts
from keydyn.lab.run_study import STUDIES, results_of, show_results
from keydyn.progress import working
from keydyn.terminal import JsonOption, print_json

if TYPE_CHECKING:
    from keydyn.lab.frame.tables import Table


@every_command
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder that study or evaluate wrote.")],
    as_json: JsonOption = False,
) -> None:
    """Rebuild the tables, figures and report of a finished study from its scores, without fitting.

    Example: `keydyn report out/recognition`
    """
    began = time.perf_counter()
    facts = _read_facts(folder)
    with working("building the report", hidden=as_json):
        tables = _rebuilt(folder, facts)
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
    if study is None or study.rebuild is None:
        raise ValueError(f"the study {facts['study']!r} has no scores to build its report from; run it again")
    outputs = Outputs(folder, study.files(), study.page)
    return study.rebuild(outputs, facts, int(facts.get("seed", 0)))
