"""Places: recordings of one kind, with people to learn from and people to test.

Long texts are cut into pieces as long as a sentence. In Aalto, the reported people are tested and some of the
others are learnt from; a background is never tested on people that it was learnt from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd

from keydyn.arrays import Integers
from keydyn.datasets import load_dataset, make_typists, reported_people
from keydyn.decisions.calibration.trials import spread
from keydyn.keystrokes.one_sample import recorded_samples
from keydyn.keystrokes.samples import Samples
from keydyn.keystrokes.schema import COLUMNS, sample_lengths, sample_of_row, sample_starts
from keydyn.lab.frame.chosen import chosen

FREE, FIXED = ("fable", "essay", "aalto"), ("password", "keypad", "mobile")
# Simulated typists that replace all recordings: people of two places, with different keyboards and clocks.
SIMULATED = ("simulated", "simulated elsewhere")
NAMES = (*FREE, *FIXED)
# The number of keys in a piece of a long text.
PIECE = 50
# The largest number of people of Aalto to learn from, and the number of own people enrolled first.
MOST_LEARNT, OWN = 300, 30
# The number of samples per person used of a fixed text.
REPETITIONS = 20
TYPISTS, SENTENCES, SEED = 16, 12, 1
# The column with the time at which a sample began.
STARTED = "started"


@dataclass(frozen=True, eq=False)
class Place:
    """Recordings of one kind.

    Attributes
    ----------
    name : name of the dataset
    learnt : keystrokes of the people to learn from, as they were recorded
    tried : keystrokes of the people to test, in pieces
    checksums : checksums of the files read
    fresh : keystrokes of further people, on whom nothing has been examined before; by default `tried`
    """

    name: str
    learnt: pd.DataFrame
    tried: pd.DataFrame
    checksums: dict[str, str]
    fresh: pd.DataFrame | None = None

    @cached_property
    def known(self) -> Samples:
        """The samples of the people to learn from."""
        return recorded_samples(self.learnt)

    @cached_property
    def samples(self) -> Samples:
        """The samples of the people to test."""
        return recorded_samples(self.tried)

    @cached_property
    def fresh_samples(self) -> Samples:
        """The samples of further people, or of the people to test if there are none."""
        return self.samples if self.fresh is None else recorded_samples(self.fresh)

    @property
    def same_people(self) -> bool:
        """Whether some people would be both learnt from and tested."""
        return bool(set(self.learnt["user"]) & set(self.tried["user"]))

    @property
    def fixed(self) -> bool:
        """Whether everyone types the same text."""
        return self.name in FIXED


def load_place(name: str, data: str | PathLike[str] | None = None) -> Place:
    """Load a place by its name."""
    if name in SIMULATED:
        return _simulated(name)
    dataset = load_dataset(name, data)
    typed = dataset.keystrokes[[name for name in (*COLUMNS, STARTED) if name in dataset.keystrokes]]
    if name == "aalto":
        return _of_aalto(typed, dataset.checksums)
    if name in FIXED:
        some = typed[_numbers(typed) < REPETITIONS].reset_index(drop=True)
        return Place(name, some, some, dataset.checksums)
    return Place(name, typed, pieces(typed), dataset.checksums)


def _of_aalto(typed: pd.DataFrame, checksums: dict[str, str], most: int = MOST_LEARNT) -> Place:
    """Aalto as a place: reported people to test, some of the others to learn from, some of the rest fresh.

    At most `most` people are learnt from, and at most as many are fresh. Fresh people are those left when as
    many others, who were judged with earlier weights of the detector of forgeries, are taken away.
    """
    users = pd.unique(typed["user"])
    reported = reported_people(users.tolist())
    others = np.array([user for user in users.tolist() if user not in reported])
    learnt = spread(others, most)
    rest = np.setdiff1d(others, learnt)
    fresh = spread(np.setdiff1d(rest, spread(rest, most)), most)
    known, tried, unseen = (
        typed[typed["user"].isin(people)].reset_index(drop=True)
        for people in (learnt.tolist(), reported, fresh.tolist())
    )
    return Place("aalto", known, tried, checksums, unseen if len(unseen) else None)


def _simulated(name: str) -> Place:
    """Simulated typists of a place; those elsewhere have longer holds and a coarser clock."""
    elsewhere = name != SIMULATED[0]
    first = 1000 if elsewhere else 0
    typed = make_typists(
        TYPISTS,
        SENTENCES,
        "free",
        PIECE,
        first_user=first,
        tick=8.0 if elsewhere else None,
        random_state=SEED,
    )
    if elsewhere:
        typed["timerelease"] = typed["timepress"] + 1.2 * (typed["timerelease"] - typed["timepress"])
    return Place(name, typed, typed, {name: f"seed {SEED}"})


def pieces(typed: pd.DataFrame, keys: int = PIECE) -> pd.DataFrame:
    """Cut samples into pieces of this many keystrokes, numbered within each user; shorter rests are left out.

    Examples
    --------
    >>> from keydyn.datasets import make_typists
    >>> from keydyn.lab.transfer.places import pieces
    >>> pieces(make_typists(2, 3, "free", 120), 50).groupby(["user", "session"]).size().tolist()
    [50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50]
    """
    starts = sample_starts(typed)
    lengths, sample = sample_lengths(starts, len(typed)), sample_of_row(starts, len(typed))
    position = np.arange(len(typed)) - starts[sample]
    whole = position < lengths[sample] // keys * keys
    cut = typed[whole].assign(session=sample[whole] * (lengths.max() // keys + 1) + position[whole] // keys)
    return cut.assign(session=_numbers(cut)).reset_index(drop=True)


def _numbers(typed: pd.DataFrame) -> Integers:
    """The number of each keystroke's sample within its user, from 0, (N,)."""
    starts = sample_starts(typed.reset_index(drop=True))
    number = typed["user"].iloc[starts].groupby(typed["user"].iloc[starts].to_numpy()).cumcount().to_numpy()
    found: Integers = number.astype(np.int64)[sample_of_row(starts, len(typed))]
    return found


def with_keys_of(place: Place, other: Place) -> Place:
    """A fixed text with the keys renamed as in another place, position by position."""
    texts = [_text(one.learnt) for one in (place, other)]
    if len(texts[0]) != len(texts[1]):
        raise ValueError(f"{place.name} and {other.name} are texts of different lengths")

    def renamed(typed: pd.DataFrame) -> pd.DataFrame:
        return typed.assign(keyname=np.tile(np.array(texts[1], dtype=object), len(typed) // len(texts[1])))

    return replace(place, learnt=renamed(place.learnt), tried=renamed(place.tried))


def _text(typed: pd.DataFrame) -> Sequence[str]:
    """The keys of the first sample."""
    starts = sample_starts(typed)
    first = int(sample_lengths(starts, len(typed))[0])
    keys: list[str] = typed["keyname"].iloc[:first].tolist()
    return keys


def chosen_places(names: Sequence[str] | None, data: Path | None) -> tuple[list[Place], list[str]]:
    """Load the places to study, and return messages about missing ones."""
    return chosen(names, data, NAMES, load_place, simulated=SIMULATED)


def free_places(names: Sequence[str] | None, data: Path | None) -> tuple[list[Place], list[str]]:
    """Load the places of free text among the named datasets, or all, with messages about missing ones."""
    if names and SIMULATED[0] in names:
        return [load_place(name) for name in SIMULATED], []
    places, messages = [], []
    for name in FREE if names is None else [name for name in names if name in FREE]:
        try:
            places.append(load_place(name, data))
        except FileNotFoundError as error:
            messages.append(str(error))
    return places, messages
