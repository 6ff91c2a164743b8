"""The recordings of the studies of fit: long texts, whose intervals are judged user by user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike

import pandas as pd

from keydyn.datasets import load_dataset, make_typists
from keydyn.lab.frame.dataset_rows import available_or_simulated

NAMES = ("fable", "essay")
SIMULATED = "simulated"
TYPISTS, SAMPLES, KEYS, SEED = 10, 4, 100, 1


@dataclass(frozen=True, eq=False)
class Text:
    """A dataset of typed texts; `checksums` are those of the files read."""

    name: str
    keystrokes: pd.DataFrame
    checksums: dict[str, str]


def check_text_name(name: str) -> None:
    """A `ValueError` for a name that no long text has."""
    if name not in (*NAMES, SIMULATED):
        raise ValueError(f"there is no long text {name!r}; there are {', '.join((*NAMES, SIMULATED))}")


def load_text(name: str, data: str | PathLike[str] | None = None) -> Text:
    """A dataset by its name, or simulated typists."""
    if name == SIMULATED:
        keystrokes = make_typists(TYPISTS, SAMPLES, text="copied", n_keys=KEYS, random_state=SEED)
        return Text(name, keystrokes, {SIMULATED: f"seed {SEED}"})
    check_text_name(name)
    dataset = load_dataset(name, data)
    return Text(name, dataset.keystrokes, dataset.checksums)


def available_texts(
    names: Sequence[str] = (), data: str | PathLike[str] | None = None
) -> tuple[list[Text], list[str]]:
    """The texts to study, simulated ones if none is here, and messages about those that are missing."""
    message = "No long text is here: simulated typists take their place."
    return available_or_simulated(names, NAMES, load_text, data, SIMULATED, message)
