"""The published folds, written down once more, so that metrics are tested without the protocols."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from keydyn.datasets import load_dataset
from keydyn.detectors import Population, fit_population, make_detector
from keydyn.keystrokes.samples import Samples


def recorded(folder, dataset: str) -> Samples:
    """A dataset's samples; a plus adds the sensors."""
    source = load_dataset(dataset.removesuffix("+"), folder)
    sensors = source.sensors if dataset.endswith("+") else ()
    return Samples.of(source.keystrokes, sensors=sensors, vectors=source.vectors)


def published_folds(
    detector: str, samples: Samples, password: bool = False
) -> Iterator[tuple[Population, Samples]]:
    """Templates and queries of each fold; users in the order of first appearance."""
    number = samples.numbers
    prepared = make_detector(detector).prepare(samples)
    splits = [(number != fold, number == fold) for fold in np.unique(number)]
    if password:
        splits = [((number >= 150) & (number < 200), number >= 200)]
    for train, query in splits:
        yield fit_population(prepared, samples[train]).of(pd.unique(samples.users)), samples[query]
