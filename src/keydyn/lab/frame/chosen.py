"""What a study's options choose: recordings and detectors, and what run.json says of them.

A name that does not exist is an error of usage.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from keydyn.exit_codes import UsageError, checking_options
from keydyn.lab.frame.study import Facts

if TYPE_CHECKING:
    import pyarrow as pa

    from keydyn.detectors import Detector
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


def known_detectors(names: Sequence[str] | None) -> list[str]:
    """Detectors by name; an unknown one is reported before any work is done."""
    from keydyn.detectors import make_detector

    with checking_options():
        return [make_detector(name).name for name in dict.fromkeys(names or ())]


def recognition_facts(
    study_name: str,
    rows: Sequence[Row],
    detectors: Sequence[str | Detector],
    seed: int,
    table: pa.Table | None = None,
) -> Facts:
    """What run.json says of a study that enrols people; `table` has its scores or ranks."""
    from keydyn.detectors import make_detector
    from keydyn.lab.frame.outputs import environment
    from keydyn.lab.frame.resuming import detector_settings
    from keydyn.lab.frame.score_datasets import detector_for, limited_fits

    return {
        "study": study_name,
        **environment(),
        "seed": seed,
        "data": {row.name: row.checksums for row in rows},
        "vectors": {row.name: row.vectors for row in rows},
        "protocols": {row.name: row.protocol.describe() for row in rows},
        "detectors": {
            row.name: {
                make_detector(one).name: detector_settings(detector_for(row.name, one)) for one in detectors
            }
            for row in rows
        },
        "fits that reached the limit of iterations": {} if table is None else limited_fits(table),
    }


def text_facts(name: str, texts: Sequence[Text], settings: Facts) -> Facts:
    """What run.json says of a study on long texts."""
    from keydyn.lab.frame.outputs import environment

    checksums = {text.name: text.checksums for text in texts}
    return {"study": name, **environment(), "data": checksums, **settings}


def check_second(second: int) -> None:
    """A `UsageError` for a number of second surrogates that gives no p-value."""
    if second == 1:
        raise UsageError("--second must be 0, or 2 or more")
