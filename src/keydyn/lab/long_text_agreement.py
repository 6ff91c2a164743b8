"""Compares our long-text vectors, and the detectors' results on them, with the published ones.

`python -m keydyn.lab.long_text_agreement [FOLDER]` prints both tables, for the fetched data or the data in
the folder.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import pandas as pd

from keydyn.datasets import Dataset, load_dataset
from keydyn.evaluation.protocols.protocol import MonacoTappert
from keydyn.evaluation.protocols.running import score_protocol
from keydyn.evaluation.rates.verification import recognition
from keydyn.keystrokes.long_text import STATISTICS, TIMES, TREES, lineages, long_text_vectors
from keydyn.keystrokes.samples import Samples

DATASETS = ("fable", "essay")
DETECTORS = ("manhattan", "manhattan-scaled", "svm")
# Relative and absolute tolerance within which values are equal; the absolute one is needed because means of
# t1 can be close to 0.
RELATIVE, ABSOLUTE = 1e-6, 1e-9


def agreement(ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """The share of equal values, and relative differences, by kind of time, statistic and level of the tree.

    Level 0 is the root, which holds all keys. Both frames are indexed by (user, session).
    """
    theirs = theirs.loc[ours.index, ours.columns]
    rows = []
    for time, tree in TREES.items():
        ancestors = lineages(tree)
        for statistic in STATISTICS:
            for level in range(1 + max(map(len, ancestors.values()))):
                names = [name for name in ancestors if len(ancestors[name]) == level]
                columns = [f"{time}_{name}.{statistic}" for name in names]
                rows.append(
                    (time, statistic, level, len(columns), *_differences(ours[columns], theirs[columns]))
                )
    return pd.DataFrame(
        rows, columns=["time", "statistic", "level", "columns", "values", "equal", "median", "largest"]
    )


def _differences(ours: pd.DataFrame, theirs: pd.DataFrame) -> tuple[int, float, float, float]:
    """The number of values, the share of equal ones, and the median and largest relative difference."""
    published = np.abs(theirs.to_numpy())
    difference = np.abs(ours.to_numpy() - theirs.to_numpy())
    relative = difference / np.maximum(published, ABSOLUTE)
    equal = difference <= RELATIVE * published + ABSOLUTE
    return difference.size, float(equal.mean()), float(np.median(relative)), float(relative.max())


def detectors_on(dataset: Dataset, vectors: pd.DataFrame) -> pd.DataFrame:
    """Mean accuracy and equal error rate of the three vector detectors, under the published protocol."""
    samples = Samples.of(dataset.keystrokes, vectors=vectors)
    per_user = {name: recognition(score_protocol(MonacoTappert(), name, samples)) for name in DETECTORS}
    rows = [(name, *users[["acc", "eer"]].mean()) for name, users in per_user.items()]
    return pd.DataFrame(rows, columns=["detector", "accuracy", "eer"])


def main(arguments: Sequence[str]) -> int:
    """Print the two tables; the only, optional argument is the folder of the data."""
    if len(arguments) > 1:
        print("usage: python -m keydyn.lab.long_text_agreement [FOLDER]", file=sys.stderr)
        return 2
    tables, results = {}, {}
    try:
        for name in DATASETS:
            dataset = load_dataset(name, arguments[0] if arguments else None)
            if dataset.vectors is None:
                raise ValueError(f"the authors' vectors of {name} are missing")
            ours = long_text_vectors(dataset.keystrokes)
            tables[name] = agreement(ours, dataset.vectors)
            results[name] = detectors_on(dataset, ours).merge(
                detectors_on(dataset, dataset.vectors), on="detector", suffixes=(" (ours)", " (theirs)")
            )
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Times: {', '.join(f'{short} = {long}' for short, long in TIMES.items())}. Level 0 is all keys.")
    print(pd.concat(tables, names=["dataset", None]).droplevel(1).to_string(float_format="{:.3g}".format))
    merged = pd.concat(results, names=["dataset", None]).droplevel(1)
    print(merged.to_string(float_format="{:.3f}".format))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
