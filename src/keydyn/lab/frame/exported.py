"""A study's scores in the forms that other tools read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keydyn.exit_codes import UsageError

# As in keydyn.evaluation.EXPORTS, which needs the numerical stack.
FORMS = ("bob", "bob-csv", "pyeer", "kvc")
ExportOption = Annotated[
    list[str] | None,
    typer.Option(
        "--export",
        help=f"Write the scores for other tools too, in the folder exported: {', '.join(FORMS)}; repeatable.",
    ),
]


def check_export(forms: list[str] | None) -> None:
    """Refuse a form that does not exist."""
    for form in forms or ():
        if form not in FORMS:
            raise UsageError(f"there is no form {form!r} of score files; there are {', '.join(FORMS)}")


def export_scores(folder: Path, forms: list[str] | None) -> list[Path]:
    """Write the scores of a finished study, each system and form in files of its own."""
    if not forms:
        return []
    from keydyn.evaluation.score_files.reading import read_scores
    from keydyn.evaluation.score_files.writing import write_scores
    from keydyn.lab.frame.outputs import EXPORTED, SCORES

    path = folder / SCORES
    if not path.exists():
        raise ValueError(f"{folder} has no scores to export: this study keeps none")
    return [
        file
        for name, claims in read_scores(path).items()
        for form in forms
        for file in write_scores(claims, folder / EXPORTED, name, form)
    ]
