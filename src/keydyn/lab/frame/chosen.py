"""The options that studies share, the recordings and detectors they select, and facts for run.json.

An unknown name is a usage error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from keydyn.exit_codes import UsageError, checking_options
from keydyn.lab.frame.study import Facts

if TYPE_CHECKING:
    import pyarrow as pa

    from keydyn.detectors import Detector
    from keydyn.lab.frame.study_data import LongText, Row

DatasetOption = Annotated[
    list[str] | None,
    typer.Option("--dataset", help="password, keypad, mobile, mobile+, fable, essay, simulated; repeatable."),
]
TextOption = Annotated[
    list[str] | None, typer.Option("--dataset", help="fable, essay or simulated; repeatable.")
]
# The names in keydyn.detectors, repeated because importing it loads the numerical stack.
DETECTORS = (
    *("manhattan", "manhattan-scaled", "manhattan-filtered", "euclidean", "euclidean-normed"),
    *("mahalanobis", "mahalanobis-normed", "nearest-neighbour", "outlier-count", "k-means", "svm"),
    *("hmm", "pohmm", "pohmm-recommended", "population", "pohmm-hybrid"),
    *("context-hmm", "partly-hmm", "partially-hmm"),
)
DetectorOption = Annotated[
    list[str] | None,
    typer.Option("--detector", help=f"Repeatable: {', '.join(DETECTORS)}, or a plug-in's name."),
]
DataOption = Annotated[
    Path | None, typer.Option("--data", help="Folder with the recordings; or set KEYDYN_DATA.")
]
OutOption = Annotated[Path | None, typer.Option("--out", help="Folder for results; by default out/STUDY.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of all random numbers.")]
FreshOption = Annotated[
    bool, typer.Option("--fresh", help="Recompute everything; by default finished parts are kept.")
]
SurrogatesOption = Annotated[int, typer.Option("--surrogates", min=19, help="Number of surrogates per test.")]
SecondOption = Annotated[
    int,
    typer.Option(
        "--second",
        min=0,
        help="Number of surrogates per surrogate, for a double bootstrap: 0 for none, or 2 or more.",
    ),
]

# The names in keydyn.evaluation.EXPORTS, repeated because importing it loads the numerical stack.
FORMS = ("bob", "bob-csv", "pyeer", "kvc")
ExportOption = Annotated[
    list[str] | None,
    typer.Option(
        "--export",
        help=f"Write the scores for other tools too, in the folder exported: {', '.join(FORMS)}; repeatable.",
    ),
]

# The name of the simulated typists, used when no recordings are named or present.
SIMULATED = "simulated"
Recordings = TypeVar("Recordings")

# Loads recordings by name from a folder, or from the place they were fetched to.
Load = Callable[[str, Path | None], Recordings]


def chosen_rows(
    names: Sequence[str] | None = None, data: Path | None = None, default_names: Sequence[str] | None = None
) -> tuple[list[Row], list[str]]:
    """Load the rows to study, by default all of the paper's, and return messages about missing datasets."""
    from keydyn.lab.frame.published import DATASETS
    from keydyn.lab.frame.study_data import load_row

    return chosen(names, data, DATASETS, load_row, default_names)


def chosen_texts(
    names: Sequence[str] | None = None, data: Path | None = None
) -> tuple[list[LongText], list[str]]:
    """Load the long texts to study, and return messages about missing datasets."""
    from keydyn.lab.frame.study_data import NAMES, load_text

    return chosen(names, data, NAMES, load_text)


def chosen(
    names: Sequence[str] | None,
    data: Path | None,
    known: Sequence[str],
    load: Load[Recordings],
    default_names: Sequence[str] | None = None,
    simulated: Sequence[str] = (SIMULATED,),
) -> tuple[list[Recordings], list[str]]:
    """Load the recordings to study, and return messages about missing datasets.

    Without `names`, all of `default_names` (or of `known`) that are present are loaded, or the simulated
    recordings if none is. Recordings that are named must be present, and a given folder must hold at least
    one. An unknown name is a `UsageError`.
    """
    for name in names or ():
        if name not in (*known, SIMULATED):
            raise UsageError(f"there is no dataset {name!r}; there are {', '.join((*known, SIMULATED))}")
    if names:
        each = (one for name in names for one in (simulated if name == SIMULATED else [name]))
        return [load(name, data) for name in dict.fromkeys(each)], []
    loaded, messages = [], []
    for name in default_names or known:
        try:
            loaded.append(load(name, data))
        except FileNotFoundError as error:
            messages.append(str(error))
    if loaded:
        return loaded, messages
    if data is not None:
        raise FileNotFoundError(messages[0])
    message = "No dataset was found: simulated typists are used, whose figures say nothing about people."
    return [load(name, None) for name in simulated], [*messages, message]


def known_detectors(names: Sequence[str] | None) -> list[str]:
    """Return the detectors' names without repetitions; an unknown one is reported before any work is done."""
    from keydyn.detectors import make_detector

    with checking_options():
        return [make_detector(name).name for name in dict.fromkeys(names or ())]


def recognition_facts(
    rows: Sequence[Row], detectors: Sequence[str | Detector], seed: int, table: pa.Table | None = None
) -> Facts:
    """Describe for run.json how a study enrols people; `table` holds its scores or ranks."""
    from keydyn.detectors import make_detector
    from keydyn.lab.frame.resuming import detector_settings
    from keydyn.lab.frame.score_datasets import detector_for, limited_fits

    return {
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


def text_facts(texts: Sequence[LongText], settings: Facts | None = None) -> Facts:
    """Describe for run.json which long texts a study used."""
    return {"data": {text.name: text.checksums for text in texts}, **(settings or {})}


def check_second(second: int) -> None:
    """Refuse a number of second-level surrogates that gives no p-value."""
    if second == 1:
        raise UsageError("--second must be 0, or 2 or more")


def check_export(forms: list[str] | None) -> None:
    """Refuse an unknown form of score files."""
    for form in forms or ():
        if form not in FORMS:
            raise UsageError(f"there is no form {form!r} of score files; there are {', '.join(FORMS)}")
