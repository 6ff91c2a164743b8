"""The recordings that studies use: rows of the paper's recognition tables, and long texts with their models.

A row is a dataset together with the features used and the way it is split. The studies of goodness of fit use
each user's intervals in the long texts.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from keydyn.datasets import load_dataset, make_typists
from keydyn.detectors.markov import RecommendedPOHMM
from keydyn.evaluation.protocols.protocol import MonacoTappert, Protocol, Split
from keydyn.keystrokes.samples import Samples
from keydyn.keystrokes.schema import check_keystrokes
from keydyn.keystrokes.timing import timing_features
from keydyn.lab.frame.chosen import SIMULATED
from keydyn.model import HMM, POHMM, Sequences

TYPISTS, REPETITIONS, SEED = 20, 10, 1


@dataclass(frozen=True, eq=False)
class Row:
    """A dataset ready for a study: one row of a recognition table.

    Attributes
    ----------
    name : name of the table's row
    samples : all samples
    protocol : the way the samples are split
    checksums : checksums of the files read
    vectors : a phrase that says where the feature vectors come from
    """

    name: str
    samples: Samples
    protocol: Protocol
    checksums: dict[str, str]
    vectors: str

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the samples as detectors see them; it changes if a file is read differently."""
        sequences, table = self.samples.sequences, self.samples.table
        names = (self.samples.index.tolist(), sequences.feature_names, table.columns.tolist())
        kinds = (self.samples.emission, sequences.event_types.tolist(), self.samples.kind)
        digest = sha256(repr((names, kinds)).encode())
        for values in (sequences.X, sequences.codes, sequences.offsets, table.to_numpy(dtype=np.float64)):
            digest.update(np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class FirstFolds(Protocol):
    """Another protocol reduced to its first enrolments: less work for the same kind of figure."""

    inner: Protocol
    folds: int

    name: ClassVar[str] = "first-folds"
    title: ClassVar[str] = "First enrolments"

    def __post_init__(self) -> None:
        for name in ("impostors", "normalisation", "prepared_on", "least"):
            object.__setattr__(self, name, getattr(self.inner, name))

    @property
    def split(self) -> str:
        return f"{self.inner.split}; the first {self.folds} enrolments only"

    def divided(self, samples: Samples) -> list[Split]:
        return self.inner.divided(samples)[: self.folds]


def load_row(name: str, data: str | PathLike[str] | None = None) -> Row:
    """Load one row by its name; `mobile+` is mobile with its sensors, `simulated` needs no data."""
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


def intervals_by_user(keystrokes: pd.DataFrame) -> dict[Any, Sequences]:
    """The intervals τ of each user's samples; a sample's first keystroke, which has no τ, is left out.

    A sample of a single keystroke has no interval and is left out, as is a user without intervals.
    The only feature is left unnamed, because every fit would check the name again.
    """
    keystrokes = check_keystrokes(keystrokes)
    table = keystrokes[["user", "session", "keyname"]].assign(
        tau=timing_features(keystrokes, first="missing")["tau"]
    )
    table = table[table["tau"].notna()]
    return {
        user: replace(
            Sequences.from_frame(user_rows, ["tau"], event="keyname", sequence="session"), feature_names=None
        )
        for user, user_rows in table.groupby("user", sort=False)
    }


def stream(seed: int, *names: object) -> np.random.Generator:
    """The random stream of one piece of work, which does not depend on the work done before it.

    An interrupted and resumed study therefore gives the same result.
    """
    return np.random.default_rng([seed, *(zlib.crc32(str(name).encode()) for name in names)])


MODELS = ("hmm", "pohmm")
SETTINGS = ("published", "recommended")


def pattern(model: str, settings: str, **changes: Any) -> POHMM:
    """The HMM or POHMM of one feature: published settings with the density floor, or recommended settings.

    `changes` replace individual parameters.
    """
    if model not in MODELS or settings not in SETTINGS:
        raise ValueError(
            f"there is no {settings!r} {model!r}: models are {', '.join(MODELS)}, "
            f"settings {', '.join(SETTINGS)}"
        )
    kind = HMM if model == "hmm" else POHMM
    if settings == "published":
        return kind.published(**changes)
    return kind(**(RecommendedPOHMM().pattern().get_params(deep=False) | changes))


def recorded_settings(model: str, settings: str) -> dict[str, str]:
    """The settings of a model as text, as stored in run.json and in saved parts."""
    return {key: repr(value) for key, value in pattern(model, settings).get_params(deep=False).items()}


NAMES = ("fable", "essay")
# Simulated typists of a text: people, samples per person, and keys per sample.
WRITERS, TEXTS, KEYS = 10, 4, 100


@dataclass(frozen=True, eq=False)
class LongText:
    """A dataset of typed texts; `checksums` are those of the files it was read from."""

    name: str
    keystrokes: pd.DataFrame
    checksums: dict[str, str]


def load_text(name: str, data: str | PathLike[str] | None = None) -> LongText:
    """Load a dataset of long texts by its name; `simulated` makes simulated typists."""
    if name == SIMULATED:
        keystrokes = make_typists(WRITERS, TEXTS, text="copied", n_keys=KEYS, random_state=SEED)
        return LongText(name, keystrokes, {SIMULATED: f"seed {SEED}"})
    dataset = load_dataset(name, data)
    return LongText(name, dataset.keystrokes, dataset.checksums)
