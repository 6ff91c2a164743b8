"""The rows of the paper's recognition tables: a dataset, the features that are used, and how it is split."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from os import PathLike

import numpy as np

from keydyn.datasets import load_dataset, make_typists
from keydyn.evaluation.protocols.protocol import MonacoTappert, Protocol
from keydyn.keystrokes.samples import Samples
from keydyn.lab.frame.chosen import SIMULATED

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


def load_row(name: str, data: str | PathLike[str] | None = None) -> Row:
    """One row by its name; `mobile+` is mobile with its sensors, `simulated` needs no data."""
    if name == SIMULATED:
        keystrokes = make_typists(TYPISTS, REPETITIONS, random_state=SEED)
        return Row(name, Samples.of(keystrokes), MonacoTappert(), {SIMULATED: f"seed {SEED}"}, "ours")
    dataset = load_dataset(name.removesuffix("+"), data)
    samples = Samples.of(
        dataset.keystrokes, dataset.sensors if name.endswith("+") else (), vectors=dataset.vectors
    )
    protocol = MonacoTappert.password() if name == "password" else MonacoTappert()
    source = "the authors' own, read from the data folder" if samples.kind == "given" else "ours"
    return Row(name, samples, protocol, dataset.checksums, source)
