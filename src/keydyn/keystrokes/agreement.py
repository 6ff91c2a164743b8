"""How well our long-text vectors agree with the published ones, and what detectors make of either.

`python -m keydyn.keystrokes.agreement FOLDER` prints both tables. The folder holds fable.csv, essay.csv,
fable_features.csv.gz and essay_features.csv.gz as the authors published them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist
from sklearn.metrics import roc_curve
from sklearn.svm import OneClassSVM

from keydyn.keystrokes.key_sets import lineages
from keydyn.keystrokes.long_text import STATISTICS, TIMES, TREES, long_text_vectors
from keydyn.keystrokes.schema import SAMPLE
from keydyn.model.arrays import Floats

DATASETS = ("fable", "essay")
# Equal: to this share of the published value. Means of t1 can be next to 0, so a little is always allowed.
RELATIVE, ABSOLUTE = 1e-6, 1e-9

# Accuracy and equal error rate in the paper, of the authors' vectors.
PUBLISHED = {
    ("fable", "manhattan"): (0.492, 0.085),
    ("fable", "manhattan-scaled"): (0.613, 0.049),
    ("fable", "svm"): (0.571, 0.099),
    ("essay", "manhattan"): (0.730, 0.061),
    ("essay", "manhattan-scaled"): (0.839, 0.028),
    ("essay", "svm"): (0.342, 0.098),
}


def agreement(ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """By kind of time, statistic and level of the tree: the share of equal values, and relative differences.

    Level 0 is the root, all keys. Both frames are indexed by (user, session).
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
    """How many values, the share that is equal, and the median and largest relative difference."""
    published = np.abs(theirs.to_numpy())
    apart = np.abs(ours.to_numpy() - theirs.to_numpy())
    relative = apart / np.maximum(published, ABSOLUTE)
    equal = apart <= RELATIVE * published + ABSOLUTE
    return apart.size, float(equal.mean()), float(np.median(relative)), float(relative.max())


def recognition(vectors: pd.DataFrame) -> pd.DataFrame:
    """Accuracy and equal error rate of the three vector detectors, by the paper's closed-set protocol.

    Each sample in turn is left out and is a query against every user's template; scores are min-max
    normalised over the users for each query. Features are scaled over the whole dataset, queries included,
    as published.
    """
    vectors = vectors.sort_index()
    users, sessions = (vectors.index.unique(level) for level in SAMPLE)
    if len(sessions) < 2 or not vectors.index.equals(pd.MultiIndex.from_product([users, sessions])):
        raise ValueError("every user must have the same sessions, at least two")
    table = vectors.to_numpy(dtype=np.float64).reshape(len(users), len(sessions), -1)
    flat = table.reshape(-1, table.shape[2])
    spread = np.abs(flat - flat.mean(axis=0)).mean(axis=0)
    lowest, highest = flat.min(axis=0), flat.max(axis=0)
    detectors: dict[str, tuple[Floats, Callable[[Floats, Floats], Floats]]] = {
        "manhattan": (table, _manhattan),
        "manhattan-scaled": (table / _or_one(spread), _manhattan),
        "svm": ((table - lowest) / _or_one(highest - lowest), _one_class_svm),
    }
    rows = [(name, *_closed_set(scaled, score)) for name, (scaled, score) in detectors.items()]
    return pd.DataFrame(rows, columns=["detector", "accuracy", "eer"])


def _closed_set(table: Floats, score: Callable[[Floats, Floats], Floats]) -> tuple[float, float]:
    """Mean accuracy and mean equal error rate over users, leaving one sample out."""
    n_users, n_sessions = table.shape[:2]
    # (sessions, queries, templates)
    scores = np.stack([score(np.delete(table, fold, axis=1), table[:, fold]) for fold in range(n_sessions)])
    lowest, highest = scores.min(axis=2, keepdims=True), scores.max(axis=2, keepdims=True)
    scores = (scores - lowest) / _or_one(highest - lowest)
    own = np.arange(n_users)
    accuracy = (scores.argmax(axis=2) == own).mean()
    genuine = np.broadcast_to(np.eye(n_users), scores.shape)
    rates = [_equal_error_rate(genuine[:, :, user], scores[:, :, user]) for user in own]
    return float(accuracy), float(np.mean(rates))


def _equal_error_rate(genuine: Floats, scores: Floats) -> float:
    """Where false acceptance and false rejection cross, on straight lines between the points of the ROC."""
    accepted, found, _ = roc_curve(genuine.ravel(), scores.ravel(), drop_intermediate=False)
    return float(np.interp(0.0, accepted - (1 - found), accepted))


def _manhattan(training: Floats, queries: Floats) -> Floats:
    """(queries, users) negative distance to each user's mean vector."""
    distances: Floats = cdist(queries, training.mean(axis=1), "cityblock")
    return -distances


def _one_class_svm(training: Floats, queries: Floats) -> Floats:
    """(queries, users) decision function of each user's one-class support vector machine."""
    machine = OneClassSVM(kernel="rbf", nu=0.5, gamma=1 / training.shape[2])
    return np.column_stack([machine.fit(own).decision_function(queries) for own in training])


def _or_one(values: Floats) -> Floats:
    """The values, with 1 for 0: what does not vary is not scaled."""
    return np.where(values > 0, values, 1.0)


def read_published(folder: Path, dataset: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The keystrokes of a dataset and the authors' vectors of it; a `ValueError` if a file is not there."""
    keystrokes, vectors = folder / f"{dataset}.csv", folder / f"{dataset}_features.csv.gz"
    for path in (keystrokes, vectors):
        if not path.is_file():
            raise ValueError(f"there is no file {path}")
    # A key can be called "null" or "nan"; none is missing.
    return (
        pd.read_csv(keystrokes, dtype={"keyname": str}, keep_default_na=False),
        pd.read_csv(vectors).set_index(SAMPLE),
    )


def main(arguments: Sequence[str]) -> int:
    """Print the two tables for the folder named by the only argument."""
    if len(arguments) != 1:
        print("usage: python -m keydyn.keystrokes.agreement FOLDER", file=sys.stderr)
        return 2
    tables, results = {}, {}
    try:
        for dataset in DATASETS:
            keystrokes, theirs = read_published(Path(arguments[0]), dataset)
            ours = long_text_vectors(keystrokes)
            tables[dataset] = agreement(ours, theirs)
            results[dataset] = recognition(ours).merge(
                recognition(theirs), on="detector", suffixes=(" (ours)", " (theirs)")
            )
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Times: {', '.join(f'{short} = {long}' for short, long in TIMES.items())}. Level 0 is all keys.")
    print(pd.concat(tables, names=["dataset", None]).droplevel(1).to_string(float_format="{:.3g}".format))
    merged = pd.concat(results, names=["dataset", None]).droplevel(1).reset_index()
    published = [
        PUBLISHED[str(name), str(of)] for name, of in zip(merged.dataset, merged.detector, strict=True)
    ]
    merged["accuracy (paper)"], merged["eer (paper)"] = zip(*published, strict=True)
    print(merged.to_string(index=False, float_format="{:.3f}".format))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
