"""Loads the published datasets in the schema, and summarises datasets."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd

from keydyn.datasets.files.columns import integers_of, numbers_of
from keydyn.datasets.files.file_tables import read_table
from keydyn.datasets.files.recordings import load_recordings
from keydyn.datasets.published.aalto import load_people
from keydyn.datasets.published.catalogue import Category, File, entry_of
from keydyn.datasets.published.fetching import checksum, data_folders, find_data, find_file, not_found
from keydyn.keystrokes.quality import find_duplicates
from keydyn.keystrokes.schema import SAMPLE, check_keystrokes, sample_starts


@dataclass(frozen=True, eq=False)
class Dataset:
    """The keystrokes of many people, with everything known about the dataset.

    Examples
    --------
    The recordings must be there: `keydyn data fetch` downloads them.

    >>> from keydyn.datasets import load_dataset
    >>> fable = load_dataset("fable")
    >>> fable.keystrokes["user"].nunique(), fable.category
    (60, 'constrained')
    >>> "Monaco" in fable.citation
    True
    """

    name: str
    title: str
    category: Category
    description: str
    keystrokes: pd.DataFrame = field(repr=False)
    sensors: tuple[str, ...] = field(repr=False)
    vectors: pd.DataFrame | None = field(repr=False)  # the authors' own: index (user, session), 218 columns
    citation: str = field(repr=False)
    terms: str = field(repr=False)
    checksums: dict[str, str] = field(repr=False)  # SHA-256 of each file read, unpacked, by the file's name
    notes: tuple[str, ...] = field(repr=False)
    duplicates: pd.DataFrame = field(repr=False)  # samples that copy an earlier one, which is named


def load_dataset(name: str, data: str | PathLike[str] | None = None) -> Dataset:
    """Load one of password, keypad, mobile, fable, essay and aalto.

    Files are looked for in the folder `data`, then in the folder named by KEYDYN_DATA, then among the
    downloads of `fetch_dataset`. A file that differs from the published one is read with a warning. For
    `aalto`, the authors' archive Keystrokes.zip or its unpacked folder may replace the file; `stream_aalto`
    reads in parts what is too large to be read at once.

    Examples
    --------
    The recordings must be there: `keydyn data fetch` downloads them.

    >>> from keydyn.datasets import load_dataset
    >>> keypad = load_dataset("keypad")
    >>> keypad.keystrokes.columns[:5].tolist()
    ['user', 'session', 'keyname', 'timepress', 'timerelease']
    """
    entry = entry_of(name)
    folders = data_folders(data)
    path = find_data(entry.keystrokes, folders)
    if path is None:
        raise not_found(name, folders)
    named = path.name in entry.keystrokes.names
    checksums = {path.name: _checked(entry.keystrokes, path)} if named else {}
    keystrokes = load_people(path) if entry.name == "aalto" else load_recordings(path)
    absent = [sensor for sensor in entry.sensors if sensor not in keystrokes]
    if absent:
        raise ValueError(f"{path}: no column {', '.join(absent)}")
    vectors = None
    if entry.vectors is not None and (vectors_path := find_file(entry.vectors, folders)) is not None:
        checksums[vectors_path.name] = _checked(entry.vectors, vectors_path)
        vectors = _read_vectors(vectors_path, keystrokes)
    names = ("name", "title", "category", "description", "sensors", "citation", "terms", "notes")
    known = {name: getattr(entry, name) for name in names}
    copies = find_duplicates(keystrokes)
    return Dataset(**known, keystrokes=keystrokes, vectors=vectors, checksums=checksums, duplicates=copies)


def _checked(file: File, path: Path) -> str:
    sha256 = checksum(path)
    if sha256 != file.sha256:
        warnings.warn(
            f"{path} is not the published file (SHA-256 {sha256[:12]}..., published {file.sha256[:12]}...): "
            "results from it are not comparable with published ones",
            stacklevel=3,
        )
    return sha256


def _read_vectors(path: Path, keystrokes: pd.DataFrame) -> pd.DataFrame:
    """Read the authors' feature vectors, which must belong to the samples of the keystrokes."""
    try:
        table = read_table(path)
        absent = [repr(name) for name in SAMPLE if name not in table.columns]
        if absent:
            raise ValueError(f"no column {', '.join(absent)}")
        user, session = (integers_of(table, name) for name in SAMPLE)
        features = [name for name in table.columns if name not in SAMPLE]
        index = pd.MultiIndex.from_arrays([user, session], names=SAMPLE)
        vectors = pd.DataFrame(numbers_of(table, features), index=index, columns=features)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    samples = keystrokes.loc[sample_starts(keystrokes), SAMPLE]
    if not index.equals(pd.MultiIndex.from_frame(samples)):
        raise ValueError(f"{path}: its samples are not those of the keystrokes")
    return vectors


def dataset_summary(datasets: Iterable[Dataset] | Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One row per dataset: users, mean samples per user, mean keys per sample, and mean τ in milliseconds.

    τ is the time from press to press within a sample; a sample's first keystroke has none. Pass a mapping
    from names to keystrokes to summarise your own recordings, whose category is unknown.

    Examples
    --------
    >>> from keydyn.datasets import dataset_summary, make_typists
    >>> summary = dataset_summary({"simulated": make_typists(5, 4)})
    >>> summary.shape[0], summary.columns.tolist()
    (1, ['category', 'users', 'samples', 'keys', 'tau'])
    """
    named: list[tuple[str, str | None, pd.DataFrame]]
    if isinstance(datasets, Mapping):
        named = [(name, None, check_keystrokes(frame)) for name, frame in datasets.items()]
    else:
        named = [(dataset.name, dataset.category, dataset.keystrokes) for dataset in datasets]
    rows = [{"dataset": name, "category": category, **_row(frame)} for name, category, frame in named]
    return pd.DataFrame(rows, columns=["dataset", "category", "users", "samples", "keys", "tau"]).set_index(
        "dataset"
    )


def _row(keystrokes: pd.DataFrame) -> dict[str, float]:
    starts = sample_starts(keystrokes)
    intervals = np.delete(np.diff(keystrokes["timepress"].to_numpy(), prepend=np.nan), starts)
    users = keystrokes["user"].nunique()
    return {
        "users": users,
        "samples": len(starts) / users,
        "keys": len(keystrokes) / len(starts),
        "tau": float(intervals.mean()) if len(intervals) else np.nan,
    }
