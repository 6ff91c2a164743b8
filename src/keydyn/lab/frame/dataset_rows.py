"""The rows of the paper's recognition tables: a dataset, the features that are used, and how it is split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from os import PathLike
from typing import TypeVar

import numpy as np

from keydyn.datasets import load_dataset, make_typists
from keydyn.evaluation.protocols.protocol import MonacoTappert, Protocol
from keydyn.keystrokes.samples import Samples
from keydyn.lab.frame.published import DATASETS

Recordings = TypeVar("Recordings")


def available_or_simulated(
    names: Sequence[str],
    default_names: Sequence[str],
    load: Callable[[str, str | PathLike[str] | None], Recordings],
    data: str | PathLike[str] | None,
    substitute: str,
    message_if_none: str,
) -> tuple[list[Recordings], list[str]]:
    """The recordings, loaded from `data`, and messages about those that are not here.

    Without names, these are all `default_names` that are here. If none is, `substitute` is loaded instead,
    and `message_if_none` is added. What was named must be here, and a folder that was named must have
    something.
    """
    if names:
        return [load(name, data) for name in dict.fromkeys(names)], []
    loaded, messages = [], []
    for name in default_names:
        try:
            loaded.append(load(name, data))
        except FileNotFoundError as error:
            messages.append(str(error))
    if not loaded and data is not None:
        raise FileNotFoundError(messages[0])
    if not loaded:
        messages.append(message_if_none)
        loaded.append(load(substitute, None))
    return loaded, messages


SIMULATED = "simulated"
TYPISTS, REPETITIONS, SEED = 20, 10, 1


@dataclass(frozen=True, eq=False)
class Row:
    """A dataset ready for study.

    Attributes
    ----------
    name : of the table's row; samples : all of them
    protocol : how it is split
    checksums : of the files read; vectors : where the feature vectors come from, in words
    """

    name: str
    samples: Samples
    protocol: Protocol
    checksums: dict[str, str]
    vectors: str

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the samples as detectors see them: it also changes with how a file is read."""
        sequences, table = self.samples.sequences, self.samples.table
        names = (self.samples.index.tolist(), sequences.feature_names, table.columns.tolist())
        kinds = (self.samples.emission, sequences.event_types.tolist(), self.samples.kind)
        digest = sha256(repr((names, kinds)).encode())
        for values in (sequences.X, sequences.codes, sequences.offsets, table.to_numpy(dtype=np.float64)):
            digest.update(np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()


def check_row_name(name: str) -> None:
    """A `ValueError` for a name that no row has."""
    if name not in (*DATASETS, SIMULATED):
        raise ValueError(f"there is no dataset {name!r}; there are {', '.join((*DATASETS, SIMULATED))}")


def load_row(name: str, data: str | PathLike[str] | None = None) -> Row:
    """One row by its name; `mobile+` is mobile with its sensors, `simulated` needs no data."""
    if name == SIMULATED:
        keystrokes = make_typists(TYPISTS, REPETITIONS, random_state=SEED)
        return Row(name, Samples.of(keystrokes), MonacoTappert(), {SIMULATED: f"seed {SEED}"}, "ours")
    check_row_name(name)
    dataset = load_dataset(name.removesuffix("+"), data)
    samples = Samples.of(
        dataset.keystrokes, dataset.sensors if name.endswith("+") else (), vectors=dataset.vectors
    )
    protocol = MonacoTappert.password() if name == "password" else MonacoTappert()
    source = "the authors' own, read from the data folder" if samples.kind == "given" else "ours"
    return Row(name, samples, protocol, dataset.checksums, source)


def available_rows(
    names: Sequence[str] = (),
    data: str | PathLike[str] | None = None,
    default_names: Sequence[str] = DATASETS,
) -> tuple[list[Row], list[str]]:
    """The rows to study, and messages about those that are not here.

    Without names these are all of `default_names` that are here, or simulated typists if none is. A row that
    was named must be here.
    """
    message = "No dataset is here: simulated typists take their place, whose figures say nothing of people."
    return available_or_simulated(names, default_names, load_row, data, SIMULATED, message)
