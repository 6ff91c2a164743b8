"""The recordings of a study as --dataset names them; a name that does not exist is an error of usage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from keydyn.exit_codes import checking_options

if TYPE_CHECKING:
    from keydyn.lab.frame.dataset_rows import Row
    from keydyn.lab.frame.long_texts import Text


def chosen_rows(
    names: Sequence[str] | None, data: Path | None, default_names: Sequence[str] | None = None
) -> tuple[list[Row], list[str]]:
    """The rows to study, and messages about those that are not here; by default all of the paper's rows."""
    from keydyn.lab.frame.dataset_rows import available_rows, check_row_name
    from keydyn.lab.frame.published import DATASETS

    with checking_options():
        for name in names or ():
            check_row_name(name)
    return available_rows(names or (), data, default_names or DATASETS)


def chosen_texts(names: Sequence[str] | None, data: Path | None) -> tuple[list[Text], list[str]]:
    """The long texts to study, and messages about those that are not here."""
    from keydyn.lab.frame.long_texts import available_texts, check_text_name

    with checking_options():
        for name in names or ():
            check_text_name(name)
    return available_texts(names or (), data)
