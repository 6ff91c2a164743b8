"""The datasets at a glance: Table 1 of the paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from keydyn.datasets.published.loading import Dataset
from keydyn.keystrokes.schema import check_keystrokes, sample_starts


def dataset_summary(datasets: Iterable[Dataset] | Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One row per dataset: users, mean samples per user, mean keys per sample, and mean τ in milliseconds.

    τ is the time from press to press within a sample; a sample's first keystroke has none. A mapping from
    names to keystrokes summarises your own recordings, whose category is not known.

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
